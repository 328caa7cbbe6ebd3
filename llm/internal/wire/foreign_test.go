package wire_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// unended takes no answer for whole, as wires do that have not seen its end.
type unended struct{}

func (unended) Events(events *wire.EventReader) error {
	for {
		if _, data, err := events.Next(); err != nil {
			return err
		} else if !wire.Valid(data) || data[0] != '{' {
			return wire.ErrSyntax
		}
	}
}

func (unended) DecodeBody([]byte) error { return wire.ErrSyntax }

func (unended) Begun() bool { return false }

func (unended) Response(complete bool) *llm.Response {
	return &llm.Response{Usage: llm.Usage{Estimated: !complete}}
}

const thatKey = "sk-0123456789"

// askedOf is what comes of an exchange with a service that answers so.
func askedOf(t *testing.T, answer http.HandlerFunc) (*llm.Response, *llm.Error, string) {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	c := wire.Client{Provider: "acme", HTTP: wire.NewHTTP(), RequestIDs: []string{"Request-Id"}}
	x, err := c.Post(t.Context(), strings.Replace(srv.URL, "//", "//me:pass@", 1)+"/v2/chat?key=hidden", http.Header{"X-Key": {thatKey}}, &llm.Encoded{})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Read(x, unended{})
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Fatalf("read as %+v, %v", resp, err)
	}
	return resp, e, srv.URL
}

// says is a service that answers a success of this type.
func says(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		w.Header().Set("Request-Id", "r1")
		_, _ = io.WriteString(w, body)
	}
}

// Nothing is charged for the words of a login page, a proxy or another service:
// no model has seen the request. They may be gone when it is asked again.
func TestForeignAnswerIsReportedAndNotCharged(t *testing.T) {
	for _, c := range []struct{ name, kind, body, told string }{
		{"a page", "text/html; charset=utf-8", "<html>Log in</html>", `(HTTP 200, Content-Type "text/html; charset=utf-8"): it began with "<html>Log in</html>"`},
		{"a page behind blanks", "text/html", "\r\n <!doctype html>", `it began with "<!doctype html>"`},
		{"a page whose script looks like a stream", "text/html", "<html>\ndata: 1\n\n</html>", `it began with "<html>`},
		{"a page that calls itself a stream", "text/event-stream", "<html>\n<p>\nLog in\n</html>\n", `it began with "<html>`},
		{"a word", "text/plain", "OK", `it began with "OK"`},
		{"lines", "text/plain", "Service unavailable.\n\nError: come back later\n", `it began with "Service unavailable.`},
		{"no type", "", "It works!", `(HTTP 200): it began with "It works!"`},
		{"JSON that is no object", "application/json", `"ok"`, `it began with "\"ok\""`},
		{"braces that are no JSON", "application/json", "{error: unauthorized}", `it began with "{error: unauthorized}"`},
		{"what a terminal would obey", "text/plain", "\x1b[31mred \u202eder\xff\n", `"\x1b[31mred \u202eder\xff\n"`},
		{"a page without end", "text/plain", strings.Repeat("word ", 1000), strings.Repeat("word ", 40) + `"…;`},
		{"our own key", "text/plain", "who are you, " + thatKey + "?", `"who are you, [redacted]?"`},
		{"our own key, of which half is kept", "text/plain", strings.Repeat(" ", 495) + "no key " + thatKey, `"no key [redacted]"`},
		{"our own key at the cut", "text/plain", strings.Repeat("x", 195) + thatKey + strings.Repeat("y", 500), `xx[reda"…`},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, e, url := askedOf(t, says(c.kind, c.body))
			if resp != nil || e.Class != llm.ClassNetwork || e.Status != http.StatusOK || e.RequestID != "r1" {
				t.Errorf("read as %+v, %+v", resp, e)
			}
			if !strings.Contains(e.Message, c.told) || !strings.HasSuffix(e.Message, "look at the base URL and at proxies on the way; asked was "+url+"/v2/chat") {
				t.Errorf("told is %s", e.Message)
			}
			if len(e.Message) > 1000 || strings.Contains(e.Message, thatKey[:8]) {
				t.Errorf("told is too much: %s", e.Message)
			}
		})
	}
}

func TestCompressedPageIsRecognizedAsForeign(t *testing.T) {
	resp, e, _ := askedOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", r.Header.Get("Accept-Encoding"))
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "<html>Log in</html>")
		_ = z.Close()
	})
	if resp != nil || e.Class != llm.ClassNetwork || !strings.Contains(e.Message, `it began with "<html>Log in</html>"`) {
		t.Errorf("read as %+v, %+v", resp, e)
	}
}

// Asked again it would say so again, and might be paid for each time.
func TestPlainAnswerMarkedAsCompressedIsReported(t *testing.T) {
	resp, e, _ := askedOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, `{"an answer":"that is not compressed"}`)
	})
	if resp == nil || !resp.Usage.Estimated || e.Class != llm.ClassInvalid || !strings.Contains(e.Message, "calls itself compressed") {
		t.Errorf("read as %+v, %+v", resp, e)
	}
}

// What was paid for is not said to have cost nothing, whatever its form.
func TestAnswerInUnexpectedFormIsChargedOnce(t *testing.T) {
	for kind, answer := range map[string]http.HandlerFunc{
		"application/json":     says("application/json", `[{"a piece":1},{"a piece":2}]`),
		"application/x-ndjson": says("application/x-ndjson", "\n"+`{"a piece":1}`+"\r\n"+`{"a piece":2}`+"\n"),
		"application/cut": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			says("application/cut", `{"a piece":"`+strings.Repeat("x", 600)+`"}`+"\n"+`{"a pie`)(w, r)
		},
		"br": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "\x0b\x02\x80unreadable\x03")
		},
	} {
		resp, e, _ := askedOf(t, answer)
		if resp == nil || !resp.Usage.Estimated || e.Class != llm.ClassInvalid || !strings.Contains(e.Message, kind) {
			t.Errorf("%s is read as %+v, %+v", kind, resp, e)
		}
	}
}

func TestAnAnswerWithoutContentIsNoneAndNotCharged(t *testing.T) {
	resp, e, _ := askedOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if resp != nil || e.Class != llm.ClassNetwork || !strings.Contains(e.Message, "does not speak this API (HTTP 204): it is empty; look") {
		t.Errorf("read as %+v, %+v", resp, e)
	}
}

func TestAStreamThatEndsEarlyIsBrokenWhateverItIsCalled(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "text/html", "text/plain", ""} {
		for _, body := range []string{
			"", " \r\n\n", "\xef\xbb\xbf", "\xef\xbb", "d", "even", "data", "data:", "\xef\xbb\xbfdata: half", "data: half an answer\n\ndata: <", "event: begun\ndata: half a call, <",
			": thinking", ":\n", "id: 7\n", "retry: 100\n\n", "wrapped:\ndata: half", `{"half`, "{", "{}", "{}\n", `{"half":{"a":1}`,
		} {
			resp, e, _ := askedOf(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "1000")
				says(kind, body)(w, r)
			})
			if e.Class != llm.ClassNetwork || e.Status != 0 || strings.Contains(e.Message, "speak") || resp == nil && len(body) > len("\r\n\n ") {
				t.Errorf("%s %q is read as %+v, %+v", kind, body, resp, e)
			}
		}
	}
}

// A service that keeps a connection open with comments and ends its answer properly has
// given none. One whose connection breaks may have been at work on one.
func TestAStreamOfOnlyCommentsIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		nothing bool
	}{
		"it ends":                            {says("text/event-stream", ": ping\n\n: ping\n\n"), true},
		"it ends with an event without data": {says("text/event-stream", ": ping\n\nevent: ping\n\n"), true},
		"it breaks": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, ": ping\n\n")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, false},
		"its connection is closed": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n: ping\n\n")
				_ = conn.Close()
			}
		}, false},
		"it has begun an event":  {says("text/event-stream", ": ping\n\ndata: {"), false},
		"it says nothing at all": {says("text/event-stream", ""), false},
	} {
		resp, e, _ := askedOf(t, c.answer)
		if (resp == nil) != c.nothing || e.Class != llm.ClassNetwork || (e.Status == http.StatusOK) != c.nothing {
			t.Errorf("%s: %+v, %v", name, resp, e)
		}
	}
}
