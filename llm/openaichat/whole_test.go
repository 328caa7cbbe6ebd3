package openaichat_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// A request that was encoded and journalled is the one that is sent, whether
// its answer is to come whole or in pieces.
func TestAWholeAnswerIsAskedForWithTheEncodedBytesButTheirEnd(t *testing.T) {
	var sent []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(srv.Close)
	for _, name := range openaichat.ProfileNames() {
		t.Run(name, func(t *testing.T) {
			profile, _ := openaichat.ProfileNamed(name)
			m := openaichat.New(openaichat.Options{BaseURL: srv.URL, Profile: &profile})
			req := &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}}
			enc, err := m.Encode(req)
			if err != nil {
				t.Fatal(err)
			}
			req.Encoded = enc
			before := string(bytes.Join(enc.Segments, nil))
			// What is sent comes from what was encoded, not from the request.
			req.Messages = []*llm.Message{llm.UserText("something else")}
			if _, err := m.Generate(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			prompt, end, found := strings.Cut(before, `],"stream":true`)
			if want := prompt + "]}"; !found || string(sent) != want {
				t.Errorf("Generate sent %s, want %s", sent, want)
			}
			if usage := strings.Contains(end, "include_usage"); usage == profile.NoUsageOption || !json.Valid([]byte(before)) {
				t.Errorf("encoded as %s", before)
			}
			if _, err := m.Stream(t.Context(), req, func(llm.Delta) {}); err != nil {
				t.Fatal(err)
			}
			if string(sent) != before {
				t.Errorf("Stream sent %s, want what was encoded: %s", sent, before)
			}
		})
	}
}
