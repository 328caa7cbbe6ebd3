package wire_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// reading is an answer that notes how it was read. The text "fails" is what a
// service says, "breaks" makes no sense.
type reading struct {
	how, text string
	usage     llm.Usage
	reported  bool
}

func (r *reading) Events(events *wire.EventReader) error {
	r.how = "streamed"
	for {
		_, data, err := events.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if string(data) == "fails" {
			return &llm.Error{Class: llm.ClassOverloaded, Message: "too much"}
		}
		r.text += string(data)
	}
}

func (r *reading) DecodeBody(body []byte) error {
	r.how = "whole"
	switch string(body) {
	case `{"fails"}`:
		return &llm.Error{Class: llm.ClassOverloaded, Message: "too much", RequestID: "its own"}
	case `{"breaks"}`:
		return wire.ErrSyntax
	}
	r.text = string(body)
	return nil
}

func (r *reading) Begun() bool { return r.text != "" }

func (r *reading) Response(complete bool) *llm.Response {
	resp := &llm.Response{Usage: r.usage}
	resp.Usage.Estimated = !complete && !r.reported
	if r.text != "" {
		resp.Parts = llm.Parts{llm.Text{Text: r.text}}
	}
	return resp
}

func TestAnAnswerIsReadByItsLooks(t *testing.T) {
	for _, tt := range []struct {
		name, kind, body string
		usage            llm.Usage
		reported         bool
		how, text        string
		class            llm.Class
		requestID        string
		nothing          bool
	}{
		{name: "a stream", kind: "text/event-stream", body: "data: a\n\ndata: b\n\n", how: "streamed", text: "ab"},
		{name: "a stream that calls itself JSON", kind: "application/json", body: "data: a\n\n", how: "streamed", text: "a"},
		{name: "a whole answer that calls itself a stream", kind: "text/event-stream", body: " \n{}", how: "whole", text: " \n{}"},
		{name: "an error that came whole", body: `{"fails"}`, how: "whole", class: llm.ClassOverloaded, requestID: "its own", nothing: true},
		{name: "an error that says what it cost", body: `{"fails"}`, usage: llm.Usage{Input: 3}, how: "whole", class: llm.ClassOverloaded, requestID: "its own"},
		{name: "an error that says that it cost nothing", body: `{"fails"}`, reported: true, how: "whole", class: llm.ClassOverloaded, requestID: "its own", nothing: true},
		{name: "what makes no sense", body: `{"breaks"}`, how: "whole", class: llm.ClassNetwork, requestID: "r1"},
		{name: "an error behind a text", body: "data: a\n\ndata: fails\n\n", how: "streamed", text: "a", class: llm.ClassOverloaded, requestID: "r1"},
		{name: "an error that a stream begins with", body: "data: fails\n\n", how: "streamed", class: llm.ClassOverloaded, requestID: "r1", nothing: true},
		{name: "an error that a stream begins with and says what it cost", body: "data: fails\n\n", usage: llm.Usage{Input: 3}, how: "streamed", class: llm.ClassOverloaded, requestID: "r1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				w.Header().Set("Request-Id", "r1")
				_, _ = io.WriteString(w, tt.body)
			}))
			t.Cleanup(srv.Close)
			c := wire.Client{Provider: "acme", HTTP: wire.NewHTTP(), RequestIDs: []string{"Request-Id"}}
			x, err := c.Post(t.Context(), srv.URL, http.Header{}, &llm.Encoded{})
			if err != nil {
				t.Fatal(err)
			}
			r := &reading{usage: tt.usage, reported: tt.reported}
			resp, err := c.Read(x, r)
			if r.how != tt.how || (resp == nil) != tt.nothing {
				t.Fatalf("read as %s: %+v, %v", r.how, resp, err)
			}
			if resp != nil && (resp.Parts.Text() != tt.text || resp.RequestID != "r1" || resp.Usage.Estimated != (err != nil)) {
				t.Errorf("response %+v", resp)
			}
			var got [2]string
			if e, ok := errors.AsType[*llm.Error](err); ok {
				got = [2]string{string(e.Class), e.RequestID}
				if e.Provider != "acme" {
					t.Errorf("the provider is %q", e.Provider)
				}
			}
			if diff := cmp.Diff([2]string{string(tt.class), tt.requestID}, got); diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// calling is an answer of calls with these ids.
type calling []string

func (calling) Events(*wire.EventReader) error { return nil }
func (calling) DecodeBody([]byte) error        { return nil }

func (calling) Begun() bool { return true }

func (ids calling) Response(bool) *llm.Response {
	r := &llm.Response{}
	for _, id := range ids {
		r.Parts = append(r.Parts, llm.Text{Text: "I call"}, llm.ToolCall{ProviderID: id})
	}
	return r
}

// A service that gave the same id twice refuses it when it comes back.
func TestNoTwoCallsOfAnAnswerHaveOneID(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	t.Cleanup(srv.Close)
	c := wire.Client{Provider: "acme", HTTP: wire.NewHTTP()}
	for _, tt := range []struct{ given, want []string }{
		{[]string{"a", "b", "c"}, []string{"a", "b", "c"}},
		{[]string{"a", "a", "b", "b", "b", "a"}, []string{"a", "", "b", "", "", ""}},
		{[]string{"", "", "a"}, []string{"", "", "a"}},
	} {
		x, err := c.Post(t.Context(), srv.URL, http.Header{}, &llm.Encoded{})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Read(x, calling(tt.given))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, call := range resp.Parts.ToolCalls() {
			got = append(got, call.ProviderID)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.given, diff)
		}
	}
}

// Buffers are used again for the next stream.
func TestNothingOfOneStreamIsReadInTheNext(t *testing.T) {
	long := strings.Repeat("long ", 10_000)
	for _, before := range []string{
		"data: whole\n\n", "event: begun\ndata: half", "data: line\n", "data: ended by CR\r", "data: fails\n\ndata: unread\n\n",
		"data: " + long + "\n\n", "\xef\xbb\xbf\n",
	} {
		bodies := make(chan string, 2)
		bodies <- before
		bodies <- "\ndata: next\n\n"
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, <-bodies)
		}))
		t.Cleanup(srv.Close)
		c := wire.Client{Provider: "acme", HTTP: wire.NewHTTP()}
		for _, last := range []bool{false, true} {
			x, err := c.Post(t.Context(), srv.URL, http.Header{}, &llm.Encoded{})
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := c.Read(x, &reading{}); last && (err != nil || resp.Parts.Text() != "next") {
				t.Errorf("after %.40q the next stream reads %+v, %v", before, resp, err)
			}
		}
	}
}

func TestFurtherHeadersWinOverOurOwn(t *testing.T) {
	h := wire.Header(map[string]string{"X-Key": "ours", "Authorization": wire.Bearer(""), "X-Empty": ""}, map[string]string{"x-key": "theirs", "User-Agent": "gate"})
	want := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"gate"}, "X-Key": {"theirs"}}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	accepting := wire.Accepting(h, "text/event-stream")
	if accepting.Get("Accept") != "text/event-stream" || h.Get("Accept") != "" {
		t.Error("what all requests share was changed")
	}
	if again := wire.Accepting(accepting, "application/json"); again.Get("Accept") != "text/event-stream" {
		t.Errorf("accepts %q", again.Get("Accept"))
	}
}

// If the server does not implement the protocol, the base URL is wrong, so the error
// names the request; a provider's own message stands alone.
func TestUnreachableAddressIsReported(t *testing.T) {
	for body, want := range map[string]string{
		"404 page not found":               "404 page not found; asked was URL/v2/messages",
		"":                                 "Not Found; asked was URL/v2/messages",
		`{"error":{"message":"no model"}}`: "no model",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(srv.Close)
		c := wire.Client{Provider: "acme", HTTP: wire.NewHTTP(), Classify: func(e *llm.Error, body []byte) {
			if len(body) > 0 && body[0] == '{' {
				e.Message = "no model"
			}
		}}
		_, err := c.Post(t.Context(), srv.URL+"/v2/messages?key=secret", http.Header{}, &llm.Encoded{})
		if e := llm.AsError(err); e.Message != strings.ReplaceAll(want, "URL", srv.URL) {
			t.Errorf("%q: %s", body, e.Message)
		}
	}
}
