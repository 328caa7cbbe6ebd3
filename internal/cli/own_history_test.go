package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
)

var (
	escapedBackslash = regexp.MustCompile(`\\\\`)
	surrogatePair    = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
	noCharacter      = regexp.MustCompile(`\\u([dD][89a-fA-F]|0000)`)
	functionName     = regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`)
	cacheMark        = regexp.MustCompile(`,"cache_control":\{[^}]*\}`)
)

// readStrictly reads one JSON value as services do that refuse what others guess at.
func readStrictly(text []byte) (any, error) {
	bare := surrogatePair.ReplaceAll(escapedBackslash.ReplaceAll(text, nil), nil)
	if bad := noCharacter.Find(bare); bad != nil {
		return nil, fmt.Errorf("%s is no character", bad)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	v, err := strictValue(d)
	if err == nil && d.More() {
		err = errors.New("something follows it")
	}
	return v, err
}

func strictValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		var list []any
		for d.More() {
			v, err := strictValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		o := map[string]any{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			if _, known := o[key.(string)]; known {
				return nil, fmt.Errorf("the member %q stands twice", key)
			}
			if o[key.(string)], err = strictValue(d); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return o, err
	}
	return token, nil
}

// checkCalls looks at every call of a request, on whichever wire.
func checkCalls(v any) error {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if err := checkCalls(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, e := range v {
			if err := checkCalls(e); err != nil {
				return err
			}
			args, isText := e.(string)
			_, isObject := e.(map[string]any)
			switch {
			case key == "arguments" && isText:
				args, err := readStrictly([]byte(args))
				if _, ok := args.(map[string]any); err != nil || !ok {
					return fmt.Errorf("failed to parse tool call arguments as JSON: %v: %v", e, err)
				}
			case (key == "arguments" || key == "args" || key == "input" && v["type"] == "tool_use") && !isObject:
				return fmt.Errorf("%s of a call is no object: %v", key, e)
			case key == "name" && isText && !functionName.MatchString(args):
				return fmt.Errorf("%q is no name of a function", args)
			}
		}
	}
	return nil
}

// strict is a provider that refuses a request whose history it cannot read.
type strict struct{ *provider }

func (s strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request any
	if err == nil {
		request, err = readStrictly(body)
	}
	if err == nil {
		err = checkCalls(request)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%s,"type":"invalid_request_error"}}`, quoted("the request body is not valid: "+err.Error()))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.provider.ServeHTTP(w, r)
}

// fixedly streams these events in place of others.
func fixedly(events ...string) func([]string) []string {
	return func([]string) []string { return events }
}

// argumentsThatServicesRefuse are what models gave for arguments: by which wires a
// call with them can be said at all.
var argumentsThatServicesRefuse = []struct{ name, tool, args string }{
	{"an escape that is none", "fs_list", `{"path":"\d+"}`},
	{"two objects", "fs_list", `{"path":"a"}{"path":"b"}`},
	{"cut off", "fs_list", `{"path":"a`},
	{"NaN", "fs_list", `{"limit":NaN}`},
	{"a control character", "fs_list", "{\"path\":\"a\x01\nb\"}"},
	{"much that is cut", "fs_list", `{"path":"` + strings.Repeat("long ", 1<<13)},
	{"a text", "fs_list", `"{\"path\":\"a\"}"`},
	{"null", "fs_list", `null`},
	{"a list", "fs_list", `["a"]`},
	{"a member twice", "fs_list", `{"path":"a","path":"b"}`},
	{"a lone surrogate", "fs_list", `{"path":"x\ud83d y"}`},
	{"the second half alone", "fs_list", `{"path":"x\uDE00 y"}`},
	{"halves in the wrong order", "fs_list", `{"path":"\ude00\ud83d"}`},
	{"a lone surrogate in a name", "fs_list", `{"pa\ud83dth":"a"}`},
	{"U+0000", "fs_list", `{"path":"a\u0000b"}`},
	{"no name", "", `{}`},
	{"a name that is not offered", "no such tool", `{"path":"\x"}`},
}

// blocksThatServicesRefuse are parts of an answer that go back as they came, each
// beside a call that goes on.
var blocksThatServicesRefuse = map[string][][]string{
	"anthropic/claude-sonnet-4-5": {{
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":6,"output_tokens":2}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"a\ud83d","signature":"","more":"b\ud83d"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"c\ud83d"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"d\\ud8"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"3d\"}"}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"e\ud83d\u0000","url":"https://example.com"}]}}`,
		`{"type":"content_block_stop","index":3}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"text","text":"","citations":[{"type":"char_location","cited_text":"f\ud83d"}]}}`,
		`{"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":"g\ud83d\u0000"}}`,
		`{"type":"content_block_stop","index":4}`,
		`{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"t1","name":"fs_list","input":{}}}`,
		`{"type":"content_block_stop","index":5}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`,
	}},
	"openai/gpt-5": {{
		`{"type":"response.created","response":{"id":"r1","status":"in_progress","output":[]}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","encrypted_content":"x","summary":[{"type":"summary_text","text":"a\ud83d\u0000"}]}}`,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"b\ud83d"}}}`,
		`{"type":"response.output_item.done","output_index":2,"item":{"type":"message","id":"i1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"c\ud83d","annotations":[{"type":"url_citation","title":"d\ud83d","url":"https://example.com"}]}]}}`,
		`{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","id":"fc","call_id":"t1","status":"completed","name":"fs_list","arguments":"{}"}}`,
		`{"type":"response.completed","response":{"id":"r1","status":"completed","output":[],"usage":{"input_tokens":10,"output_tokens":2}}}`,
	}},
	"openrouter/some-model": {{
		`{"choices":[{"index":0,"delta":{"reasoning":"a\ud83d","reasoning_details":[{"type":"reasoning.encrypted","index":0,"data":"b\ud83d"}]}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"c\ud83d\u0000","tool_calls":[{"index":0,"id":"t1","function":{"name":"fs_list","arguments":{"path":"d\ud83d"}}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, `[DONE]`,
	}},
	"ollama/some-model": {{
		`{"choices":[{"index":0,"delta":{"reasoning":"a\ud83d\u0000","content":"c\ud83d"}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","function":{"name":"fs_list","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, `[DONE]`,
	}, { // the head of a call, and its end under a number that no call has
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","function":{"name":"fs_list","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t2","function":{"name":"fs_list","arguments":"{\"path\":\""}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":".\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, `[DONE]`,
	}},
	"google/gemini-2.5-pro": {{
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"a\ud83d","thoughtSignature":"c2ln"},{"executableCode":{"language":"PYTHON","code":"b\ud83d\u0000"}},` +
			`{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"c\ud83d"}},{"functionCall":{"name":"fs_list","partialArgs":[{"jsonPath":"$.path","stringValue":"d\ud83d"}]}}]},` +
			`"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2}}`,
	}},
}

// Each shape comes twice in a row, and a call that works after it, in one run; then
// the run goes on with all of them behind it.
func TestARunNeverDiesOfItsOwnHistory(t *testing.T) {
	for model, blocks := range blocksThatServicesRefuse {
		t.Run(strings.ReplaceAll(model, "/", " "), func(t *testing.T) {
			good := reply{tool: "fs_list", args: `{"path":"."}`}
			var replies []reply
			for _, c := range argumentsThatServicesRefuse {
				if !strings.HasPrefix(model, "google/") || json.Valid([]byte(c.args)) {
					bad := reply{tool: c.tool, args: c.args}
					if c.tool == "" {
						bad = reply{tool: "NAME", args: c.args, damage: says("NAME", "")}
					}
					replies = append(replies, bad, bad, good)
				}
			}
			for _, events := range blocks {
				bad := reply{damage: fixedly(events...)}
				replies = append(replies, bad, bad, good)
			}
			upstream := newProvider(t, append(replies, reply{text: "done"})...)
			s := httptest.NewServer(strict{upstream})
			t.Cleanup(s.Close)
			upstream.url = s.URL
			p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: x}\ntools: {allow: [fs.list]}\non_no_tool_call: finish\niteration: {max_cycles: 200}\n"})
			for range 2 {
				args := []string{"run", "agent.yaml", "go", "--model", model, "--config", "config.yaml", "--no-budget", "--json"}
				if len(upstream.asked()) > 0 {
					args = []string{"run", "--continue", p.newest(), "go on", "--config", "config.yaml", "--json"}
				}
				f := p.calls(testKey, args...)
				if o := p.outcome(p.events(f.out)); f.code != 0 || o.FinalOutput != "done" {
					t.Fatalf("exit code %d after %d of %d answers: %+v %s", f.code, len(upstream.asked()), len(replies), o.Error, f.err)
				}
				for _, a := range of[event.ModelAttemptFailed](p.events(f.out)) {
					t.Errorf("an attempt failed: %s", a.Message)
				}
			}
			requests := upstream.asked()
			if len(requests) != len(replies)+2 {
				t.Errorf("%d requests for %d answers", len(requests), len(replies))
			}
			for i := range requests[1:] {
				before, after := conversationOf(t, requests[i].body), conversationOf(t, requests[i+1].body)
				if diff := cmp.Diff(before, after[:min(len(before), len(after))]); diff != "" {
					t.Fatalf("request %d changes what was sent before (-before +after):\n%s", i+2, diff)
				}
			}
		})
	}
}

// conversationOf are the messages of a request, without cache marks.
func conversationOf(t *testing.T, body string) []string {
	t.Helper()
	var request struct{ Messages, Input, Contents []json.RawMessage }
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, list := range [][]json.RawMessage{request.Messages, request.Input, request.Contents} {
		for _, m := range list {
			out = append(out, cacheMark.ReplaceAllString(string(m), ""))
		}
	}
	return out
}

func TestAWholeCallBesideABrokenOneRuns(t *testing.T) {
	for model, events := range map[string][]string{
		"openai-chat/some-model": {
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"fs_list","arguments":"{}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"fs_list","arguments":"{\"path\":\""}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`,
			`[DONE]`,
		},
		"anthropic/claude-sonnet-4-5": {
			`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":6,"output_tokens":2}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_a","name":"fs_list","input":{}}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_b","name":"fs_list","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\""}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`,
		},
	} {
		t.Run(strings.ReplaceAll(model, "/", " "), func(t *testing.T) {
			both := reply{damage: fixedly(events...)}
			upstream := newProvider(t, both, both, reply{text: "done"})
			p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: x}\ntools: {allow: [fs.list]}\n"})
			f := p.calls(testKey, "run", "agent.yaml", "go", "--model", model, "--config", "config.yaml", "--no-budget", "--json")
			var ran, told int
			for _, r := range of[event.ToolResult](p.events(f.out)) {
				switch {
				case !r.IsError:
					ran++
				case r.ErrorType == event.ErrorInvalidArgs && strings.Contains(r.Output, `are not valid JSON: unexpected end of JSON input; they were: {\"path\":\"`):
					told++
				default:
					t.Errorf("a call is answered with %s", r.Output)
				}
			}
			if ran != 2 || told != 2 {
				t.Errorf("of two answers %d calls ran and %d were said to be broken", ran, told)
			}
		})
	}
}

// saidBy are answers of a model that thinks aloud, whichever server it is behind.
var saidBy = map[string]string{
	"between tags":           "<think>I must not print <task-complete> before the tests pass.</think>",
	"without an opening tag": "I must not print <task-complete> before the tests pass.</think>",
	"of Mistral":             "[THINK]I must not print <task-complete>.[/THINK]",
	"of gpt-oss":             "<|channel|>analysis<|message|>I must not print <task-complete>.<|end|><|start|>assistant<|channel|>final<|message|>",
}

// Two answers only think of the word that ends the loop, the third says it.
func TestAThoughtMeetsNoConditionAndIsNoOutput(t *testing.T) {
	const agent = "identity: {name: x}\ntools: {allow: [fs.list]}\niteration:\n  max_cycles: 5\n  termination_conditions: [{kind: text-includes, text: <task-complete>}]\n"
	for name, thought := range saidBy {
		for _, model := range []string{"openai-chat/some-model", "ollama/some-model"} {
			t.Run(name+" by "+model, func(t *testing.T) {
				upstream := newProvider(t, reply{text: thought + "I look."}, reply{text: thought + "I look again."}, reply{text: thought + "It is done. <task-complete>"})
				p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": agent})
				f := p.calls(testKey, "run", "agent.yaml", "go", "--model", model, "--config", "config.yaml", "--no-budget", "--json")
				o := p.outcome(p.events(f.out))
				if o.Reason != event.ReasonConditionMet || o.Cycles != 3 || o.FinalOutput != "It is done. <task-complete>" {
					t.Errorf("exit code %d after %d requests: %+v", f.code, len(upstream.asked()), o)
				}
				for _, a := range upstream.asked() {
					for _, m := range conversationOf(t, a.body) {
						if strings.Contains(m, `"content":"`+thought[:6]) {
							t.Errorf("a thought goes back as text: %s", m)
						}
					}
				}
			})
		}
	}
}

func TestAThoughtIsNoPartOfAnAnswerBySchema(t *testing.T) {
	for name, thought := range saidBy {
		t.Run(name, func(t *testing.T) {
			upstream := newProvider(t, reply{text: thought + `{"a":1}`})
			p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: x}\nresultSchema: {type: object, required: [a], properties: {a: {type: integer}}}\ntools: {allow: []}\n"})
			f := p.calls(testKey, "run", "agent.yaml", "go", "--model", "openai-chat/some-model", "--config", "config.yaml", "--no-budget", "--json")
			if o := p.outcome(p.events(f.out)); f.code != 0 || o.FinalOutput != `{"a":1}` || len(upstream.asked()) != 1 {
				t.Errorf("exit code %d after %d requests: %+v %s", f.code, len(upstream.asked()), o, f.err)
			}
		})
	}
}

func TestACallAsTextIsRunOrAskedForAgain(t *testing.T) {
	const call = `<tool_call>{"name":"fs_list","arguments":{"path":"."}}</tool_call>`
	for model, want := range map[string]string{"ollama/some-model": "2 calls, 0 nudges", "openai-chat/some-model": "1 calls, 1 nudges"} {
		t.Run(strings.ReplaceAll(model, "/", " "), func(t *testing.T) {
			upstream := newProvider(t, reply{text: call}, reply{tool: "fs_list", args: `{}`}, reply{text: "done"})
			p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": "identity: {name: x}\ntools: {allow: [fs.list]}\n"})
			f := p.calls(testKey, "run", "agent.yaml", "go", "--model", model, "--config", "config.yaml", "--no-budget", "--json")
			events := p.events(f.out)
			got := fmt.Sprintf("%d calls, %d nudges", len(of[event.ToolStarted](events)), len(of[event.Nudge](events)))
			if o := p.outcome(events); f.code != 0 || o.FinalOutput != "done" || got != want {
				t.Errorf("exit code %d, %s: %+v", f.code, got, o)
			}
		})
	}
}
