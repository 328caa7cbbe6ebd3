package wire

import (
	"errors"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrSyntax is returned for bytes that are not JSON.
var ErrSyntax = errors.New("wire: malformed JSON")

// maxDepth bounds nesting, as encoding/json does.
const maxDepth = 10_000

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

// Next goes to the next member and says whether there is one.
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
	stop := valueEnd(m.data, m.at, 0)
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

func isNull(b []byte) bool { return len(b) >= 4 && string(b[:4]) == "null" }

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// stringEnd returns the offset after the closing quote of the string that
// begins at i, or -1; plain says that it holds no escape.
func stringEnd(b []byte, i int) (end int, plain bool) {
	if i >= len(b) || b[i] != '"' {
		return -1, false
	}
	plain = true
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, plain
		case c == '\\':
			plain = false
			n := escapeLen(b[i:])
			if n == 0 {
				return -1, false
			}
			i += n - 1
		case c < 0x20:
			return -1, false
		}
	}
	return -1, false
}

// escapeLen is the length of the escape that s begins with, 0 when it is none.
func escapeLen(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if hex4(s) >= 0 {
			return 6
		}
	}
	return 0
}

// valueEnd returns the offset after the value that begins at i, or -1.
func valueEnd(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxDepth {
		return -1
	}
	switch c := b[i]; {
	case c == '"':
		end, _ := stringEnd(b, i)
		return end
	case c == '{' || c == '[':
		return compoundEnd(b, i, depth)
	case c == 't':
		return literalEnd(b, i, "true")
	case c == 'f':
		return literalEnd(b, i, "false")
	case c == 'n':
		return literalEnd(b, i, "null")
	}
	return numberEnd(b, i)
}

func literalEnd(b []byte, i int, word string) int {
	if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
		return i + len(word)
	}
	return -1
}

func compoundEnd(b []byte, i, depth int) int {
	object := b[i] == '{'
	end := byte(']')
	if object {
		end = '}'
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == end {
		return i + 1
	}
	for {
		if object {
			if i, _ = stringEnd(b, i); i < 0 {
				return -1
			}
			if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
				return -1
			}
			i = skipSpace(b, i+1)
		}
		if i = valueEnd(b, i, depth+1); i < 0 {
			return -1
		}
		i = skipSpace(b, i)
		switch {
		case i >= len(b):
			return -1
		case b[i] == end:
			return i + 1
		case b[i] != ',':
			return -1
		}
		i = skipSpace(b, i+1)
	}
}

func numberEnd(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = digits(b, i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = digits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i = digits(b, i); i < 0 {
			return -1
		}
	}
	return i
}

// digits skips at least one digit, or returns -1.
func digits(b []byte, i int) int {
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// Valid says whether b is one JSON value, leading and trailing space allowed.
func Valid(b []byte) bool {
	end := valueEnd(b, skipSpace(b, 0), 0)
	return end >= 0 && skipSpace(b, end) == len(b)
}

// AppendText appends the text of a JSON string value to dst. For null and for
// what is no string it appends nothing; ok is false only for a bad escape.
func AppendText(dst, value []byte) (out []byte, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return dst, true
	}
	return appendUnquoted(dst, value[1:len(value)-1])
}

// Text is the text of a JSON string value, "" for anything else.
func Text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	inner := value[1 : len(value)-1]
	for _, c := range inner {
		if c == '\\' || c >= utf8.RuneSelf {
			out, _ := appendUnquoted(make([]byte, 0, len(inner)), inner)
			return string(out)
		}
	}
	return string(inner)
}

// Int is the value of a JSON number, 0 for anything else.
func Int(value []byte) int64 {
	var n int64
	i, neg := 0, false
	if len(value) > 0 && value[0] == '-' {
		i, neg = 1, true
	}
	for ; i < len(value); i++ {
		c := value[i]
		if c < '0' || c > '9' || n > 1<<58 {
			return bigInt(string(value))
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		return -n
	}
	return n
}

// bigInt reads the numbers that are not a few digits; one beyond the range of
// an int64 becomes the nearest that is within.
func bigInt(value string) int64 {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(value, 64)
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	case err != nil:
		return 0
	}
	return int64(f)
}

// True says that a JSON value is true.
func True(value []byte) bool { return string(value) == "true" }

// appendUnquoted resolves the escapes of a string's inside. Invalid UTF-8 and
// lone surrogates become U+FFFD, as with encoding/json.
func appendUnquoted(dst, s []byte) ([]byte, bool) {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '\\':
			n := 0
			dst, n = appendEscape(dst, s[i:])
			if n == 0 {
				return dst, false
			}
			i += n
		case c < utf8.RuneSelf:
			j := i + 1
			for j < len(s) && s[j] < utf8.RuneSelf && s[j] != '\\' {
				j++
			}
			dst = append(dst, s[i:j]...)
			i = j
		default:
			r, size := utf8.DecodeRune(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += size
		}
	}
	return dst, true
}

// appendEscape resolves one escape and returns how many bytes it took, 0 when
// it is none.
func appendEscape(dst, s []byte) ([]byte, int) {
	if len(s) < 2 {
		return dst, 0
	}
	switch s[1] {
	case '"', '\\', '/':
		return append(dst, s[1]), 2
	case 'b':
		return append(dst, '\b'), 2
	case 'f':
		return append(dst, '\f'), 2
	case 'n':
		return append(dst, '\n'), 2
	case 'r':
		return append(dst, '\r'), 2
	case 't':
		return append(dst, '\t'), 2
	case 'u':
		return appendUnicode(dst, s)
	}
	return dst, 0
}

func appendUnicode(dst, s []byte) ([]byte, int) {
	r := hex4(s)
	if r < 0 {
		return dst, 0
	}
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(dst, r), 6
	}
	if low := hex4(s[6:]); low >= 0 {
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			return utf8.AppendRune(dst, full), 12
		}
	}
	return utf8.AppendRune(dst, utf8.RuneError), 6
}

// hex4 reads \uXXXX, or returns -1.
func hex4(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range s[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return -1
		}
	}
	return r
}
