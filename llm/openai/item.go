package openai

import (
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// output is an item of an answer as received. Its fields are still encoded.
type output struct {
	raw       []byte
	kind      string
	id        []byte
	callID    []byte
	name      []byte
	namespace []byte
	execution []byte
	arguments []byte
	input     []byte
	phase     []byte
	status    []byte
	content   []byte
	summary   []byte
}

func readOutput(raw []byte) (output, error) {
	o := output{raw: raw}
	m := wire.ScanObject(raw)
	for m.Next() {
		switch v := m.Value(); string(m.Key()) {
		case "type":
			o.kind = wire.Text(v)
		case "id":
			o.id = v
		case "call_id":
			o.callID = v
		case "name":
			o.name = v
		case "namespace":
			o.namespace = v
		case "execution":
			o.execution = v
		case "arguments":
			o.arguments = v
		case "input":
			o.input = v
		case "phase":
			o.phase = v
		case "status":
			o.status = v
		case "content":
			o.content = v
		case "summary":
			o.summary = v
		}
	}
	return o, m.Err()
}

// settled is the result of interpreting an item.
type settled struct {
	parts   llm.Parts
	refusal bool
	// cut reports that the item is incomplete, whatever the answer's status is.
	cut bool
}

// as returns the kind by which the item's deltas are decoded: every call that the
// client answers counts as a call.
func (o *output) as() itemKind {
	if o.kind == customCall || o.clientSearch() {
		return kindCall
	}
	return itemKind(o.kind)
}

// settle interprets a complete item. It copies the data that it keeps.
func (o *output) settle(offered *offered) settled {
	switch o.as() {
	case kindMessage:
		return o.message()
	case kindReasoning:
		return settled{parts: llm.Parts{o.reasoning()}}
	case kindCall:
		call := o.call(offered)
		return settled{parts: llm.Parts{call}, cut: wire.Text(o.status) == "incomplete"}
	}
	return settled{parts: llm.Parts{llm.Item{Type: o.kind, Raw: clone(o.raw)}}}
}

func (o *output) message() settled {
	var s settled
	kept := keptText{id: wire.Text(o.id), phase: wire.Text(o.phase)}
	for c := wire.ScanArray(o.content); c.Next(); {
		text, of := readContent(c.Value())
		of.id, of.phase = kept.id, kept.phase
		s.refusal = s.refusal || of.refusal
		s.parts = append(s.parts, llm.Text{Text: text, Raw: of.raw()})
	}
	return s
}

func readContent(raw []byte) (string, keptText) {
	var text, refusal, kind []byte
	var kept keptText
	for m := wire.ScanObject(raw); m.Next(); {
		switch v := m.Value(); string(m.Key()) {
		case "type":
			kind = v
		case "text":
			text = v
		case "refusal":
			refusal = v
		case "annotations":
			kept.annotations = v
		}
	}
	if kept.refusal = wire.Text(kind) == "refusal"; kept.refusal {
		text = refusal
	}
	return wire.Text(text), kept
}

// reasoning keeps the whole item, because the service needs it back unchanged.
func (o *output) reasoning() llm.Reasoning {
	var b strings.Builder
	for _, list := range [][]byte{o.summary, o.content} {
		for c := wire.ScanArray(list); c.Next(); {
			text, _ := readContent(c.Value())
			if b.Len() > 0 && text != "" {
				b.WriteString(thoughtBreak)
			}
			b.WriteString(text)
		}
	}
	return llm.Reasoning{Text: b.String(), Raw: clone(o.raw)}
}

// thoughtBreak separates the pieces of a reasoning summary.
const thoughtBreak = "\n\n"

func (o *output) call(offered *offered) llm.ToolCall {
	kept := keptCall{id: wire.Text(o.id), namespace: wire.Text(o.namespace)}
	if o.kind != string(kindCall) {
		kept.kind = o.kind
	}
	c := llm.ToolCall{ProviderID: wire.Text(o.callID), Name: offered.nameOf(o), Raw: kept.raw()}
	if kept.kind == customCall {
		c.Args = customArgs(wire.Text(o.input))
		return c
	}
	c.Args, c.ArgsText = arguments(o.arguments)
	return c
}

// arguments decodes the arguments of a call: a string that contains JSON, or JSON
// itself, which some services send.
func arguments(value []byte) (json.RawMessage, string) {
	if len(value) > 0 && value[0] != '"' && string(value) != "null" {
		return clone(value), ""
	}
	return wire.Arguments(wire.Text(value))
}

func clone(b []byte) json.RawMessage { return append(json.RawMessage(nil), b...) }
