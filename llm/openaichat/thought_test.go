package openaichat_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// contents is a stream that gives a text in pieces of n bytes.
func contents(text string, n int, finish string) string {
	var chunks []string
	for text != "" {
		size := min(n, len(text))
		chunks = append(chunks, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%s}}]}`, jsonText(text[:size])))
		text = text[size:]
	}
	return sse(append(chunks, `{"choices":[{"index":0,"delta":{},"finish_reason":"`+finish+`"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)...)
}

func jsonText(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// shown is what deltas show at last: of each part its kind and its text.
type shown struct {
	parts  []string
	resets int
	// wrong is what was shown as text and taken back.
	wrong string
}

func (s *shown) add(d llm.Delta) {
	if d.Kind == llm.DeltaReset {
		s.wrong += strings.Join(s.parts, "")
		s.parts, s.resets = nil, s.resets+1
		return
	}
	for len(s.parts) <= d.Index {
		s.parts = append(s.parts, "")
	}
	if s.parts[d.Index] == "" {
		s.parts[d.Index] = map[llm.DeltaKind]string{llm.DeltaText: "text:", llm.DeltaReasoning: "thought:", llm.DeltaToolCall: "call:"}[d.Kind]
	}
	s.parts[d.Index] += d.Text
}

func partsOf(r *llm.Response) []string {
	var out []string
	for _, p := range r.Parts {
		switch p := p.(type) {
		case llm.Text:
			out = append(out, "text:"+p.Text)
		case llm.Reasoning:
			out = append(out, "thought:"+p.Text)
		case llm.ToolCall:
			out = append(out, "call:"+string(p.Args))
		}
	}
	return out
}

// asking calls one model again and again, which is answered with the newest body.
func asking(t *testing.T, profile openaichat.Profile) func(body string, tools ...llm.ToolDef) (*llm.Response, shown) {
	body := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	t.Cleanup(srv.Close)
	m := openaichat.New(openaichat.Options{BaseURL: srv.URL, Profile: &profile})
	return func(next string, tools ...llm.ToolDef) (*llm.Response, shown) {
		t.Helper()
		body = next
		var s shown
		resp, err := m.Stream(t.Context(), &llm.Request{Model: "m", Tools: tools, Messages: []*llm.Message{llm.UserText("go")}}, s.add)
		if err != nil {
			t.Fatalf("%v\n%s", err, next)
		}
		return resp, s
	}
}

var thoughts = []struct {
	name, text string
	want       []string
}{
	{"between tags", "<think>I must not.</think>I look.", []string{"thought:I must not.", "text:I look."}},
	{"with blanks", "\n<think>\nhm\n</think>\n\nYes.\n", []string{"thought:hm\n", "text:Yes.\n"}},
	{"of Mistral", "[THINK]hm[/THINK]Yes.", []string{"thought:hm", "text:Yes."}},
	{"of gpt-oss", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.", []string{"thought:hm", "text:Yes."}},
	{"of gpt-oss, cut short", "<|channel|>analysis<|message|>hm<|channel|>final<|message|>Yes.", []string{"thought:hm", "text:Yes."}},
	{"without an opening tag", "I must not.</think>I look.", []string{"thought:I must not.", "text:I look."}},
	{"of Mistral, without an opening tag", "hm\n[/THINK]\nYes.", []string{"thought:hm\n", "text:Yes."}},
	{"empty", "<think>\n\n</think>\n\nYes.", []string{"text:Yes."}},
	{"empty, without an opening tag", "\n\n</think>\n\nYes.", []string{"text:Yes."}},
	{"two of them", "<think>a</think><think>b</think>c", []string{"thought:ab", "text:c"}},
	{"that does not end", "<think>and so on </th", []string{"thought:and so on </th"}},
	{"with the tags of another", "<think>a [/THINK] b</think>c", []string{"thought:a [/THINK] b", "text:c"}},
	{"and nothing else", "<think>hm</think>", []string{"thought:hm"}},
	{"no thought", "Use <think> and </think>.", []string{"text:Use <think> and </think>."}},
	{"tags behind a thought", "<think>a</think>Write <think>x</think>.", []string{"thought:a", "text:Write <think>x</think>."}},
	{"a tag in code", "Mind `</think>` and\n```\nx</think>\n```\n", []string{"text:Mind `</think>` and\n```\nx</think>\n```\n"}},
	{"a tag in a thought's code", "Is it `</think>`? No.</think>Yes.", []string{"thought:Is it `</think>`? No.", "text:Yes."}},
	{"nearly a tag", " <thin ice", []string{"text: <thin ice"}},
	{"the beginning of a tag", "\n<thi", []string{"text:\n<thi"}},
	{"blanks", "  \n", []string{"text:  \n"}},
}

// However a text is cut, and whatever the answer before it was like, the same is read
// and the same is shown at last.
func TestAThoughtAtTheBeginningIsNoText(t *testing.T) {
	for _, c := range thoughts {
		t.Run(c.name, func(t *testing.T) {
			ask := asking(t, profileOf("ollama"))
			for range 2 {
				for _, n := range []int{len(c.text), 1, 2, 3, 7} {
					resp, live := ask(contents(c.text, n, "stop"))
					if diff := cmp.Diff(c.want, partsOf(resp)); diff != "" || resp.Finish != llm.FinishEnd {
						t.Errorf("in pieces of %d: finish %s (-want +got):\n%s", n, resp.Finish, diff)
					}
					if diff := cmp.Diff(c.want, live.parts); diff != "" {
						t.Errorf("shown in pieces of %d (-want +got):\n%s", n, diff)
					}
				}
				ask(contents("hm</think>well", 4, "stop")) // from now on a thought is expected
			}
			whole := fmt.Sprintf(`{"choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{}}`, jsonText(c.text))
			resp, live := ask(whole)
			if diff := cmp.Diff(c.want, partsOf(resp)); diff != "" || live.resets > 0 || !cmp.Equal(c.want, live.parts) {
				t.Errorf("whole, shown %q (-want +got):\n%s", live.parts, diff)
			}
		})
	}
}

func TestAMissingOpeningTagIsTakenBackOnceAndThenExpected(t *testing.T) {
	ask := asking(t, profileOf("ollama"))
	for i, c := range []struct {
		text   string
		resets int
		wrong  string
	}{
		{"I must not.</think>I look.", 1, "text:I must not."},
		{"Once more.</think>I look.", 0, ""},
		{"No thought at all.", 1, "thought:No thought at all."}, // was expected
		{"No thought again.", 0, ""},
		{"<think>hm</think>Yes.", 0, ""},
	} {
		if _, live := ask(contents(c.text, 6, "stop")); live.resets != c.resets || live.wrong != c.wrong {
			t.Errorf("answer %d: %d resets, which take back %q", i+1, live.resets, live.wrong)
		}
	}
}

func TestATaggedThoughtBeforeCallsKeepsItsPlace(t *testing.T) {
	const call = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`
	ask := asking(t, profileOf("ollama"))
	for range 2 {
		for text, want := range map[string][]string{
			"<think>hm</think>I look.": {"thought:hm", "text:I look.", "call:{}"},
			"hm</think>I look.":        {"thought:hm", "text:I look.", "call:{}"},
			"hm</think>":               {"thought:hm", "call:{}"},
			"I look.":                  {"text:I look.", "call:{}"},
		} {
			resp, _ := ask(sse(`{"choices":[{"index":0,"delta":{"content":`+jsonText(text)+`}}]}`, call))
			if diff := cmp.Diff(want, partsOf(resp)); diff != "" || resp.Finish != llm.FinishTool {
				t.Errorf("%q: finish %s (-want +got):\n%s", text, resp.Finish, diff)
			}
		}
	}
}

func TestTagsAreTextOfAServiceThatHasNone(t *testing.T) {
	ask := asking(t, profileOf("openai"))
	for _, text := range []string{"<think>a</think>b", "a</think>b", `<tool_call>{"name":"ls"}</tool_call>`} {
		if resp, live := ask(contents(text, 3, "stop"), llm.ToolDef{Name: "ls"}); resp.Parts.Text() != text || live.resets > 0 || resp.Finish != llm.FinishEnd {
			t.Errorf("%q is read as %+v, finish %s", text, resp.Parts, resp.Finish)
		}
	}
}

// A thought that came between tags goes back as one that had a member of its own,
// where the service wants thoughts back, and nowhere as text.
func TestATaggedThoughtGoesBackAsTheServiceWantsThoughts(t *testing.T) {
	for profile, want := range map[string]string{"ollama": `{"reasoning_content":"hm"}`, "vllm": `{"reasoning":"hm"}`, "groq": "{}", "unknown": "{}"} {
		p := profileOf(profile)
		resp, _ := answered(t, openaichat.Options{Profile: &p}, contents("<think>hm</think>Yes.", 5, "stop"))
		if got := thoughtsSentBack(t, openaichat.Options{Provider: "gateway", Profile: &p}, resp); got != want {
			t.Errorf("%s is sent %s, want %s", profile, got, want)
		}
	}
}

func TestACallAsTextIsACallOrNoAnswer(t *testing.T) {
	const one, two = `<tool_call>{"name":"fs_ls","arguments":{"at":1}}</tool_call>`, "<tool_call>\n{\"name\": \"fs_ls\", \"arguments\": \"{\\\"at\\\":2}\"}\n"
	text := func(s string) []string { return []string{"text:" + s} }
	for _, c := range []struct {
		profile, text string
		want          []string
		finish        llm.Finish
	}{
		{"ollama", one, []string{`call:{"at":1}`}, llm.FinishTool},
		{"vllm", "\n" + one + "\n" + two, []string{`call:{"at":1}`, `call:{"at":2}`}, llm.FinishTool},
		{"llamacpp", "<think>hm</think>\n" + one, []string{"thought:hm", `call:{"at":1}`}, llm.FinishTool},
		{"ollama", one + "I called.", text(one + "I called."), llm.FinishEnd},
		{"ollama", "I call. " + one, text("I call. " + one), llm.FinishEnd},
		{"ollama", `<tool_call>{"name":`, text(`<tool_call>{"name":`), llm.FinishMalformed},
		{"ollama", "<tool_call><function=ls></function></tool_call>", text("<tool_call><function=ls></function></tool_call>"), llm.FinishMalformed},
		{"unknown", one, text(one), llm.FinishMalformed},
		{"groq", one + two, text(one + two), llm.FinishMalformed},
	} {
		for _, n := range []int{len(c.text), 1, 5} {
			resp, live := asking(t, profileOf(c.profile))(contents(c.text, n, "stop"), llm.ToolDef{Name: "fs.ls"})
			if diff := cmp.Diff(c.want, partsOf(resp)); diff != "" || resp.Finish != c.finish || !cmp.Equal(c.want, live.parts) {
				t.Errorf("%s, %q: finish %s, shown %q (-want +got):\n%s", c.profile, c.text, resp.Finish, live.parts, diff)
			}
			for _, call := range resp.Parts.ToolCalls() {
				if call.Name != "fs.ls" {
					t.Errorf("%s calls %q", c.profile, call.Name)
				}
			}
		}
		if resp, _ := asking(t, profileOf(c.profile))(contents(c.text, 9, "stop")); resp.Finish != llm.FinishEnd {
			t.Errorf("%s, %q: finish %s where no tools are offered", c.profile, c.text, resp.Finish)
		}
	}
}
