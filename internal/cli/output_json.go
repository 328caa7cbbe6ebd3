package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"
)

// jsonOut returns the writer for JSON. On a terminal it escapes control characters,
// which occur only in strings, so the JSON keeps its meaning. Other readers receive
// the bytes as they are.
func (a *app) jsonOut() io.Writer {
	if screenOf(a.out, os.Getenv).terminal {
		return harmlessJSON{a.out}
	}
	return a.out
}

// harmlessJSON escapes in whole lines of JSON what [harmless] replaces in text.
type harmlessJSON struct{ out io.Writer }

func (h harmlessJSON) Write(lines []byte) (int, error) {
	if _, err := io.WriteString(h.out, escapeJSON(string(lines))); err != nil {
		return 0, err
	}
	return len(lines), nil
}

func escapeJSON(lines string) string {
	if harmless(lines) == lines {
		return lines
	}
	var b strings.Builder
	for _, r := range lines {
		switch s := string(r); {
		case harmless(s) == s:
			b.WriteString(s)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
