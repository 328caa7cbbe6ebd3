package gemini_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/gemini"
)

// streamed is what a stream of these chunks is read as, with its deltas.
func streamed(t *testing.T, chunks ...string) (*llm.Response, []llm.Delta) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: "+strings.Join(chunks, "\n\ndata: ")+"\n\n")
	}))
	defer srv.Close()
	var deltas []llm.Delta
	resp, err := gemini.New(gemini.Options{BaseURL: srv.URL}).Stream(t.Context(),
		&llm.Request{Model: "gemini-3-pro-preview", Messages: []*llm.Message{llm.UserText("go")}}, func(d llm.Delta) { deltas = append(deltas, d) })
	if err != nil {
		t.Fatal(err)
	}
	return resp, deltas
}

func chunk(parts string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}}]}`
}

const stop = `{"candidates":[{"content":{},"finishReason":"STOP"}]}`

// sentBack are the parts of an answer in the request behind it. Each call has a
// result there.
func sentBack(t *testing.T, origin string, parts llm.Parts) string {
	t.Helper()
	results := &llm.Message{Role: llm.RoleTool}
	for i, p := range parts {
		if c, ok := p.(llm.ToolCall); ok {
			c.CallID = "c" + string(rune('1'+i))
			parts[i] = c
			results.Parts = append(results.Parts, llm.ToolResult{CallID: c.CallID, ProviderID: c.ProviderID, Name: c.Name, Output: "done"})
		}
	}
	messages := []*llm.Message{llm.UserText("go"), {Role: llm.RoleAssistant, Origin: origin, Parts: parts}}
	if len(results.Parts) > 0 {
		messages = append(messages, results)
	} else {
		messages = append(messages, llm.UserText("and now?"))
	}
	enc, err := gemini.New(gemini.Options{}).Encode(&llm.Request{Model: "gemini-3-pro-preview", Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Contents []struct{ Parts json.RawMessage }
	}
	if err := json.Unmarshal(bytes.Join(enc.Segments, nil), &body); err != nil {
		t.Fatal(err)
	}
	return string(body.Contents[1].Parts)
}

const own = "google/gemini-3-pro-preview"

func TestTextWithASignatureIsSentBackBesideTextWithout(t *testing.T) {
	for name, c := range map[string]struct {
		chunks []string
		want   string
	}{
		"an empty one behind text": {
			[]string{chunk(`{"text":"Hel"}`), chunk(`{"text":"lo"}`), chunk(`{"text":"","thoughtSignature":"c2ln"}`)},
			`[{"text":"Hello"},{"text":"","thoughtSignature":"c2ln"}]`,
		},
		"words behind text": {
			[]string{chunk(`{"text":"Hello"}`), chunk(`{"text":" you","thoughtSignature":"c2ln"}`)},
			`[{"text":"Hello"},{"text":" you","thoughtSignature":"c2ln"}]`,
		},
		"text behind a signed one": {
			[]string{chunk(`{"text":"Hello","thoughtSignature":"c2ln"}`), chunk(`{"text":" you"}`)},
			`[{"text":"Hello","thoughtSignature":"c2ln"},{"text":" you"}]`,
		},
		"an empty thought behind a thought": {
			[]string{chunk(`{"text":"Hm","thought":true}`), chunk(`{"text":"","thought":true,"thoughtSignature":"c2ln"}`), chunk(`{"text":"Hello"}`)},
			`[{"text":"","thought":true,"thoughtSignature":"c2ln"},{"text":"Hello"}]`,
		},
	} {
		resp, _ := streamed(t, append(c.chunks, stop)...)
		if got := sentBack(t, own, resp.Parts); got != c.want {
			t.Errorf("%s goes back as %s, want %s", name, got, c.want)
		}
	}
}

// Gemini 3 refuses a step whose first call is not signed. Gateways lose
// signatures, and other models make none.
func TestUnsignedFirstCallIsSentWithSentinel(t *testing.T) {
	resp, _ := streamed(t, chunk(`{"functionCall":{"name":"ls","args":{}}},{"functionCall":{"name":"pwd","args":{}}}`), stop)
	const unsigned = `[{"functionCall":{"name":"ls","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"pwd","args":{}}}]`
	for _, origin := range []string{own, "openai/gpt-5"} {
		if got := sentBack(t, origin, slices.Clone(resp.Parts)); got != unsigned {
			t.Errorf("calls of %s go back as %s, want %s", origin, got, unsigned)
		}
	}
	resp, _ = streamed(t, chunk(`{"functionCall":{"name":"ls","args":{}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"pwd","args":{}}}`), stop)
	const signed = `[{"functionCall":{"name":"ls","args":{}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"pwd","args":{}}}]`
	if got := sentBack(t, own, resp.Parts); got != signed {
		t.Errorf("signed calls go back as %s, want %s", got, signed)
	}
}

func TestAnEmptyFunctionCallIsNoCallAndShowsNothing(t *testing.T) {
	const empty = `{"functionCall":{}}`
	for name, c := range map[string]struct {
		chunks []string
		args   string
	}{
		"behind pieces that go on":    {[]string{chunk(`{"functionCall":{"name":"ls","willContinue":true}}`), chunk(`{"functionCall":{"partialArgs":[{"jsonPath":"$.a","numberValue":1}],"willContinue":true}}`), chunk(empty)}, `{"a":1}`},
		"behind pieces that ended":    {[]string{chunk(`{"functionCall":{"name":"ls","partialArgs":[{"jsonPath":"$.a","numberValue":1}]}}`), chunk(empty)}, `{"a":1}`},
		"behind a whole call":         {[]string{chunk(`{"functionCall":{"name":"ls","args":{"a":1}}}`), chunk(empty)}, `{"a":1}`},
		"behind one without a piece":  {[]string{chunk(`{"functionCall":{"name":"ls","willContinue":true}}`), chunk(empty)}, `{}`},
		"behind one of no arguments":  {[]string{chunk(`{"functionCall":{"name":"ls"}}`), chunk(empty)}, `{}`},
		"before one, as nobody sends": {[]string{chunk(empty), chunk(`{"functionCall":{"name":"ls"}}`)}, `{}`},
	} {
		resp, deltas := streamed(t, append(c.chunks, stop)...)
		calls := resp.Parts.ToolCalls()
		if len(calls) != 1 || calls[0].Name != "ls" || string(calls[0].Args) != c.args {
			t.Errorf("%s it makes %d calls: %s", name, len(calls), calls)
		}
		for _, d := range deltas {
			if d.Tool == "" && d.Text == "" {
				t.Errorf("%s it shows an empty piece: %+v", name, d)
			}
		}
	}
}

func TestWhatModelArmorBlocksIsRefusedWithItsMessage(t *testing.T) {
	const message = "Blocked by Floor Setting. The prompt violated Responsible AI Safety settings (Dangerous), Prompt Injection and Jailbreak filters."
	for name, body := range map[string]string{
		"the prompt": `{"promptFeedback":{"blockReason":"MODEL_ARMOR","blockReasonMessage":"` + message + `"},"usageMetadata":{"promptTokenCount":5}}`,
		"the answer": `{"candidates":[{"content":{"parts":[]},"finishReason":"MODEL_ARMOR","finishMessage":"` + message + `"}],"usageMetadata":{"promptTokenCount":5}}`,
	} {
		resp, _ := streamed(t, body)
		if resp.Finish != llm.FinishRefusal || resp.FinishDetail != message || !strings.Contains(resp.RawFinish, "MODEL_ARMOR") {
			t.Errorf("%s: finish %q (%s), detail %q", name, resp.Finish, resp.RawFinish, resp.FinishDetail)
		}
	}
}
