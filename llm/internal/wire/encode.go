package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/pawlrun/pawl/llm"
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

// AppendExtra appends the owner's additional members of a request, each with a comma
// before it, in the order of their names, so that the bytes are always the same. taken
// reports which members the request sets itself.
func AppendExtra(dst []byte, extra map[string]json.RawMessage, taken func(name string) bool) []byte {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if taken(name) {
			continue
		}
		dst = append(AppendQuoted(append(dst, ','), name), ':')
		dst = AppendCompact(dst, extra[name], "null")
	}
	return dst
}

// AddParted adds encoded messages, each of which begins with a comma, to a body. It
// drops the comma of the first message if nothing precedes it.
func AddParted(body *llm.Assembly, messages []llm.Segment, first bool) {
	for _, seg := range messages {
		if len(seg.Bytes) == 0 {
			continue
		}
		if first {
			seg.Bytes, first = seg.Bytes[1:], false
		}
		body.Add(seg)
	}
}

// WithEnd returns a request with another end, for example to ask for the whole answer
// instead of a stream. It shares the other pieces and does not change them.
func WithEnd(e *llm.Encoded, from, to []byte) *llm.Encoded {
	last := len(e.Segments) - 1
	if last < 0 || string(e.Segments[last]) != string(from) {
		return e
	}
	segments := slices.Clone(e.Segments)
	segments[last] = to
	return &llm.Encoded{Segments: segments, Digest: e.Digest}
}

// Encoded returns a request in streamed form: as it was encoded before, or as the model
// encodes it now.
func Encoded(req *llm.Request, model llm.Encoder) (*llm.Encoded, error) {
	if req.Encoded != nil {
		return req.Encoded, nil
	}
	return model.Encode(req)
}

// plainPrefix is the part of a plain request before its messages.
type plainPrefix struct {
	Model         string          `json:"model,omitempty"`
	System        string          `json:"system,omitempty"`
	Tools         []llm.ToolDef   `json:"tools,omitempty"`
	MaxTokens     int             `json:"max_tokens,omitempty"`
	Temperature   *float64        `json:"temperature,omitempty"`
	Schema        json.RawMessage `json:"schema,omitempty"`
	ProviderTools []string        `json:"provider_tools,omitempty"`
}

// Plain encodes a request in Pawl's own format, a line of JSON for each piece, for
// models that send nothing, so that their runs can be replayed byte for byte too.
func Plain(req *llm.Request) (*llm.Encoded, error) {
	var broken error
	line := func(dst []byte, v any) []byte {
		b, err := json.Marshal(v)
		if err != nil && broken == nil {
			broken = fmt.Errorf("encode the request: %w", err)
		}
		return append(append(dst, b...), '\n')
	}
	const key = "plain"
	body := llm.NewAssembly(len(req.Messages) + 1)
	body.Add(req.Memo.RequestPrefix(key, "", req, func() []byte {
		return line(nil, plainPrefix{req.Model, req.System, req.Tools, req.MaxTokens, req.Temperature, req.Schema, req.ProviderTools})
	}))
	for _, seg := range req.Memo.Messages(key, req.Messages, func(dst []byte, m *llm.Message) []byte { return line(dst, m) }) {
		body.Add(seg)
	}
	return body.Encoded(), broken
}
