package openai_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openai"
)

const (
	created   = `{"type":"response.created","response":{"id":"resp_1","model":"gpt-5-2026","status":"in_progress"}}`
	completed = `{"type":"response.completed","response":{"id":"resp_1","model":"gpt-5-2026","status":"completed","output":[],"usage":{"input_tokens":7,"output_tokens":3}}}`
	textAdded = `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","content":[]}}`
	textDone  = `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"one two"}]}}`
)

func textDelta(text string) string {
	return `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"` + text + `"}`
}

func callAdded(at string) string {
	return `{"type":"response.output_item.added","output_index":` + at + `,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"add","arguments":""}}`
}

func argsDelta(at, text string) string {
	return `{"type":"response.function_call_arguments.delta","output_index":` + at + `,"delta":"` + text + `"}`
}

func callDone(at, arguments string) string {
	return `{"type":"response.output_item.done","output_index":` + at + `,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"add","arguments":` + arguments + `}}`
}

// rows: ALF-29, ALF-30
func TestDeltasBuildUpToThePartsThatTheyName(t *testing.T) {
	resp, deltas, err := stream(t, sse(created, textAdded, textDelta("one "), textDelta(""), textDelta("two"), textDone,
		callAdded("1"), argsDelta("1", `{\"x\"`), argsDelta("1", `:1}`), callDone("1", `"{\"x\":1}"`), completed))
	if err != nil {
		t.Fatal(err)
	}
	want := []llm.Delta{
		{Kind: llm.DeltaText, Index: 0, Text: "one "},
		{Kind: llm.DeltaText, Index: 0, Text: "two"},
		{Kind: llm.DeltaToolCall, Index: 1, Tool: "add", Text: `{"x"`},
		{Kind: llm.DeltaToolCall, Index: 1, Text: `:1}`},
	}
	if diff := cmp.Diff(want, deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	wantResponse := &llm.Response{
		Parts: llm.Parts{
			llm.Text{Text: "one two", Raw: raw(`{"id":"msg_1"}`)},
			llm.ToolCall{ProviderID: "call_1", Name: "add", Args: raw(`{"x":1}`), Raw: raw(`{"id":"fc_1"}`)},
		},
		Finish: llm.FinishTool, RawFinish: "completed", Usage: llm.Usage{Input: 7, Output: 3}, Model: "gpt-5-2026", ID: "resp_1",
	}
	if diff := cmp.Diff(wantResponse, resp); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}

func TestACountOfNothingAtTheEndReplacesNoEarlierOne(t *testing.T) {
	counted := strings.Replace(created, `"status"`, `"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":5,"cache_write_tokens":1},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}},"status"`, 1)
	zeros := strings.Replace(completed, `{"input_tokens":7,"output_tokens":3}`, `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0}}`, 1)
	resp, _, err := stream(t, sse(counted, textAdded, textDelta("one two"), textDone, zeros))
	if want := (llm.Usage{Input: 7, CacheRead: 5, CacheWrite: 1, Output: 3, Reasoning: 1}); err != nil || resp.Usage != want {
		t.Errorf("%+v, %v, want %+v", resp.Usage, err, want)
	}
}

func TestItemsAreTakenFromWhereverTheServicePutsThem(t *testing.T) {
	const output = `[{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"one two"}]}]`
	full := strings.Replace(completed, `"output":[]`, `"output":`+output, 1)
	for name, body := range map[string]string{
		"events and object":            sse(created, textAdded, textDelta("one "), textDelta("two"), textDone, full),
		"events alone":                 sse(created, textAdded, textDelta("one "), textDelta("two"), textDone, completed),
		"the object alone":             sse(created, full),
		"items without deltas":         sse(created, textDone, completed),
		"items without a beginning":    sse(textDelta("one "), textDelta("two"), textDone, completed),
		"an item that is told twice":   sse(textAdded, textDelta("one two"), textDone, textDone, completed),
		"a beginning that is no whole": sse(created, textAdded, textDelta("one "), full),
		"an object in place of events": strings.TrimSuffix(strings.SplitN(full, `"response":`, 2)[1], "}"),
		"names only in the SSE field":  "event: response.output_item.done\n" + strings.Replace(sse(textDone), `"type":"response.output_item.done",`, "", 1) + sse(completed, "[DONE]"),
	} {
		t.Run(name, func(t *testing.T) {
			resp, deltas, err := stream(t, body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(llm.Parts{llm.Text{Text: "one two", Raw: raw(`{"id":"msg_1"}`)}}, resp.Parts); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			var shown strings.Builder
			for _, d := range deltas {
				shown.WriteString(d.Text)
			}
			if shown.String() != "one two" || resp.Finish != llm.FinishEnd || resp.Usage.Input != 7 {
				t.Errorf("shown %q, finish %s, usage %+v", shown.String(), resp.Finish, resp.Usage)
			}
		})
	}
}

func TestOfDeltasAloneTheTextIsKeptAndNoCallIsRun(t *testing.T) {
	resp := mustStream(t, sse(textAdded, textDelta("one two"), callAdded("1"), argsDelta("1", `{}`), completed))
	want := llm.Parts{llm.Text{Text: "one two"}, llm.ToolCall{ProviderID: "call_1", Name: "add", ArgsText: "{}"}}
	if diff := cmp.Diff(want, resp.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if resp.Finish != llm.FinishLength {
		t.Errorf("finish %s", resp.Finish)
	}
}

// Services that leave out places put every item at the first.
func TestItemsWithoutPlacesFollowEachOther(t *testing.T) {
	placeless := strings.NewReplacer(`"output_index":0,`, "", `"output_index":1,`, "")
	for _, events := range [][]string{
		{textAdded, textDelta("one two"), textDone, callAdded("1"), argsDelta("1", "{}"), callDone("1", `"{}"`), completed},
		{textDelta("one two"), textDone, argsDelta("1", "{}"), callDone("1", `"{}"`), completed},
	} {
		resp := mustStream(t, placeless.Replace(sse(events...)))
		if calls := resp.Parts.ToolCalls(); resp.Parts.Text() != "one two" || len(calls) != 1 || string(calls[0].Args) != "{}" {
			t.Errorf("parts %+v", resp.Parts)
		}
	}
}

func TestWholeAnswerReadsLikeAStreamedOne(t *testing.T) {
	object := `{
	  "id": "resp_1", "model": "gpt-5-2026", "status": "completed",
	  "output": [
	    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]},
	    {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": ""}
	  ],
	  "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 20},
	            "output_tokens": 30, "output_tokens_details": {"reasoning_tokens": 25}}
	}`
	s := &service{body: object, header: http.Header{"X-Request-Id": {"req_1"}}}
	resp, err := s.model(openai.Options{}).Generate(t.Context(), question())
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := resp.Parts[0].(llm.Reasoning); r.Text != "a\n\nb" || !strings.Contains(string(r.Raw), `"rs_1"`) {
		t.Errorf("reasoning %+v", r)
	}
	if c := resp.Parts.ToolCalls()[0]; string(c.Args) != "{}" {
		t.Errorf("a call without arguments has %q", c.Args)
	}
	want := llm.Usage{Input: 100, Output: 30, CacheRead: 60, CacheWrite: 20, Reasoning: 25}
	if resp.Finish != llm.FinishTool || resp.RequestID != "req_1" || resp.Usage != want {
		t.Errorf("finish %s, request %s, usage %+v", resp.Finish, resp.RequestID, resp.Usage)
	}
}

// An object without the count that every report has reports nothing.
func TestAnEmptyUsageIsNoReport(t *testing.T) {
	for _, usage := range []string{`null`, `{}`} {
		body := `{"id":"resp_1","status":"completed","output":[],"usage":` + usage + `}`
		resp, err := (&service{body: body}).model(openai.Options{}).Generate(t.Context(), question())
		if err != nil {
			t.Fatal(err)
		}
		if resp.Usage != (llm.Usage{Estimated: true}) {
			t.Errorf("%s is read as %+v", usage, resp.Usage)
		}
	}
}

func TestPiecesOfAThoughtAreKeptApart(t *testing.T) {
	piece := func(n, text string) string {
		return `{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":` + n + `,"delta":"` + text + `"}`
	}
	resp, deltas, err := stream(t, sse(
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
		piece("0", "a"), piece("1", "b"), piece("1", "c"),
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"bc"}]}}`,
		completed))
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for _, d := range deltas {
		shown.WriteString(d.Text)
	}
	if r, _ := resp.Parts[0].(llm.Reasoning); r.Text != "a\n\nbc" || shown.String() != r.Text {
		t.Errorf("kept %q, shown %q", r.Text, shown.String())
	}
}

func TestWhyTheModelStopped(t *testing.T) {
	end := func(status, more string, output ...string) string {
		return sse(`{"type":"response.` + status + `","response":{"status":"` + status + `"` + more + `,"output":[` + strings.Join(output, ",") + `]}}`)
	}
	const (
		text    = `{"type":"message","content":[{"type":"output_text","text":"a"}]}`
		refusal = `{"type":"message","content":[{"type":"refusal","refusal":"no"}]}`
		call    = `{"type":"function_call","call_id":"c","name":"add","arguments":"{}"}`
		cutCall = `{"type":"function_call","call_id":"c","name":"add","arguments":"{}","status":"incomplete"}`
	)
	for name, c := range map[string]struct {
		body   string
		finish llm.Finish
		raw    string
	}{
		"text":                     {end("completed", "", text), llm.FinishEnd, "completed"},
		"calls":                    {end("completed", "", text, call), llm.FinishTool, "completed"},
		"a call that broke off":    {end("completed", "", cutCall), llm.FinishLength, "completed"},
		"a refusal":                {end("completed", "", refusal), llm.FinishRefusal, "completed"},
		"the cap on tokens":        {end("incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`, call), llm.FinishLength, "incomplete/max_output_tokens"},
		"the content filter":       {end("incomplete", `,"incomplete_details":{"reason":"content_filter"}`, text), llm.FinishRefusal, "incomplete/content_filter"},
		"an unknown reason":        {end("incomplete", `,"incomplete_details":{"reason":"new"}`, text), llm.FinishLength, "incomplete/new"},
		"no reason":                {end("incomplete", "", text), llm.FinishLength, "incomplete"},
		"nothing yet":              {`{"id":"r","status":"queued","output":[]}`, llm.FinishPause, "queued"},
		"a status that was left":   {sse(`{"type":"response.completed","response":{"status":"in_progress","output":[` + text + `]}}`), llm.FinishEnd, "completed"},
		"an end without an object": {sse(textAdded, textDelta("a"), `{"type":"response.completed"}`), llm.FinishEnd, "completed"},
		"an object without status": {`{"output":[` + text + `]}`, llm.FinishEnd, "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			resp := mustStream(t, c.body)
			if resp.Finish != c.finish || resp.RawFinish != c.raw {
				t.Errorf("finish %s (%s), want %s (%s)", resp.Finish, resp.RawFinish, c.finish, c.raw)
			}
		})
	}
}

func TestCallsOfAnAnswerThatUsedUpItsLimitAreNotToBeRun(t *testing.T) {
	s := &service{body: sse(callDone("0", `"{}"`), completed)} // which reports 3 tokens
	for limit, want := range map[int]llm.Finish{0: llm.FinishTool, 3: llm.FinishLength, 4: llm.FinishTool} {
		req := question()
		req.MaxTokens = limit
		resp, err := s.model(openai.Options{}).Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Finish != want {
			t.Errorf("limit %d: finish %s, want %s", limit, resp.Finish, want)
		}
	}
}

func TestArgumentsAreParsedOnceAtTheEnd(t *testing.T) {
	for given, want := range map[string]llm.ToolCall{
		`""`:                    {Args: raw("{}")},
		`" "`:                   {Args: raw("{}")},
		`null`:                  {Args: raw("{}")},
		`"{\"a\": 1}"`:          {Args: raw(`{"a": 1}`)},
		`{"a":1}`:               {Args: raw(`{"a":1}`)},
		`"{\"a\":"`:             {ArgsText: `{"a":`},
		`"not JSON"`:            {ArgsText: "not JSON"},
		`"{} {}"`:               {ArgsText: "{} {}"},
		`"{\"a\":\"\\u00e9\"}"`: {Args: raw(`{"a":"\u00e9"}`)},
	} {
		want.ProviderID, want.Name, want.Raw = "call_1", "add", raw(`{"id":"fc_1"}`)
		resp := mustStream(t, sse(callDone("0", given), completed))
		if diff := cmp.Diff(llm.Parts{want}, resp.Parts); diff != "" {
			t.Errorf("arguments %s (-want +got):\n%s", given, diff)
		}
	}
}

func TestStreamThatJustEndsIsBrokenAndKeepsItsText(t *testing.T) {
	whole := sse(created, textAdded, textDelta("one "), textDelta("two"), textDone, callAdded("1"), argsDelta("1", `{}`))
	for name, body := range map[string]string{
		"after a call's fragment": whole,
		"in an event":             whole[:strings.Index(whole, "two")],
		"with done but no end":    whole + "data: [DONE]\n\n",
		"in what is no JSON":      sse(created, textDelta("one "), `{"type":`),
		"at once":                 "",
	} {
		resp, _, err := stream(t, body)
		e := asError(t, err)
		if e.Class != llm.ClassNetwork || resp == nil || resp.Finish != llm.FinishFailed || !resp.Usage.Estimated {
			t.Errorf("%s: class %s, response %+v", name, e.Class, resp)
			continue
		}
		if ends := name != "in what is no JSON"; errors.Is(err, io.ErrUnexpectedEOF) != ends {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.HasPrefix("one two", resp.Parts.Text()) || body != "" && resp.Parts.Text() == "" {
			t.Errorf("%s: partial text %q", name, resp.Parts.Text())
		}
		if calls := resp.Parts.ToolCalls(); len(calls) > 0 {
			t.Errorf("%s: a call that broke off is kept: %+v", name, calls)
		}
	}
}

func TestFailuresOfTheServiceAreClassified(t *testing.T) {
	html, err := os.ReadFile("testdata/bad-gateway.html")
	if err != nil {
		t.Fatal(err)
	}
	object := func(code, kind, message string) string {
		return `{"error":{"code":"` + code + `","type":"` + kind + `","message":"` + message + `","param":null}}`
	}
	for name, c := range map[string]struct {
		status  int
		header  http.Header
		body    string
		class   llm.Class
		message string
		wait    time.Duration
	}{
		"too many requests":   {429, http.Header{"Retry-After-Ms": {"250"}}, object("rate_limit_exceeded", "tokens", "slow down"), llm.ClassThrottled, "slow down", 250 * time.Millisecond},
		"a wait of two units": {429, nil, object("rate_limit_exceeded", "tokens", "Please try again in 1m30s."), llm.ClassThrottled, "Please try again in 1m30s.", 90 * time.Second},
		"an endless wait":     {429, nil, object("rate_limit_exceeded", "tokens", "Please try again in 99999999999999h"), llm.ClassThrottled, "Please try again in 99999999999999h", 100 * 365 * 24 * time.Hour},
		"a wait of centuries": {429, nil, object("rate_limit_exceeded", "tokens", "Please try again in 2000000h."), llm.ClassThrottled, "Please try again in 2000000h.", 100 * 365 * 24 * time.Hour},
		"a spoken wait":       {429, nil, object("rate_limit_exceeded", "tokens", "Please try again in 1.5s. Visit"), llm.ClassThrottled, "Please try again in 1.5s. Visit", 1500 * time.Millisecond},
		"no credit":           {429, nil, object("insufficient_quota", "insufficient_quota", "pay"), llm.ClassQuota, "pay", 0},
		"too long":            {400, nil, object("context_length_exceeded", "invalid_request_error", "too long"), llm.ClassContextOverflow, "too long", 0},
		"too long, in words":  {400, nil, object("", "invalid_request_error", "This model's maximum prompt length is 8."), llm.ClassContextOverflow, "This model's maximum prompt length is 8.", 0},
		"a wrong key":         {401, nil, object("invalid_api_key", "invalid_request_error", "wrong key"), llm.ClassAuth, "wrong key", 0},
		"a wrong key, as a sentence": {
			400, nil, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: x"}`,
			llm.ClassAuth, "Incorrect API key provided: x", 0,
		},
		"an unknown model":   {404, nil, object("model_not_found", "invalid_request_error", "no such model"), llm.ClassInvalid, "no such model", 0},
		"a bad parameter":    {400, nil, object("unsupported_parameter", "invalid_request_error", "no temperature"), llm.ClassInvalid, "no temperature", 0},
		"against policy":     {400, nil, object("invalid_prompt", "invalid_request_error", "flagged"), llm.ClassRefused, "flagged", 0},
		"a failure inside":   {500, nil, object("server_error", "server_error", "sorry"), llm.ClassOverloaded, "sorry", 0},
		"a detail":           {400, nil, `{"detail":"Unsupported model"}`, llm.ClassInvalid, "Unsupported model", 0},
		"a proxy's page":     {502, nil, string(html), llm.ClassOverloaded, strings.TrimSpace(string(html)), 0},
		"nothing to read":    {503, nil, "", llm.ClassOverloaded, "Service Unavailable", 0},
		"JSON, but no words": {500, nil, `{"error":{}}`, llm.ClassOverloaded, `{}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			header := c.header.Clone()
			if header == nil {
				header = http.Header{}
			}
			header.Set("X-Request-Id", "req_1")
			s := &service{status: c.status, header: header, body: c.body}
			resp, err := s.model(openai.Options{Provider: "acme"}).Stream(t.Context(), question(), func(llm.Delta) {})
			e := asError(t, err)
			if resp != nil || e.Class != c.class || e.Message != c.message || e.RetryAfter != c.wait || e.HasRetryAfter != (c.wait > 0) {
				t.Errorf("got %+v", e)
			}
			if e.Status != c.status || e.RequestID != "req_1" || e.Provider != "acme" {
				t.Errorf("status %d, request %q, provider %q", e.Status, e.RequestID, e.Provider)
			}
		})
	}
}

func TestAnErrorThatIsNullIsNone(t *testing.T) {
	s := &service{body: `data: {"error":null}` + "\n\n" + `data: {"type":"response.completed","response":{"status":"completed","error":null}}` + "\n\n"}
	if resp, err := s.model(openai.Options{}).Stream(t.Context(), question(), func(llm.Delta) {}); err != nil {
		t.Errorf("read as %+v, %v", resp, err)
	}
}

func TestFailuresWithinAStreamAreClassified(t *testing.T) {
	for name, c := range map[string]struct {
		event   string
		class   llm.Class
		message string
		wait    time.Duration
	}{
		"an error event":          {`{"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota","message":"pay"}}`, llm.ClassQuota, "pay", 0},
		"a flat error event":      {`{"type":"error","code":"server_error","message":"sorry","param":null}`, llm.ClassOverloaded, "sorry", 0},
		"an error without a type": {`{"error":{"message":"This exceeds the context window","type":"invalid_request_error"}}`, llm.ClassContextOverflow, "This exceeds the context window", 0},
		"a failed response":       {`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Please try again in 28ms."}}}`, llm.ClassThrottled, "Please try again in 28ms.", 28 * time.Millisecond},
		"a silent failure":        {`{"type":"response.failed","response":{"status":"failed","error":null}}`, llm.ClassOverloaded, "the answer is failed, and the service does not say why", 0},
		"a cancelled response":    {`{"type":"response.cancelled","response":{"status":"cancelled"}}`, llm.ClassOverloaded, "the answer is cancelled, and the service does not say why", 0},
	} {
		t.Run(name, func(t *testing.T) {
			resp, _, err := stream(t, sse(created, textAdded, textDelta("one "), c.event))
			e := asError(t, err)
			if e.Class != c.class || e.Message != c.message || e.RetryAfter != c.wait {
				t.Errorf("got %+v", e)
			}
			if resp.Parts.Text() != "one " || resp.ID != "resp_1" {
				t.Errorf("kept %+v", resp)
			}
		})
	}
}

func TestFailureThatComesAsAnAnswerIsAFailure(t *testing.T) {
	for _, body := range []string{
		`{"error":{"code":"insufficient_quota","message":"pay"}}`,
		`{"code":"insufficient_quota","detail":"pay"}`,
		`{"id":"r","status":"failed","error":{"code":"insufficient_quota","message":"pay"},"output":[]}`,
	} {
		_, _, err := stream(t, body)
		if e := asError(t, err); e.Class != llm.ClassQuota || e.Message != "pay" {
			t.Errorf("%s: got %+v", body, e)
		}
	}
}

func TestRequestGoesWhereAndAsWhomTheOptionsSay(t *testing.T) {
	s := &service{body: `{"status":"completed"}`}
	m := s.model(openai.Options{
		BaseURL: "https://example.com/openai/v1/?api-version=preview", APIKey: "k", Organization: "org", Project: "proj",
		Headers: map[string]string{"api-key": "azure", "User-Agent": "mine"},
	})
	if _, err := m.Generate(t.Context(), question()); err != nil {
		t.Fatal(err)
	}
	if got, want := s.asked.URL.String(), "https://example.com/openai/v1/responses?api-version=preview"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer k", "OpenAI-Organization": "org", "OpenAI-Project": "proj", "Api-Key": "azure",
		"User-Agent": "mine", "Accept": "application/json", "Content-Type": "application/json",
	} {
		if got := s.asked.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
