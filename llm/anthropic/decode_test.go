package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
)

func messageEnd(reason string, output int) string {
	return fmt.Sprintf(`data: {"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":%d}}`, reason, output) +
		"\n\ndata: {\"type\":\"message_stop\"}\n\n"
}

const messageBegin = `data: {"type":"message_start","message":{"id":"m","model":"c","usage":` +
	`{"input_tokens":9,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":1}}}` + "\n\n"

func textBlock(index int, text string) string {
	return fmt.Sprintf(`data: {"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`+"\n\n"+
		`data: {"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}`+"\n\n"+
		`data: {"type":"content_block_stop","index":%d}`+"\n\n", index, index, text, index)
}

func stream(t *testing.T, body string, req *llm.Request) (*llm.Response, error) {
	t.Helper()
	return modelOf([]byte(body)).Stream(t.Context(), req, func(llm.Delta) {})
}

func TestStopReasonsInNeutralWords(t *testing.T) {
	for raw, want := range map[string]llm.Finish{
		"end_turn": llm.FinishEnd, "stop_sequence": llm.FinishEnd, "max_tokens": llm.FinishLength,
		"model_context_window_exceeded": llm.FinishContext, "pause_turn": llm.FinishPause, "refusal": llm.FinishRefusal,
		"tool_use": llm.FinishEnd, "something_new": llm.FinishEnd,
	} {
		resp, err := stream(t, messageBegin+textBlock(0, "hi")+messageEnd(raw, 5), ask())
		if err != nil || resp.Finish != want || resp.RawFinish != raw {
			t.Errorf("%s without a call: %v %q, %v; want %s", raw, resp.Finish, resp.RawFinish, err, want)
		}
	}
	for raw, want := range map[string]llm.Finish{
		"tool_use": llm.FinishTool, "end_turn": llm.FinishTool, "something_new": llm.FinishTool, "max_tokens": llm.FinishLength,
	} {
		body := toolStream("", false) + "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n" + messageEnd(raw, 5)
		if resp, err := stream(t, body, ask()); err != nil || resp.Finish != want {
			t.Errorf("%s with a call: %v, %v; want %s", raw, resp.Finish, err, want)
		}
	}
}

func TestARefusalIsExplained(t *testing.T) {
	body := messageBegin + `data: {"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal",` +
		`"category":"cyber","explanation":"It was blocked."}},"usage":{"output_tokens":5}}` + "\n\ndata: {\"type\":\"message_stop\"}\n\n"
	resp, err := stream(t, body, ask())
	if err != nil || resp.Finish != llm.FinishRefusal || resp.FinishDetail != "It was blocked." {
		t.Errorf("%+v, %v", resp, err)
	}
}

// A compatible server may say tool_use of an answer that it cut.
func TestAnAnswerThatUsedUpItsLimitWasCutWhateverItSays(t *testing.T) {
	body := toolStream(`{}`, false) + "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n" + messageEnd("tool_use", 64)
	req := ask()
	req.MaxTokens = 64
	if resp, err := stream(t, body, req); err != nil || resp.Finish != llm.FinishLength {
		t.Errorf("got %v, %v", resp.Finish, err)
	}
	req.MaxTokens = 65
	if resp, err := stream(t, body, req); err != nil || resp.Finish != llm.FinishTool {
		t.Errorf("below the limit: got %v, %v", resp.Finish, err)
	}
}

func TestUsageIsCumulativeAndCountsCachedTokensIn(t *testing.T) {
	body := messageBegin + textBlock(0, "hi") +
		`data: {"type":"message_delta","delta":{},"usage":{"output_tokens":40}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":9,"cache_read_input_tokens":null,` +
		`"output_tokens":50,"output_tokens_details":{"thinking_tokens":30}}}` + "\n\ndata: {\"type\":\"message_stop\"}\n\n"
	resp, err := stream(t, body, ask())
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Usage{Input: 129, Output: 50, CacheRead: 100, CacheWrite: 20, Reasoning: 30}
	if diff := cmp.Diff(want, resp.Usage); diff != "" {
		t.Error(diff)
	}
}

func TestArgumentsAreWholeOrAFragmentOrNothing(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want llm.Parts
		err  bool
	}{
		"no arguments are an empty object": {
			body: toolStream("", true),
			want: llm.Parts{llm.ToolCall{ProviderID: "toolu_1", Name: "fs.read", Args: json.RawMessage(`{}`)}},
		},
		"whole": {
			body: toolStream(`{\"path\":\"a\"}`, true),
			want: llm.Parts{llm.ToolCall{ProviderID: "toolu_1", Name: "fs.read", Args: json.RawMessage(`{"path":"a"}`)}},
		},
		"a fragment in an answer that ended": {
			body: toolStream(`{\"path\":`, true),
			want: llm.Parts{llm.ToolCall{ProviderID: "toolu_1", Name: "fs.read", ArgsText: `{"path":`}},
		},
		"a call that broke off is no call": {body: toolStream(`{\"path\":\"a\"}`, false), want: llm.Parts{}, err: true},
		"a message that ends inside a call is broken": {
			body: toolStream(`{\"path\":\"a\"}`, false) + messageEnd("tool_use", 5), want: llm.Parts{}, err: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := ask()
			req.Tools = []llm.ToolDef{{Name: "fs.read"}}
			resp, err := stream(t, c.body, req)
			if (err != nil) != c.err {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(c.want, resp.Parts, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A relay of another protocol may open every call at once and end them all at
// the end, the prose before them as well.
func TestInterleavedCallsStaySeparate(t *testing.T) {
	event := func(kind string, index int, rest string) string {
		return fmt.Sprintf(`data: {"type":"content_block_%s","index":%d%s}`+"\n\n", kind, index, rest)
	}
	input := func(index int, json string) string {
		return event("delta", index, fmt.Sprintf(`,"delta":{"type":"input_json_delta","partial_json":%q}`, json))
	}
	head := messageBegin +
		event("start", 0, `,"content_block":{"type":"text","text":"both"}`) +
		event("start", 1, `,"content_block":{"type":"tool_use","id":"toolu_1","name":"one","input":{}}`) +
		event("start", 2, `,"content_block":{"type":"tool_use","id":"toolu_2","name":"two","input":{}}`) +
		input(1, `{"path":`) + input(2, `{"name"`) + input(1, `"a"}`) + input(2, `:"b"}`)
	resp, err := stream(t, head+event("stop", 2, "")+event("stop", 0, "")+event("stop", 1, "")+messageEnd("tool_use", 5), ask())
	want := llm.Parts{
		llm.Text{Text: "both"},
		llm.ToolCall{ProviderID: "toolu_1", Name: "one", Args: json.RawMessage(`{"path":"a"}`)},
		llm.ToolCall{ProviderID: "toolu_2", Name: "two", Args: json.RawMessage(`{"name":"b"}`)},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, resp.Parts); diff != "" {
		t.Error(diff)
	}

	resp, err = stream(t, head+event("stop", 2, "")+messageEnd("tool_use", 5), ask())
	if want := (llm.Parts{want[0], want[2]}); err == nil || !cmp.Equal(want, resp.Parts) {
		t.Errorf("with a call that never ended: %v, %v", resp.Parts, err)
	}
}

func TestAStreamThatJustEndsIsBrokenAndItsTextIsKept(t *testing.T) {
	for name, body := range map[string]string{
		"before anything":          "",
		"inside a block":           messageBegin + textBlock(0, "half an ans")[:200],
		"before the reason":        messageBegin + textBlock(0, "half an ans"),
		"before message_stop":      messageBegin + textBlock(0, "half an ans") + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}` + "\n\n",
		"with an end and no cause": messageBegin + textBlock(0, "half an ans") + "data: {\"type\":\"message_stop\"}\n\n",
		"in an event that is none": messageBegin + textBlock(0, "half an ans") + "data: {\"type\":\n\n",
		"with a delta from nowhere": messageBegin + textBlock(0, "half an ans") +
			`data: {"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}` + "\n\n" + messageEnd("end_turn", 3),
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := stream(t, body, ask())
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Class != llm.ClassNetwork || e.Provider != "anthropic" {
				t.Fatalf("got %v", err)
			}
			if body != "" && len(body) > 300 && resp.Parts.Text() != "half an ans" {
				t.Errorf("kept %q", resp.Parts.Text())
			}
			if !resp.Usage.Estimated {
				t.Error("the usage of a broken answer must be marked as estimated")
			}
		})
	}
}

// The head counts a token or two, whatever is written behind it: that is no
// word about what a broken answer has used.
func TestTheHeadOfABrokenAnswerDoesNotCountItsOutput(t *testing.T) {
	head := strings.Replace(messageBegin, `"output_tokens":1`, `"output_tokens":2`, 1)
	const halfCall = `data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"write","input":{}}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"text\": \"once"}}` + "\n\n"
	for name, c := range map[string]struct {
		body string
		want llm.Usage
	}{
		"nothing behind it":  {head, llm.Usage{Output: 2, Estimated: true}},
		"a text behind it":   {head + textBlock(0, "half an ans"), llm.Usage{Estimated: true}},
		"half a call behind": {head + halfCall, llm.Usage{Estimated: true}},
		"its end and no end": {head + textBlock(0, "an answer") + strings.Split(messageEnd("end_turn", 9), "\n\n")[0] + "\n\n", llm.Usage{Output: 9, Estimated: true}},
		"whole":              {head + textBlock(0, "an answer") + messageEnd("end_turn", 9), llm.Usage{Output: 9}},
		"whole, no report":   {strings.Replace(messageBegin, `"input_tokens"`, `"unknown"`, 1) + textBlock(0, "an answer") + messageEnd("end_turn", 9), llm.Usage{Output: 9, Estimated: true}},
	} {
		resp, _ := stream(t, c.body, ask())
		got := llm.Usage{Output: resp.Usage.Output, Estimated: resp.Usage.Estimated}
		if got != c.want {
			t.Errorf("%s: usage %+v, want %+v", name, got, c.want)
		}
	}
}

func TestAWholeAnswerThatIsNoMessageIsWhatTheEndpointHasToSay(t *testing.T) {
	for body, want := range map[string]string{
		`{"detail":"the model is being loaded"}`:          `the service said: {"detail":"the model is being loaded"}`,
		`{"message":"come back later"}`:                   "come back later",
		`{"detail":"` + strings.Repeat("x", 1<<20) + `"}`: "",
	} {
		resp, err := modelOf([]byte(body)).Generate(t.Context(), ask())
		e, ok := errors.AsType[*llm.Error](err)
		switch {
		case !ok:
			t.Errorf("%.50s: %+v, %v", body, resp, err)
		case want == "":
			if len(e.Message) > 32<<10 {
				t.Errorf("a message of %d bytes would be journalled", len(e.Message))
			}
		case e.Message != want || e.Class != llm.ClassOverloaded || resp != nil:
			t.Errorf("%s: %+v with class %s: %s", body, resp, e.Class, e.Message)
		}
	}
}

func TestAWholeAnswerMayBeginWithAByteOrderMark(t *testing.T) {
	body := "\ufeff" + `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{}}`
	if resp, err := modelOf([]byte(body)).Generate(t.Context(), ask()); err != nil || resp.Parts.Text() != "hi" {
		t.Errorf("%+v, %v", resp, err)
	}
}

// Relays of other protocols put an error into a stream as those do.
func TestAnErrorWithinAStreamNeedsNoType(t *testing.T) {
	body := `data: {"error":null}` + "\n\n" + `data: {"error":{"type":"rate_limit_error","message":"slowly"}}` + "\n\n"
	_, err := modelOf([]byte(body)).Stream(t.Context(), ask(), func(llm.Delta) {})
	if e := llm.AsError(err); e.Class != llm.ClassThrottled || e.Message != "slowly" {
		t.Errorf("got %v", err)
	}
}

func TestACountOfNothingAtTheEndIsNone(t *testing.T) {
	body := `data: {"type":"message_start","message":{"usage":{"input_tokens":10,"cache_read_input_tokens":1000,"cache_creation_input_tokens":500,` +
		`"cache_creation":{"ephemeral_1h_input_tokens":400},"output_tokens":1}}}` + "\n\n" + textBlock(0, "hi") +
		`data: {"type":"message_delta","delta":{},"usage":{"output_tokens":50,"output_tokens_details":{"thinking_tokens":20}}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,` +
		`"cache_creation":{"ephemeral_1h_input_tokens":0},"output_tokens":0,"output_tokens_details":{"thinking_tokens":0}}}` + "\n\ndata: {\"type\":\"message_stop\"}\n\n"
	resp, err := stream(t, body, ask())
	want := llm.Usage{Input: 1510, Output: 50, CacheRead: 1000, CacheWrite: 500, CacheWriteLong: 400, Reasoning: 20}
	if err != nil || resp.Usage != want {
		t.Errorf("%+v, %v", resp, err)
	}
}

func TestErrorsAreClassifiedByWhatToDoNext(t *testing.T) {
	for _, c := range []struct {
		status        int
		kind, message string
		want          llm.Class
	}{
		{400, "invalid_request_error", "messages.0: bad", llm.ClassInvalid},
		{400, "invalid_request_error", "prompt is too long: 3 tokens > 2 maximum", llm.ClassContextOverflow},
		{400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 2", llm.ClassContextOverflow},
		{400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", llm.ClassQuota},
		{400, "invalid_request_error", "You have reached your specified API usage limits.", llm.ClassQuota},
		{401, "authentication_error", "invalid x-api-key", llm.ClassAuth},
		{402, "billing_error", "pay", llm.ClassQuota},
		{403, "permission_error", "not allowed", llm.ClassAuth},
		{404, "not_found_error", "model: nope", llm.ClassInvalid},
		{413, "request_too_large", "too large", llm.ClassContextOverflow},
		{429, "rate_limit_error", "slow down", llm.ClassThrottled},
		{500, "api_error", "Internal server error", llm.ClassOverloaded},
		{529, "overloaded_error", "Overloaded", llm.ClassOverloaded},
	} {
		body := fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_body"}`, c.kind, c.message)
		m := anthropic.New(anthropic.Options{HTTP: &http.Client{Transport: canned{
			status: c.status, body: []byte(body), header: http.Header{"Request-Id": {"req_1"}, "Retry-After": {"7"}},
		}}})
		_, err := m.Generate(t.Context(), ask())
		want := &llm.Error{
			Class: c.want, Provider: "anthropic", Status: c.status, Code: c.kind, Message: c.message, RequestID: "req_1",
			RetryAfter: 7e9, HasRetryAfter: true,
		}
		if e, ok := errors.AsType[*llm.Error](err); ok {
			e.Room = llm.Room{} // llm/internal/wire reads it
		}
		if diff := cmp.Diff(error(want), err); diff != "" {
			t.Errorf("HTTP %d %s: %s", c.status, c.kind, diff)
		}
		// The same error after the answer has begun.
		resp, err := stream(t, messageBegin+textBlock(0, "so far")+"event: error\ndata: "+body+"\n\n", ask())
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Class != c.want || e.Message != c.message || e.RequestID != "req_body" || resp.Parts.Text() != "so far" {
			t.Errorf("%s in the stream: %v after %q", c.kind, err, resp.Parts.Text())
		}
	}
}

func TestWhatTheNeutralViewCannotHoldIsKeptBesideIt(t *testing.T) {
	body := `{"type":"message","id":"m","model":"c","role":"assistant","stop_reason":"end_turn","usage":{},"content":[
		{"type":"thinking","thinking":"hm","signature":"c2ln"},
		{"type":"redacted_thinking","data":"sealed"},
		{"type":"text","text":"","citations":null},
		{"type":"text","text":"quoted","citations":[{"type":"char_location","cited_text":"q"}]},
		{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},
		{"type":"tool_use","id":"toolu_1","name":"a","input":{"n": 1.0},"caller":{"type":"direct"}},
		{"type":"tool_use","id":"toolu_2","name":"b","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_9"}}]}`
	resp, err := modelOf([]byte(body)).Generate(t.Context(), ask())
	if err != nil {
		t.Fatal(err)
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	want := llm.Parts{
		llm.Reasoning{Text: "hm", Signature: "c2ln"},
		llm.Reasoning{Raw: raw(`{"type":"redacted_thinking","data":"sealed"}`)},
		llm.Text{Text: "quoted", Raw: raw(`{"citations":[{"type":"char_location","cited_text":"q"}]}`)},
		llm.Item{Type: "server_tool_use", Raw: raw(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`)},
		llm.ToolCall{ProviderID: "toolu_1", Name: "a", Args: raw(`{"n":1.0}`)},
		llm.ToolCall{ProviderID: "toolu_2", Name: "b", Args: raw(`{}`), Raw: raw(`{"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_9"}}`)},
	}
	if diff := cmp.Diff(want, resp.Parts); diff != "" {
		t.Error(diff)
	}
}

// The service's compaction block arrives as a start and deltas of its own kind.
func TestAnUnknownBlockIsPutTogetherAndKept(t *testing.T) {
	body := messageBegin +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":""}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"the story "}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"so far"}}` + "\n\n" +
		`data: {"type":"content_block_stop","index":0}` + "\n\n" + textBlock(1, "on") + messageEnd("end_turn", 9)
	resp, err := stream(t, body, ask())
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Parts{
		llm.Item{Type: "compaction", Raw: json.RawMessage(`{"content":"the story so far","type":"compaction"}`)}, llm.Text{Text: "on"},
	}
	if diff := cmp.Diff(want, resp.Parts); diff != "" {
		t.Error(diff)
	}
}
