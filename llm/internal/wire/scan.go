package wire

import "errors"

// ErrSyntax is returned for bytes that are not JSON.
var ErrSyntax = errors.New("wire: malformed JSON")

// Members walks the members of a JSON object without copying: values are
// slices of the input, still encoded. Use:
//
//	for m := wire.ScanObject(data); m.Next(); {
//		switch string(m.Key()) { … m.Value() … }
//	}
//
// and look at Err afterwards. Keys with escapes are unquoted.
type Members struct {
	data  []byte
	at    int
	key   []byte
	value []byte
	err   error
	begun bool
	done  bool
	array bool
}

// ScanObject prepares to walk an object. A JSON null has no members.
func ScanObject(data []byte) *Members { return &Members{data: data} }

// ScanArray prepares to walk an array; Key is empty then.
func ScanArray(data []byte) *Members { return &Members{data: data, array: true} }

// Key is the current member's name.
func (m *Members) Key() []byte { return m.key }

// Value is the current member's value as it stands in the input.
func (m *Members) Value() []byte { return m.value }

// Err is what stopped the walk, nil at the end of the object.
func (m *Members) Err() error { return m.err }

// Next goes to the next member and reports whether there is one.
func (m *Members) Next() bool {
	if m.done || m.err != nil {
		return false
	}
	open, end := byte('{'), byte('}')
	if m.array {
		open, end = '[', ']'
	}
	m.at = skipSpace(m.data, m.at)
	if !m.begun {
		m.begun = true
		if isNull(m.data[m.at:]) {
			return m.finish(m.at + 4)
		}
		if !m.is(open) {
			return m.fail()
		}
		m.at = skipSpace(m.data, m.at+1)
		if m.is(end) {
			return m.finish(m.at + 1)
		}
		return m.member()
	}
	switch {
	case m.is(end):
		return m.finish(m.at + 1)
	case !m.is(','):
		return m.fail()
	}
	m.at = skipSpace(m.data, m.at+1)
	return m.member()
}

func (m *Members) member() bool {
	if !m.array {
		stop, plain := stringEnd(m.data, m.at)
		if stop < 0 {
			return m.fail()
		}
		m.key = m.data[m.at+1 : stop-1]
		if !plain {
			key, ok := appendUnquoted(nil, m.key)
			if !ok {
				return m.fail()
			}
			m.key = key
		}
		m.at = skipSpace(m.data, stop)
		if !m.is(':') {
			return m.fail()
		}
		m.at = skipSpace(m.data, m.at+1)
	}
	stop := valueEnd(m.data, m.at, 1)
	if stop < 0 {
		return m.fail()
	}
	m.value = m.data[m.at:stop]
	m.at = stop
	return true
}

func (m *Members) is(c byte) bool { return m.at < len(m.data) && m.data[m.at] == c }

func (m *Members) fail() bool {
	m.err = ErrSyntax
	return false
}

func (m *Members) finish(at int) bool {
	m.done = true
	if skipSpace(m.data, at) != len(m.data) {
		m.err = ErrSyntax
	}
	return false
}

// Member is the first member of an object that has a name, still encoded; nil
// where there is none, and where the value is no object.
func Member(object []byte, name string) []byte {
	for m := ScanObject(object); m.Next(); {
		if string(m.Key()) == name {
			return m.Value()
		}
	}
	return nil
}
