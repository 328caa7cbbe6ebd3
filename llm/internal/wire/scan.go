package wire

import "errors"

// ErrSyntax is returned for bytes that are not JSON.
var ErrSyntax = errors.New("wire: malformed JSON")

// Members iterates over the members of a JSON object without copying: values are slices
// of the input, still encoded. Use:
//
//	for m := wire.ScanObject(data); m.Next(); {
//		switch string(m.Key()) { … m.Value() … }
//	}
//
// and check Err afterwards. Keys with escapes are unquoted.
type Members struct {
	data []byte
	at   int
	key  []byte
	// from and to are the bounds of the current value.
	from, to int
	err      error
	begun    bool
	done     bool
	array    bool
	// nested reports that nested objects and arrays are read only on request; unread
	// that the current value is one that begins at at and was not read; inner that this
	// iterates over such a value.
	nested bool
	unread bool
	inner  bool
}

// ScanObject returns an iterator over an object. A JSON null has no members.
func ScanObject(data []byte) *Members { return &Members{data: data} }

// ScanArray returns an iterator over an array; Key is empty then.
func ScanArray(data []byte) *Members { return &Members{data: data, array: true} }

// ScanNested returns an iterator over an object whose nested values are iterated by
// Object and Array and then passed, so that each byte is read once, at any depth.
func ScanNested(data []byte) *Members { return &Members{data: data, nested: true} }

// Object returns an iterator over the current value as an object.
func (m *Members) Object() Members { return m.inside(false) }

// Array returns an iterator over the current value as an array.
func (m *Members) Array() Members { return m.inside(true) }

func (m *Members) inside(array bool) Members {
	if !m.unread {
		return Members{data: m.data[m.from:m.to], array: array}
	}
	return Members{data: m.data, at: m.at, array: array, nested: true, inner: true}
}

// Pass skips the current value after inner has iterated over all of it. Without it Next
// reads the value again.
func (m *Members) Pass(inner *Members) {
	if m.unread && inner.inner && inner.done {
		m.unread, m.from, m.to, m.at = false, m.at, inner.at, inner.at
	}
}

// Key returns the current member's name.
func (m *Members) Key() []byte { return m.key }

// Value returns the current member's encoded value, empty if it is malformed.
func (m *Members) Value() []byte {
	if m.unread {
		m.read()
	}
	return m.data[m.from:m.to]
}

// Err returns the error that ended the iteration, nil at the end of the object.
func (m *Members) Err() error { return m.err }

// Next advances to the next member and reports whether there is one.
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

// Member returns the encoded value of an object's first member with a name; nil if
// there is none or the value is not an object.
func Member(object []byte, name string) []byte {
	for m := ScanObject(object); m.Next(); {
		if string(m.Key()) == name {
			return m.Value()
		}
	}
	return nil
}
