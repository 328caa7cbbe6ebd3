package conform

import "strings"

// idLike reports whether a text consists of at most limit letters, digits, "_", "-" and
// the characters in also.
func idLike(s string, limit int, also string) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			continue
		}
		if strings.IndexByte(also, c) < 0 {
			return false
		}
	}
	return true
}

// blank reports whether a JSON string contains only white space.
func blank(value []byte) bool {
	if len(value) < 2 || value[0] != '"' {
		return true
	}
	for i := 1; i < len(value)-1; i++ {
		switch c := value[i]; {
		case c == ' ':
		case c == '\\' && i+1 < len(value)-1 && (value[i+1] == 'n' || value[i+1] == 't' || value[i+1] == 'r'):
			i++
		default:
			return false
		}
	}
	return true
}

// given reports whether a value is present: not null and not an empty text, list or
// object.
func given(value []byte) bool {
	switch string(value) {
	case "", "null", `""`, "[]", "{}":
		return false
	}
	return true
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

func isList(value []byte) bool { return len(value) > 0 && value[0] == '[' }

func isText(value []byte) bool { return len(value) > 0 && value[0] == '"' }
