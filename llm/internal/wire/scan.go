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
	data []byte
	at   int
	key  []byte
	// from and to are where the current value stands.
	from, to int
	err      error
	begun    bool
	done     bool
	array    bool
	// nested says that an object or array within is read when it is asked for, unread
	// that the current value is such a one and begins at at, and inner that this walks
	// such a one.
	nested bool
	unread bool
	inner  bool
}

// ScanObject prepares to walk an object. A JSON null has no members.
func ScanObject(data []byte) *Members { return &Members{data: data} }

// ScanArray prepares to walk an array; Key is empty then.
func ScanArray(data []byte) *Members { return &Members{data: data, array: true} }

// ScanNested prepares to walk an object whose members are walked by Object and Array
// and then passed, so that each byte is read once, however deep it stands.
func ScanNested(data []byte) *Members { return &Members{data: data, nested: true} }

// Object prepares to walk the current value as an object.
func (m *Members) Object() Members { return m.inside(false) }

// Array prepares to walk the current value as an array.
func (m *Members) Array() Members { return m.inside(true) }

func (m *Members) inside(array bool) Members {
	if !m.unread {
		return Members{data: m.data[m.from:m.to], array: array}
	}
	return Members{data: m.data, at: m.at, array: array, nested: true, inner: true}
}

// Pass goes behind the current value where inner has walked it to its end. Without it
// Next reads the value once more.
func (m *Members) Pass(inner *Members) {
	if m.unread && inner.inner && inner.done {
		m.unread, m.from, m.to, m.at = false, m.at, inner.at, inner.at
	}
}

// Key is the current member's name.
func (m *Members) Key() []byte { return m.key }

// Value is the current member's value as it stands in the input, empty where it is
// malformed.
func (m *Members) Value() []byte {
	if m.unread {
		m.read()
	}
	return m.data[m.from:m.to]
}

// Err is what stopped the walk, nil at the end of the object.
func (m *Members) Err() error { return m.err }

// Next goes to the next member and reports whether there is one.
func (m *Members) Next() bool {
	if m.done || m.err != nil {
		return false
	}
	if m.unread && !m.read() {
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
	if m.unread = m.nested && (m.is('{') || m.is('[')); m.unread {
		return true
	}
	return m.read()
}

// read finds the end of the current value.
func (m *Members) read() bool {
	m.unread, m.from, m.to = false, m.at, m.at
	stop := valueEnd(m.data, m.at, 1)
	if stop < 0 {
		return m.fail()
	}
	m.at, m.to = stop, stop
	return true
}

func (m *Members) is(c byte) bool { return m.at < len(m.data) && m.data[m.at] == c }

func (m *Members) fail() bool {
	m.err = ErrSyntax
	return false
}

func (m *Members) finish(at int) bool {
	m.done = true
	m.at = at
	if !m.inner && skipSpace(m.data, at) != len(m.data) {
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
