package wiregate

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
)

// expectedAnswer is what readers agree on in these tests.
const expectedAnswer = `{
	"text": "hello", "refusal": "", "reasoning": {"text": "hm", "signatures": ["sig"]},
	"tool_calls": [{"id": "call_1", "name": "read", "arguments": {"path": "a"}, "arguments_valid": true},
		{"id": "call_2", "name": "read", "arguments": null, "arguments_raw": "{\"pa", "arguments_valid": false}],
	"item_order": ["reasoning", "text", "call", "call"],
	"finish": {"raw": "tool_use", "ai_sdk_unified": "tool-calls"},
	"usage": {"input_total": 10, "output_total": 5, "cache_read": 2, "cache_write": 1, "reasoning": null},
	"response_id": "id", "model": "m",
	"oracle": {"agreement": {"text": ["a", "b"], "reasoning_text": ["a", "b"], "tool_calls": ["a", "b"], "finish_raw": ["a", "b"], "usage": ["a", "b"]}}}`

func rightAnswer() *llm.Response {
	return &llm.Response{
		Parts: llm.Parts{
			llm.Reasoning{Text: "hm", Signature: "sig"}, llm.Text{Text: "hello"},
			llm.ToolCall{ProviderID: "call_1", Name: "read", Args: json.RawMessage(`{ "path" : "a" }`)},
			llm.ToolCall{ProviderID: "call_2", Name: "read", ArgsText: `{"pa`},
		},
		Finish: llm.FinishTool, RawFinish: "tool_use", ID: "id", Model: "m",
		Usage: llm.Usage{Input: 10, Output: 5, CacheRead: 2, CacheWrite: 1},
	}
}

func itemName(p llm.Part) string {
	switch p.(type) {
	case llm.Reasoning:
		return "reasoning"
	case llm.Text:
		return "text"
	}
	return "call"
}

// A gate that lets a wrong reading through proves nothing.
func TestEveryWrongReadingIsFound(t *testing.T) {
	var x Exchange
	if err := json.Unmarshal([]byte(expectedAnswer), &x.Expected); err != nil {
		t.Fatal(err)
	}
	a := &Adapter{ItemType: itemName}
	if d := compareAnswer(a, &x, rightAnswer()); len(d) > 0 {
		t.Fatalf("the right answer is found wrong: %s", d)
	}
	for name, spoil := range map[string]func(*llm.Response){
		"text":      func(r *llm.Response) { r.Parts[1] = llm.Text{Text: "hell"} },
		"thought":   func(r *llm.Response) { r.Parts[0] = llm.Reasoning{Text: "h", Signature: "sig"} },
		"signature": func(r *llm.Response) { r.Parts[0] = llm.Reasoning{Text: "hm"} },
		"call id": func(r *llm.Response) {
			r.Parts[2] = llm.ToolCall{ProviderID: "x", Name: "read", Args: json.RawMessage(`{"path":"a"}`)}
		},
		"arguments": func(r *llm.Response) {
			r.Parts[2] = llm.ToolCall{ProviderID: "call_1", Name: "read", Args: json.RawMessage(`{}`)}
		},
		"repaired": func(r *llm.Response) {
			r.Parts[3] = llm.ToolCall{ProviderID: "call_2", Name: "read", Args: json.RawMessage(`{"pa":""}`)}
		},
		"lost call":  func(r *llm.Response) { r.Parts = r.Parts[:3] },
		"order":      func(r *llm.Response) { r.Parts[0], r.Parts[1] = r.Parts[1], r.Parts[0] },
		"finish":     func(r *llm.Response) { r.Finish = llm.FinishEnd },
		"raw finish": func(r *llm.Response) { r.RawFinish = "tools" },
		"input":      func(r *llm.Response) { r.Usage.Input = 8 },
		"cache":      func(r *llm.Response) { r.Usage.CacheWrite = 0 },
		"id":         func(r *llm.Response) { r.ID = "" },
		"model":      func(r *llm.Response) { r.Model = "n" },
	} {
		r := rightAnswer()
		spoil(r)
		if d := compareAnswer(a, &x, r); len(d) == 0 {
			t.Errorf("a wrong %s goes through", name)
		}
	}
}

func TestDeltasMustBuildUpToTheAnswer(t *testing.T) {
	answer := &llm.Response{Parts: llm.Parts{llm.Text{Text: "hello"}}}
	for name, c := range map[string]struct {
		deltas []llm.Delta
		wrong  bool
	}{
		"all of it":  {deltas: []llm.Delta{{Kind: llm.DeltaText, Text: "hel"}, {Kind: llm.DeltaText, Text: "lo"}}},
		"cut":        {deltas: []llm.Delta{{Kind: llm.DeltaText, Text: "hel"}}, wrong: true},
		"none":       {wrong: true},
		"other part": {deltas: []llm.Delta{{Kind: llm.DeltaText, Index: 1, Text: "hello"}}, wrong: true},
		"other kind": {deltas: []llm.Delta{{Kind: llm.DeltaReasoning, Text: "hello"}}, wrong: true},
		"empty one":  {deltas: []llm.Delta{{Kind: llm.DeltaText, Text: "hello"}, {Kind: llm.DeltaText}}, wrong: true},
	} {
		var live collected
		for _, d := range c.deltas {
			live.add(d)
		}
		if d := live.compare(answer); len(d) > 0 != c.wrong {
			t.Errorf("%s: %v", name, d)
		}
	}
}

func TestRequestsAreComparedByMeaningNotByBytes(t *testing.T) {
	request := func(parts ...llm.Part) *llm.Request {
		return &llm.Request{Messages: []*llm.Message{{Role: llm.RoleAssistant, Parts: parts}}}
	}
	call := llm.ToolCall{ProviderID: "a", Name: "read", Args: json.RawMessage(`{"x": 1, "y": 2}`)}
	other := call
	other.Args = json.RawMessage(`{"y":2,"x":1}`)
	if d := compareRequests(&Scenario{}, request(call, llm.Text{}), request(other)); len(d) > 0 {
		t.Errorf("equal requests differ: %s", d)
	}
	thought := llm.Reasoning{Text: "hm", Signature: "s"}
	for name, got := range map[string]*llm.Request{
		"order": request(other, thought), "signature": request(llm.Reasoning{Text: "hm"}, other), "lost thought": request(other),
	} {
		if d := compareRequests(&Scenario{}, request(thought, call), got); len(d) == 0 {
			t.Errorf("%s: the difference is not found", name)
		}
	}
}

func TestABodyIsCutAsAsked(t *testing.T) {
	body := "a: 1\n\nb: 2\r\n\r\nc"
	for cut, want := range map[Cut]string{
		Unsplit: body, PerEvent: "a: 1\n\n|b: 2\r\n\r\n|c", OneByte: strings.Join(strings.Split(body, ""), "|"),
	} {
		var got []string
		r := newPieceReader([]byte(body), cut, nil)
		for buf := make([]byte, 64); ; {
			n, err := r.Read(buf)
			if err == io.EOF {
				break
			}
			got = append(got, string(buf[:n]))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q", cut, got)
		}
	}
}

func TestAReplayAnswersInOrderAndKeepsWhatItWasSent(t *testing.T) {
	r := Serve(t, Exchange{Status: 200, Body: []byte("one")}, Exchange{Status: 429, Header: http.Header{"Retry-After": {"7"}}, Body: []byte("two")})
	for i, want := range []string{"200 one", "429 two", "429 two"} {
		resp, err := r.Client(OneByte).Post(r.URL, "text/plain", strings.NewReader(want))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if got := resp.Status[:3] + " " + string(body); err != nil || got != want {
			t.Errorf("answer %d: %q, %v", i, got, err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if sent := r.Requests(); len(sent) != 3 || string(sent[1]) != "429 two" {
		t.Errorf("kept %q", sent)
	}
}
