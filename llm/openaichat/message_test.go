package openaichat_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// answered is what an endpoint's body is read as, and the text that was shown
// meanwhile.
func answered(t *testing.T, o openaichat.Options, body string) (*llm.Response, string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	defer srv.Close()
	o.BaseURL = srv.URL
	var shown strings.Builder
	resp, err := openaichat.New(o).Stream(t.Context(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}}, func(d llm.Delta) {
		if d.Kind == llm.DeltaText {
			shown.WriteString(d.Text)
		}
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return resp, shown.String()
}

func sse(chunks ...string) string {
	return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\ndata: [DONE]\n\n"
}

// Perplexity's full stream mode: "complete message objects in each chunk" beside
// the deltas.
func TestAMessageBesideDeltasIsNotJoinedToThem(t *testing.T) {
	choice := func(members string) string {
		return `{"choices":[{"index":0,` + members + `}],"usage":{"prompt_tokens":3,"completion_tokens":3}}`
	}
	piece := func(delta, message, finish string) string {
		return choice(`"finish_reason":` + finish + `,"message":{"role":"assistant","content":"` + message + `"},"delta":{"role":"assistant","content":"` + delta + `"}`)
	}
	for name, body := range map[string]string{
		"the message so far":          sse(piece("1", "1", "null"), piece(" 2", "1 2", "null"), piece(" 3", "1 2 3", `"stop"`)),
		"and an end without a piece":  sse(piece("1 2", "1 2", "null"), piece(" 3", "1 2 3", "null"), piece("", "1 2 3", `"stop"`)),
		"and a beginning without one": sse(piece("", "", "null"), piece("1 2 3", "1 2 3", `"stop"`)),
		"the delta before it":         sse(choice(`"delta":{"content":"1 2 3"},"message":{"content":"1 2 3"},"finish_reason":"stop"`)),
		"the message at the end":      sse(choice(`"delta":{"content":"1 2"}`), choice(`"delta":{"content":" 3"}`), choice(`"message":{"content":"1 2 3"},"finish_reason":"stop"`)),
		"messages alone":              sse(choice(`"message":{"content":"1 2"}`), choice(`"message":{"content":" 3"},"finish_reason":"stop"`)),
		"a whole answer":              piece("", "1 2 3", `"stop"`),
	} {
		resp, shown := answered(t, openaichat.Options{}, body)
		if got := resp.Parts.Text(); got != "1 2 3" || shown != got {
			t.Errorf("%s is read as %q, shown as %q", name, got, shown)
		}
	}
}
