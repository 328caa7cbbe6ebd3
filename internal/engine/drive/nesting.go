package drive

import "bytes"

// NestedDeeper reports whether a valid JSON text has more levels than most.
func NestedDeeper(text []byte, most int) bool {
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) <= most {
		return false // the usual case
	}
	depth := 0
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			if depth++; depth > most {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}
