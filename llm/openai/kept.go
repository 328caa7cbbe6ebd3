package openai

import (
	"encoding/json"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// keptText is the content of a text part's Raw: everything of its item that the part
// does not contain, so that nothing is journalled twice.
type keptText struct {
	id    string
	phase string
	// refusal reports that the text is the model's refusal, which has another content
	// type.
	refusal     bool
	annotations []byte
}

func (k *keptText) raw() json.RawMessage {
	b := appendMember(nil, "id", k.id)
	b = appendMember(b, "phase", k.phase)
	if k.refusal {
		b = appendMember(b, "type", "refusal")
	}
	if len(k.annotations) > 2 {
		b = append(b, `,"annotations":`...)
		b = wire.AppendCompact(b, k.annotations, "[]")
	}
	return object(b)
}

func readKeptText(raw []byte) keptText {
	var k keptText
	for m := wire.ScanObject(raw); m.Next(); {
		switch string(m.Key()) {
		case "id":
			k.id = wire.Text(m.Value())
		case "phase":
			k.phase = wire.Text(m.Value())
		case "type":
			k.refusal = wire.Text(m.Value()) == "refusal"
		case "annotations":
			k.annotations = m.Value()
		}
	}
	return k
}

// appendContent appends the text as a piece of a message's content, unless it
// is empty.
func (k *keptText) appendContent(b []byte, text string) []byte {
	if text == "" {
		return b
	}
	if k.refusal {
		b = append(b, `,{"type":"refusal"`...)
		b = appendMember(b, "refusal", text)
		return append(b, '}')
	}
	b = append(b, `,{"type":"output_text"`...)
	b = appendMember(b, "text", text)
	b = append(b, `,"annotations":`...)
	if len(k.annotations) == 0 {
		return append(b, "[]}"...)
	}
	b = wire.AppendCompact(b, k.annotations, "[]")
	return append(b, '}')
}

// keptCall is the content of a call's Raw.
type keptCall struct {
	id        string
	namespace string
	// kind is the item's type if it is not a function call: [customCall] or
	// [searchCall].
	kind string
}

// The other items that are calls.
const (
	// customCall is a call of a tool that takes text instead of JSON.
	customCall = "custom_tool_call"
	// searchCall is a search for tools.
	searchCall = "tool_search_call"
)

func (k *keptCall) raw() json.RawMessage {
	b := appendMember(nil, "id", k.id)
	b = appendMember(b, "namespace", k.namespace)
	b = appendMember(b, "type", k.kind)
	return object(b)
}

func readKeptCall(raw []byte) keptCall {
	var k keptCall
	for m := wire.ScanObject(raw); m.Next(); {
		switch string(m.Key()) {
		case "id":
			k.id = wire.Text(m.Value())
		case "namespace":
			k.namespace = wire.Text(m.Value())
		case "type":
			k.kind = wire.Text(m.Value())
		}
	}
	return k
}

// object makes an object of members that each begin with a comma.
func object(members []byte) json.RawMessage {
	if len(members) == 0 {
		return nil
	}
	members[0] = '{'
	return append(members, '}')
}

// customArgs wraps the text input of a custom tool.
func customArgs(text string) json.RawMessage {
	return append(wire.AppendKept([]byte(`{"input":`), text), '}')
}

// customInput unwraps the text that customArgs wrapped.
func customInput(args []byte) string { return wire.Text(wire.Member(args, "input")) }
