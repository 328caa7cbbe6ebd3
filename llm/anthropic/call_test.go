package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
)

// recorder is a service that keeps what it was sent.
type recorder struct {
	header http.Header
	path   string
	body   []byte
	answer string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.header, r.path = req.Header, req.URL.Path
	r.body, _ = io.ReadAll(req.Body)
	w.Header().Set("Request-Id", "req_42")
	_, _ = io.WriteString(w, r.answer)
}

const wholeAnswer = `{"type":"message","id":"m","model":"c","stop_reason":"end_turn","usage":{},"content":[{"type":"text","text":"hi"}]}`

func TestACallCarriesKeyVersionAndExtraHeaders(t *testing.T) {
	r := &recorder{answer: wholeAnswer}
	s := httptest.NewServer(r)
	defer s.Close()
	m := anthropic.New(anthropic.Options{
		APIKey: "key", AuthToken: "token", BaseURL: s.URL + "/base/", Headers: map[string]string{"anthropic-beta": "some-beta"},
	})
	resp, err := m.Generate(t.Context(), ask())
	if err != nil {
		t.Fatal(err)
	}
	if resp.RequestID != "req_42" {
		t.Errorf("request id %q", resp.RequestID)
	}
	if r.path != "/base/v1/messages" {
		t.Errorf("path %q", r.path)
	}
	for name, want := range map[string]string{
		"X-Api-Key": "key", "Authorization": "Bearer token", "Anthropic-Version": "2023-06-01", "Anthropic-Beta": "some-beta",
		"Content-Type": "application/json",
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestTheSameEncodedRequestServesStreamsAndWholeAnswers(t *testing.T) {
	r := &recorder{answer: wholeAnswer}
	s := httptest.NewServer(r)
	defer s.Close()
	m := anthropic.New(anthropic.Options{BaseURL: s.URL})
	req := ask()
	var err error
	if req.Encoded, err = m.Encode(req); err != nil {
		t.Fatal(err)
	}
	streamed := func() any {
		var body map[string]any
		if err := json.Unmarshal(r.body, &body); err != nil {
			t.Fatalf("%v: %s", err, r.body)
		}
		return body["stream"]
	}
	if _, err := m.Stream(t.Context(), req, func(llm.Delta) {}); err != nil || streamed() != true {
		t.Errorf("Stream: %v, stream is %v", err, streamed())
	}
	if !bytes.Equal(r.body, bytes.Join(req.Encoded.Segments, nil)) {
		t.Errorf("the body is not what was encoded: %s", r.body)
	}
	if _, err := m.Generate(t.Context(), req); err != nil || streamed() != nil {
		t.Errorf("Generate: %v, stream is %v", err, streamed())
	}
}

func TestARedirectIsAnErrorAndTheKeyStaysHome(t *testing.T) {
	elsewhere := &recorder{answer: wholeAnswer}
	other := httptest.NewServer(elsewhere)
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	for _, client := range []*http.Client{nil, {}} {
		m := anthropic.New(anthropic.Options{BaseURL: s.URL, APIKey: "secret", HTTP: client})
		_, err := m.Generate(t.Context(), ask())
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Status != http.StatusTemporaryRedirect || !strings.Contains(e.Message, other.URL) {
			t.Errorf("got %v", err)
		}
	}
	if elsewhere.header != nil {
		t.Error("the redirect was followed")
	}
}

func TestToolNamesComeBackAsOurs(t *testing.T) {
	body := `{"type":"message","stop_reason":"tool_use","usage":{},"content":[
		{"type":"tool_use","id":"toolu_1","name":"fs_read","input":{}},{"type":"tool_use","id":"toolu_2","name":"unknown","input":{}}]}`
	req := ask()
	req.Tools = []llm.ToolDef{{Name: "fs.read"}}
	resp, err := modelOf([]byte(body)).Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if calls := resp.Parts.ToolCalls(); calls[0].Name != "fs.read" || calls[1].Name != "unknown" {
		t.Errorf("%+v", calls)
	}
}

func TestACancelledCallSaysSo(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, messageBegin+textBlock(0, "so far"))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-req.Context().Done():
		}
	}))
	defer s.Close()
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := anthropic.New(anthropic.Options{BaseURL: s.URL}).Stream(ctx, ask(), func(llm.Delta) { cancel() })
	if err == nil || ctx.Err() == nil || resp.Parts.Text() != "so far" {
		t.Errorf("got %v after %q", err, resp.Parts.Text())
	}
}
