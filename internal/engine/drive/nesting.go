package drive

import "bytes"

// nestedDeeper reports whether a valid JSON text has more levels than most.
func nestedDeeper(text []byte, most int) bool {
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

// MaxNesting is how deep the JSON of a call or an answer may be nested. The
// journal's readers accept 10,000 levels, some of which the event itself takes
// up; no tool takes more than 256.
const MaxNesting = 1000

// NestedTooDeep reports whether a valid JSON text is nested deeper than [MaxNesting].
func NestedTooDeep(text []byte) bool { return nestedDeeper(text, MaxNesting) }
