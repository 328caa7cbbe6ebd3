package gemini

import (
	"cmp"
	"encoding/json"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Begun implements [wire.Answer].
func (d *decoder) Begun() bool { return len(d.parts) > 0 }

// Response returns what has arrived. It omits the calls of an incomplete answer,
// because none of them is known to be complete.
func (d *decoder) Response(complete bool) *llm.Response {
	r := &llm.Response{ID: d.id, Model: d.model, Usage: d.usage, RawFinish: d.finish, FinishDetail: d.said}
	if d.finish == "" && d.blocked != "" {
		r.RawFinish = "promptFeedback/" + d.blocked
	}
	r.Usage.Estimated = !d.reported
	calls := 0
	for i := range d.parts {
		p := &d.parts[i]
		switch p.kind {
		case textPart:
			t := llm.Text{Text: p.text.String()}
			if p.signature != "" {
				t.Raw = append(wire.AppendQuoted([]byte(`{"thoughtSignature":`), p.signature), '}')
			}
			r.Parts = append(r.Parts, t)
		case thoughtPart:
			r.Parts = append(r.Parts, llm.Reasoning{Text: p.text.String(), Signature: p.signature})
		case callPart:
			if !complete {
				continue
			}
			calls++
			r.Parts = append(r.Parts, p.toolCall(d.names))
		case mediaPart:
			r.Parts = append(r.Parts, p.media)
		case itemPart:
			r.Parts = append(r.Parts, llm.Item{Type: itemType(p.raw), Raw: p.raw})
		}
	}
	r.Finish = d.neutralFinish(calls)
	return r
}

func (p *part) toolCall(names *wire.Names) llm.ToolCall {
	c := llm.ToolCall{ProviderID: p.id, Name: names.Local(p.name), Args: p.args, Signature: p.signature}
	switch {
	case p.partial != nil && p.partial.open:
		c.Args, c.ArgsText = nil, string(p.partial.encode())
	case p.partial != nil:
		c.Args = p.partial.encode()
	case len(c.Args) == 0 || string(c.Args) == "null":
		c.Args = json.RawMessage("{}")
	}
	return c
}

// itemType returns the member that determines the kind of an item.
func itemType(raw json.RawMessage) string {
	for m := wire.ScanObject(raw); m.Next(); {
		if k := string(m.Key()); k != "thoughtSignature" && k != "thought" {
			return k
		}
	}
	return "signature"
}

func (d *decoder) neutralFinish(calls int) llm.Finish {
	switch d.finish {
	case "":
		if d.blocked != "" {
			return llm.FinishRefusal
		}
		return llm.FinishFailed
	case "STOP":
		if calls > 0 {
			return llm.FinishTool
		}
		return llm.FinishEnd
	case "MAX_TOKENS":
		return llm.FinishLength
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		return llm.FinishMalformed
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE", "MODEL_ARMOR":
		return llm.FinishRefusal
	}
	return llm.FinishFailed
}

// readUsage converts the service's counts: prompt tokens include cached ones; thoughts
// and tool-use prompts are counted separately. The last report counts, except zero
// counts, which relays send if they lost the count.
func (d *decoder) readUsage(v []byte) {
	var u llm.Usage
	var candidates, hosted int64
	seen := false
	for m := wire.ScanObject(v); m.Next(); {
		n := wire.Int(m.Value())
		switch string(m.Key()) {
		case "promptTokenCount":
			u.Input, seen = n, true
		case "candidatesTokenCount":
			candidates = n
		case "thoughtsTokenCount":
			u.Reasoning = n
		case "cachedContentTokenCount":
			u.CacheRead = n
		case "toolUsePromptTokenCount":
			hosted = n
		}
	}
	was := d.usage
	switch {
	case !seen && !d.reported:
		return
	case u.Input == 0 && was.Input > 0:
		u.Input, u.CacheRead = was.Input, was.CacheRead
	default:
		u.Input += hosted
	}
	u.Reasoning = cmp.Or(u.Reasoning, was.Reasoning)
	u.Output = cmp.Or(candidates, was.Output-was.Reasoning) + u.Reasoning
	d.usage, d.reported = u, true
}
