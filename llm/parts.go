package llm

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
)

// Parts is an ordered list of parts. Its JSON form is an array of objects with their
// kind in "type".
type Parts []Part

// Text concatenates the text parts.
func (p Parts) Text() string {
	var only string
	var b *strings.Builder
	for _, part := range p {
		t, ok := part.(Text)
		switch {
		case !ok || t.Text == "":
		case b != nil:
			b.WriteString(t.Text)
		case only == "":
			only = t.Text
		default:
			b = &strings.Builder{}
			b.WriteString(only)
			b.WriteString(t.Text)
		}
	}
	if b != nil {
		return b.String()
	}
	return only
}

// ToolCalls returns the tool calls in the model's order.
func (p Parts) ToolCalls() []ToolCall {
	var calls []ToolCall
	for _, part := range p {
		if c, ok := part.(ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// Media returns the images and files, including those in the results of calls.
func (p Parts) Media() iter.Seq[Media] {
	return func(yield func(Media) bool) {
		for _, part := range p {
			switch part := part.(type) {
			case Media:
				if !yield(part) {
					return
				}
			case ToolResult:
				for _, m := range part.Media {
					if !yield(m) {
						return
					}
				}
			}
		}
	}
}

// MarshalJSON writes each part with its kind as the first member.
func (p Parts) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, part := range p {
		body, err := marshalPlain(part)
		if err != nil {
			return nil, fmt.Errorf("llm: encode %s part: %w", part.kind(), err)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"type":"`...)
		out = append(out, part.kind()...)
		out = append(out, '"')
		if len(body) > 2 {
			out = append(out, ',')
		}
		out = append(out, body[1:]...)
	}
	return append(out, ']'), nil
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (p *Parts) UnmarshalJSON(data []byte) error {
	var raws []json.RawMessage
	if err := json.Unmarshal(data, &raws); err != nil {
		return fmt.Errorf("llm: decode parts: %w", err)
	}
	parts := make(Parts, 0, len(raws))
	for _, raw := range raws {
		part, err := decodePart(raw)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	*p = parts
	return nil
}

func decodePart(raw json.RawMessage) (Part, error) {
	var head struct {
		Type partKind `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("llm: decode part: %w", err)
	}
	switch head.Type {
	case kindText:
		return decodeAs[Text](raw)
	case kindReasoning:
		return decodeAs[Reasoning](raw)
	case kindMedia:
		return decodeAs[Media](raw)
	case kindToolCall:
		return decodeAs[ToolCall](raw)
	case kindToolResult:
		return decodeAs[ToolResult](raw)
	case kindItem:
		return decodeAs[Item](raw)
	}
	return nil, fmt.Errorf("llm: decode part: unknown type %q", head.Type)
}

func decodeAs[T Part](raw json.RawMessage) (Part, error) {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("llm: decode %s part: %w", v.kind(), err)
	}
	return v, nil
}

// marshalPlain is json.Marshal without HTML escaping: a request that sends back "<"
// must contain the same byte, or the provider's cached prefix breaks.
func marshalPlain(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
