package wire

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendText appends the text of a JSON string to dst. It appends nothing for null and
// other values; ok is false only for an invalid escape.
func AppendText(dst, value []byte) (out []byte, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return dst, true
	}
	return appendUnquoted(dst, value[1:len(value)-1])
}

// Text returns the text of a JSON string, "" for anything else.
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

// Int returns the value of a JSON number, 0 for anything else.
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

// bigInt parses numbers with many digits or in other forms; it limits the result to the
// range of int64.
func bigInt(value string) int64 {
	if value == "" || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return 0 // null, for example, for which strconv would create an error
	}
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

// True reports whether a JSON value is true.
func True(value []byte) bool { return string(value) == "true" }

// appendUnquoted resolves the escapes in the content of a string. Invalid UTF-8 and
// unpaired surrogates become U+FFFD, as in encoding/json.
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

// appendEscape resolves one escape and returns its length, 0 if it is invalid.
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

// hex4 parses \uXXXX, or returns -1.
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
