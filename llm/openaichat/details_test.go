package openaichat_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
)

// The entries of reasoning may come side by side, each in pieces.
func TestEntriesOfReasoningGrowSideBySide(t *testing.T) {
	detail := func(kind, text, index string) string {
		return `data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.` + kind + `","index":` + index + `,"` + kind + `":"` + text + `","id":null}]}}]}` + "\n\n"
	}
	var s strings.Builder
	for _, text := range []string{"one ", "and more"} {
		for _, index := range []string{"0", "1", "2"} {
			s.WriteString(detail("text", text, index))
		}
		s.WriteString(detail("summary", text, "1"))
	}
	s.WriteString(`data: {"choices":[{"index":0,"delta":{"content":"so"},"finish_reason":"stop"}]}` + "\n\n" + "data: [DONE]\n\n")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s.String()) }))
	t.Cleanup(srv.Close)
	resp, err := newModel(profileOf("openrouter"))(srv.URL, srv.Client()).Stream(t.Context(), &llm.Request{
		Model: "m", Messages: []*llm.Message{llm.UserText("go")},
	}, func(llm.Delta) {})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"type":"reasoning.text","index":0,"text":"one and more","id":null},` +
		`{"type":"reasoning.text","index":1,"text":"one and more","id":null},` +
		`{"type":"reasoning.text","index":2,"text":"one and more","id":null},` +
		`{"type":"reasoning.summary","index":1,"summary":"one and more","id":null}]`
	if diff := cmp.Diff(llm.Parts{llm.Reasoning{Raw: []byte(want)}, llm.Text{Text: "so"}}, resp.Parts); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
