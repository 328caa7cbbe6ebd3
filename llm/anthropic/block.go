package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

type blockKind uint8

const (
	kindText blockKind = iota + 1
	kindThinking
	// kindRedacted: thinking that the service has encrypted.
	kindRedacted
	kindToolUse
	// kindItem: anything else; it is sent back unchanged.
	kindItem
)

// block is one content block of an answer in progress.
type block struct {
	index int64
	kind  blockKind
	open  bool
	// part is its index among the answer's parts, -1 before it has one.
	part int
	// text is prose, reasoning, or the bytes of an input.
	text      strings.Builder
	signature strings.Builder
	id, name  string
	// wireType is the service's name for the kind of an item.
	wireType string
	// first is the text in the block's start event, still encoded.
	first []byte
	// input is the input in the block's start event, nil if it is empty.
	input json.RawMessage
	// raw is the whole start event of an encrypted block or an item.
	raw json.RawMessage
	// amended holds later deltas of an item, nil without any.
	amended *amendment
	// more holds the members without a place in the neutral form.
	more      []byte
	citations []byte
}

// prose reports whether an incomplete block of this kind is still useful.
func (b *block) prose() bool { return b.kind == kindText || b.kind == kindThinking }

func newBlock(index int64, object []byte) (*block, error) {
	b := &block{index: index, open: true, part: -1}
	if b.wireType = typeOf(object); b.wireType == "" {
		return nil, fmt.Errorf("it has no type")
	}
	switch b.wireType {
	case "text":
		b.kind = kindText
	case "thinking":
		b.kind = kindThinking
	case "tool_use":
		b.kind = kindToolUse
	case "redacted_thinking":
		b.kind, b.raw = kindRedacted, compact(object)
		return b, nil
	default:
		b.kind, b.raw = kindItem, compact(object)
		return b, nil
	}
	m := wire.ScanObject(object)
	for m.Next() {
		if err := b.member(string(m.Key()), m.Value()); err != nil {
			return nil, err
		}
	}
	return b, m.Err()
}

func typeOf(object []byte) string { return wire.Text(wire.Member(object, "type")) }

func compact(raw []byte) json.RawMessage { return wire.AppendCompact(nil, raw, "null") }

// member applies one member of a block's start event.
func (b *block) member(key string, value []byte) error {
	switch {
	case key == "type" || string(value) == "null":
	case key == "text" && b.kind == kindText, key == "thinking" && b.kind == kindThinking:
		b.first = value
	case key == "signature" && b.kind == kindThinking:
		return b.sign(value)
	case key == "citations" && b.kind == kindText:
		m := wire.ScanArray(value)
		for m.Next() {
			b.cite(m.Value())
		}
		return m.Err()
	case b.kind != kindToolUse:
		b.keep(key, value)
	case key == "id":
		b.id = wire.Text(value)
	case key == "name":
		b.name = wire.Text(value)
	case key == "input":
		if m := wire.ScanObject(value); m.Next() || m.Err() != nil {
			b.input = compact(value)
		}
	case key == "caller" && callerIsModel(value):
	default:
		b.keep(key, value)
	}
	return nil
}

// callerIsModel reports whether the model itself made a call, which is the service's
// default.
func callerIsModel(caller []byte) bool { return typeOf(caller) == "direct" }

func (b *block) keep(key string, value []byte) {
	b.more = append(b.more, ',')
	b.more = wire.AppendQuoted(b.more, key)
	b.more = append(b.more, ':')
	b.more = wire.AppendCompact(b.more, value, "null")
}

func (b *block) sign(value []byte) error {
	text, ok := wire.AppendText(nil, value)
	if !ok {
		return fmt.Errorf("%w: block %d: bad escape in a signature", errMalformed, b.index)
	}
	b.signature.Write(text)
	return nil
}

func (b *block) cite(citation []byte) {
	if len(b.citations) > 0 {
		b.citations = append(b.citations, ',')
	}
	b.citations = wire.AppendCompact(b.citations, citation, "null")
}

// toPart returns the block in neutral form.
func (b *block) toPart(names *wire.Names) llm.Part {
	switch b.kind {
	case kindText:
		if len(b.citations) > 0 {
			b.more = append(append(append(b.more, `,"citations":[`...), b.citations...), ']')
		}
		return llm.Text{Text: b.text.String(), Raw: b.members()}
	case kindThinking:
		return llm.Reasoning{Text: b.text.String(), Signature: b.signature.String(), Raw: b.members()}
	case kindRedacted:
		return llm.Reasoning{Raw: b.raw}
	case kindToolUse:
		return b.toCall(names)
	}
	return llm.Item{Type: b.wireType, Raw: b.whole()}
}

// members returns the additional members as an object, nil if there are none.
func (b *block) members() json.RawMessage {
	if len(b.more) == 0 {
		return nil
	}
	raw := make(json.RawMessage, 0, len(b.more)+1)
	raw = append(append(raw, '{'), b.more[1:]...)
	return append(raw, '}')
}

func (b *block) toCall(names *wire.Names) llm.ToolCall {
	call := llm.ToolCall{ProviderID: b.id, Name: names.Local(b.name), Raw: b.members()}
	call.Args, call.ArgsText = wire.Arguments(b.text.String())
	return call
}

// whole returns an item with the input that arrived after its start.
func (b *block) whole() json.RawMessage {
	input := []byte(b.text.String())
	if len(input) == 0 || !wire.Valid(input) {
		return b.raw
	}
	out := []byte{'{'}
	m := wire.ScanObject(b.raw)
	for m.Next() {
		if string(m.Key()) == "input" {
			continue
		}
		out = wire.AppendQuoted(out, string(m.Key()))
		out = append(append(append(out, ':'), m.Value()...), ',')
	}
	out = append(append(out, `"input":`...), input...)
	return append(out, '}')
}
