package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pawlrun/pawl/llm"
)

// replacement is U+FFFD as an escape. It has the length of the escapes that it
// replaces.
const replacement = `\ufffd`

// Sound returns a JSON text with U+FFFD in place of invalid characters: unpaired
// surrogates and invalid UTF-8. A service that sent such a text rejects a request that
// contains it.
func Sound(raw json.RawMessage) json.RawMessage {
	return replaceEscapes(raw, func(rune) bool { return false })
}

// sendable is [Sound] that also replaces U+0000, where some services truncate a prompt.
func sendable(raw json.RawMessage) json.RawMessage {
	return replaceEscapes(raw, func(r rune) bool { return r == 0 })
}

// replaceEscapes returns raw itself if there is nothing to replace.
func replaceEscapes(raw json.RawMessage, refused func(rune) bool) json.RawMessage {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	out := raw
	for i := 0; i < len(raw); {
		at := bytes.IndexByte(raw[i:], '\\')
		if at < 0 {
			break
		}
		i += at
		length, bad := 2, false
		if r := hex4(raw[i:]); r >= 0 {
			length, bad = 6, utf16.IsSurrogate(r) || refused(r)
			if low := hex4(raw[i+6:]); low >= 0 && utf16.DecodeRune(r, low) != utf8.RuneError {
				length, bad = 12, false
			}
		}
		if bad {
			if &out[0] == &raw[0] {
				out = bytes.Clone(raw)
			}
			copy(out[i:], replacement)
		}
		i += length
	}
	return out
}

// keepSound replaces invalid characters in the encoded values that an answer keeps,
// because they could not be sent back.
func keepSound(parts llm.Parts) {
	for i, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if mend(&p.Raw) {
				parts[i] = p
			}
		case llm.Reasoning:
			if mend(&p.Raw) {
				parts[i] = p
			}
		case llm.ToolCall:
			if args := mend(&p.Args); mend(&p.Raw) || args {
				parts[i] = p
			}
		case llm.Item:
			if mend(&p.Raw) {
				parts[i] = p
			}
		}
	}
}

// mend reports whether it changed the value.
func mend(raw *json.RawMessage) bool {
	if len(*raw) == 0 {
		return false
	}
	sound := Sound(*raw)
	changed := &sound[0] != &(*raw)[0]
	*raw = sound
	return changed
}
