package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendQuoted appends s as a JSON string. It escapes only what must be escaped, so
// that a provider gets its text back unchanged. U+FFFD replaces invalid UTF-8 and
// U+0000, where some services truncate a prompt.
func AppendQuoted(dst []byte, s string) []byte { return appendQuoted(dst, s, "\uFFFD") }

// AppendKept is AppendQuoted for a value that is stored and not sent: it keeps U+0000.
func AppendKept(dst []byte, s string) []byte { return appendQuoted(dst, s, `\u0000`) }

func appendQuoted(dst []byte, s, zero string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		if c == 0 {
			dst = append(dst, zero...)
		} else {
			dst = appendEscaped(dst, c)
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendCompact appends raw JSON without insignificant space, or fallback if raw is not
// JSON. It replaces characters that services reject, like [AppendQuoted].
func AppendCompact(dst []byte, raw json.RawMessage, fallback string) []byte {
	buf := bytes.NewBuffer(dst)
	if err := json.Compact(buf, sendable(raw)); err != nil {
		return append(dst, fallback...)
	}
	return buf.Bytes()
}
