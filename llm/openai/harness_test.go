package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openai"
)

// service answers every request alike, from memory, and keeps the last one.
type service struct {
	status int
	header http.Header
	body   string
	asked  *http.Request
	sent   []byte
}

func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	s.asked, s.sent = req, sent
	status := s.status
	if status == 0 {
		status = http.StatusOK
	}
	header := s.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(s.body)), Request: req}, nil
}

func (s *service) model(o openai.Options) *openai.Model {
	o.HTTP = &http.Client{Transport: s}
	return openai.New(o)
}

// sse makes a stream of events, one for each JSON text.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// stream reads a stream of events, and the deltas that it emitted as
// "index kind tool text".
func stream(t *testing.T, body string, tools ...llm.ToolDef) (*llm.Response, []llm.Delta, error) {
	t.Helper()
	s := &service{body: body}
	var deltas []llm.Delta
	resp, err := s.model(openai.Options{}).Stream(t.Context(), question(tools...), func(d llm.Delta) { deltas = append(deltas, d) })
	return resp, deltas, err
}

func question(tools ...llm.ToolDef) *llm.Request {
	return &llm.Request{Model: "gpt-5", Messages: []*llm.Message{llm.UserText("hi")}, Tools: tools}
}

func mustStream(t *testing.T, body string) *llm.Response {
	t.Helper()
	resp, _, err := stream(t, body)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func asError(t *testing.T, err error) *llm.Error {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Fatalf("got error %v, want an *llm.Error", err)
	}
	return e
}

// encoded is a request's body, decoded.
func encoded(t *testing.T, req *llm.Request) map[string]any {
	t.Helper()
	enc, err := openai.New(openai.Options{}).Encode(req)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(bytes.Join(enc.Segments, nil), &body); err != nil {
		t.Fatalf("%v\n%s", err, bytes.Join(enc.Segments, nil))
	}
	return body
}

// wantJSON compares a decoded value with JSON text.
func wantJSON(t *testing.T, what string, got any, want string) {
	t.Helper()
	var w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%s: the test's own JSON: %v", what, err)
	}
	if diff := cmp.Diff(w, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantInput compares the input items of a conversation behind one question.
func wantInput(t *testing.T, messages []*llm.Message, want string) {
	t.Helper()
	body := encoded(t, &llm.Request{Model: "gpt-5", Messages: messages})
	wantJSON(t, "input", body["input"], want)
}
