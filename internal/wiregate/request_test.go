package wiregate

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/llm"
)

// requestGate feeds the recorded answers of every session, and what its client
// said to them, through the conversation's history. The request that follows
// must mean what the recorded one means: the same calls, results and thoughts
// with their signatures, in the same order.
func requestGate(t *testing.T, a Adapter) {
	r := report{name: "request/" + a.API}
	for _, s := range load(t, a.API) {
		a := a.of(&s)
		if len(s.Exchanges) < 2 || failsMidway(&s) {
			continue
		}
		r.run(t, s.ID, func(t *testing.T) string {
			return checkRequests(t, a, &s)
		})
	}
	r.finish(t)
}

func checkRequests(t *testing.T, a *Adapter, s *Scenario) string {
	var h history.History
	memo := new(llm.Memo)
	for i := range s.Exchanges {
		x := &s.Exchanges[i]
		if x.Request == nil && i > 0 {
			continue // a poll for the same answer, which has no body
		}
		if x.Request == nil {
			return "the recorder kept no request of exchange " + x.Name
		}
		recorded, err := a.Parse(x.Request)
		if err != nil {
			t.Fatalf("parse the recorded request of %s: %v", x.Name, err)
		}
		if why := advance(t, a, s, &h, i, &recorded); why != "" {
			return why
		}
		compareEncoded(t, a, s, &h, memo, x.Name, &recorded)
	}
	return ""
}

// advance brings the history to where the i-th request was sent.
func advance(t *testing.T, a *Adapter, s *Scenario, h *history.History, i int, recorded *llm.Request) string {
	if before, err := h.Messages(); err == nil && (i == 0 || turns(recorded.Messages) != turns(before)+1) {
		// The first request, or one that went back to an earlier point.
		*h = history.History{}
		h.Append(sentBy(recorded.Messages, a.origin(recorded.Model))...)
		return ""
	}
	since, ok := tail(recorded.Messages)
	if !ok {
		return "request " + s.Exchanges[i].Name + " begins a new conversation"
	}
	resp, err := read(t, a, s, &s.Exchanges[i-1], Unsplit, true)
	if err != nil {
		t.Fatalf("decode %s: %v", s.Exchanges[i-1].Name, err)
	}
	if before, err := h.Messages(); err == nil && items(recorded.Messages) > items(before)+items([]*llm.Message{{Parts: resp.Parts}}) {
		// Its client answered an item of the service's by one of its own.
		*h = history.History{}
		h.Append(sentBy(recorded.Messages, a.origin(recorded.Model))...)
		return ""
	}
	if err := answer(h, resp, a.origin(recorded.Model), i, results(since)); err != nil {
		t.Fatalf("%s: %v", s.Exchanges[i].Name, err)
	}
	h.Append(said(since)...)
	return ""
}

// items counts what a service ran on its side.
func items(messages []*llm.Message) int {
	n := 0
	for _, m := range messages {
		for _, p := range m.Parts {
			if _, ok := p.(llm.Item); ok {
				n++
			}
		}
	}
	return n
}

// sentBy is a conversation whose answers are a model's.
func sentBy(messages []*llm.Message, origin string) []*llm.Message {
	out := make([]*llm.Message, len(messages))
	for i, m := range messages {
		from := *m
		if m.Role == llm.RoleAssistant {
			from.Origin = origin
		}
		out[i] = &from
	}
	return out
}

// turns counts the answers of the model in a conversation. Some wires give each
// piece of an answer as a message of its own; neighbours are one answer.
func turns(messages []*llm.Message) int {
	n := 0
	for i, m := range messages {
		if m.Role == llm.RoleAssistant && (i == 0 || messages[i-1].Role != llm.RoleAssistant) {
			n++
		}
	}
	return n
}

// answer adds a response and the results of its calls, as the engine would:
// every call under an id of ours.
func answer(h *history.History, resp *llm.Response, origin string, turn int, fed []llm.ToolResult) error {
	var calls []llm.ToolCall
	for i, p := range resp.Parts {
		if c, ok := p.(llm.ToolCall); ok {
			c.CallID = fmt.Sprintf("run-%d-%d", turn, len(calls)+1)
			resp.Parts[i] = c
			calls = append(calls, c)
		}
	}
	h.Assistant(resp.Parts, origin)
	if len(calls) != len(fed) {
		return fmt.Errorf("%d calls and %d results", len(calls), len(fed))
	}
	if len(calls) == 0 {
		return nil
	}
	ordered := make([]llm.ToolResult, len(calls))
	for i, c := range calls {
		if err := h.Call(i, event.ToolCall{CallID: c.CallID, Args: c.Args, ArgsText: c.ArgsText}); err != nil {
			return err
		}
		for n, r := range fed {
			// Where calls have no ids, results come in their order.
			if r.ProviderID == c.ProviderID && (c.ProviderID != "" || n == i) {
				r.CallID, r.Name = c.CallID, c.Name
				ordered[i] = r
			}
		}
	}
	return h.Results(ordered)
}

// compareEncoded encodes the conversation as the next request, with a warm memo
// and without one: the same bytes, and the recorded meaning.
func compareEncoded(t *testing.T, a *Adapter, s *Scenario, h *history.History, memo *llm.Memo, name string, recorded *llm.Request) {
	messages, err := h.Messages()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	m := a.New("http://unused.invalid", nil)
	req := llm.Request{
		Model: recorded.Model, System: recorded.System, Tools: recorded.Tools, ProviderTools: recorded.ProviderTools,
		MaxTokens: recorded.MaxTokens, Schema: recorded.Schema, Messages: messages,
	}
	cold := encode(t, m, req, name)
	req.Memo = memo
	body := encode(t, m, req, name)
	if !bytes.Equal(cold, body) {
		t.Errorf("%s: the memo changes the bytes:\nwithout %s\nwith    %s", name, cold, body)
	}
	if err := lint(s, body); err != nil {
		t.Errorf("%s: %v\n%s", name, err, body)
	}
	got, err := a.Parse(body)
	if err != nil {
		t.Fatalf("%s: our own request does not parse: %v\n%s", name, err, body)
	}
	d := compareRequests(s, recorded, &got)
	d.want("tools", offers(got.Tools), offers(recorded.Tools))
	d.report(t, name)
}

func encode(t *testing.T, m Model, req llm.Request, name string) []byte {
	t.Helper()
	enc, err := m.Encode(&req)
	if err != nil {
		t.Fatalf("encode %s: %v", name, err)
	}
	return bytes.Join(enc.Segments, nil)
}
