package wiregate

import (
	"encoding/base64"

	"github.com/pawlrun/pawl/llm"
)

// entry is one part of a conversation, reduced to what it means.
type entry struct {
	Role, Kind, Text, ID, Name, Signature string
	Args, Raw                             any
	IsError                               bool
	Tools                                 []string
}

// entries flattens messages. Message bounds are dropped: some recorders send
// each result in a message of its own.
func entries(messages []*llm.Message) []entry {
	var out []entry
	for _, m := range messages {
		for _, p := range m.Parts {
			if e, ok := entryOf(p); ok {
				e.Role = string(m.Role)
				out = append(out, e)
			}
		}
	}
	return out
}

func entryOf(p llm.Part) (entry, bool) {
	switch p := p.(type) {
	case llm.Text:
		return entry{Kind: "text", Text: p.Text, Raw: rawMeaning(p.Raw)}, p.Text != ""
	case llm.Reasoning:
		return entry{Kind: "reasoning", Text: p.Text, Signature: p.Signature, Raw: rawMeaning(p.Raw)}, true
	case llm.Media:
		return mediaEntry(p), true
	case llm.ToolCall:
		e := entry{Kind: "call", ID: p.ProviderID, Name: p.Name, Text: p.ArgsText, Signature: p.Signature}
		e.Args = rawMeaning(p.Args)
		return e, true
	case llm.ToolResult:
		e := entry{Kind: "result", ID: p.ProviderID, Text: p.Output, IsError: p.IsError, Tools: p.Tools}
		var media []entry
		for _, m := range p.Media {
			media = append(media, mediaEntry(m))
		}
		e.Args = media
		return e, true
	case llm.Item:
		return entry{Kind: "item", Name: p.Type, Raw: rawMeaning(p.Raw)}, true
	}
	return entry{}, false
}

func mediaEntry(m llm.Media) entry {
	return entry{Kind: "media", Name: m.MediaType, ID: m.URL, Text: base64.StdEncoding.EncodeToString(m.Data)}
}

func rawMeaning(raw []byte) any {
	if len(raw) == 0 {
		return nil
	}
	return meaning(raw)
}

// offered is a tool as a request means it.
type offered struct {
	Name, Description string
	Schema            any
	Deferred, Search  bool
}

func offers(tools []llm.ToolDef) []offered {
	out := make([]offered, len(tools))
	for i, t := range tools {
		out[i] = offered{Name: t.Name, Description: t.Description, Schema: rawMeaning(t.Schema), Deferred: t.Deferred, Search: t.Search}
	}
	return out
}

// compareRequests holds the meaning of an encoded request against that of the
// recorded one: the same conversation, in the same order.
func compareRequests(s *Scenario, want, got *llm.Request) differences {
	var d differences
	r := recorders[s.ID]
	d.want("messages", r.read(entries(got.Messages)), r.read(entries(want.Messages)))
	d.want("system", got.System, want.System)
	d.want("model", got.Model, want.Model)
	return d
}

// tail is what the client said since the last answer; false when there is none.
func tail(messages []*llm.Message) ([]*llm.Message, bool) {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == llm.RoleAssistant {
			return messages[i+1:], true
		}
	}
	return nil, false
}

// results are the tool results among messages, in their order.
func results(messages []*llm.Message) []llm.ToolResult {
	var out []llm.ToolResult
	for _, m := range messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				out = append(out, r)
			}
		}
	}
	return out
}

// said are the messages among messages that hold more than tool results.
func said(messages []*llm.Message) []*llm.Message {
	var out []*llm.Message
	for _, m := range messages {
		var parts llm.Parts
		for _, p := range m.Parts {
			if _, ok := p.(llm.ToolResult); !ok {
				parts = append(parts, p)
			}
		}
		if len(parts) > 0 {
			out = append(out, &llm.Message{Role: llm.RoleUser, Parts: parts})
		}
	}
	return out
}
