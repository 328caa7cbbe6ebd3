package wire_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// endless is an answer that never stops.
type endless struct{ line string }

func (e endless) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(e), Request: req}, nil
}

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.line)
	}
	return n, nil
}

func TestAnAnswerWithoutEndIsGivenUpForGood(t *testing.T) {
	for name, read := range map[string]func(x *wire.Exchange) error{
		"stream": func(x *wire.Exchange) error {
			for events := wire.NewEventReader(x.Body); ; {
				if _, _, err := events.Next(); err != nil {
					return err
				}
			}
		},
		"whole": func(x *wire.Exchange) error { _, err := x.ReadAll(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			c := client(&http.Client{Transport: endless{"data: " + strings.Repeat("x", 1017) + "\n\n"}})
			x, err := c.Post(t.Context(), "http://test.invalid", http.Header{}, body("{}"))
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			if err = read(x); !errors.Is(err, wire.ErrAnswerTooLarge) {
				t.Fatalf("it ended with %v", err)
			}
			if e := c.Broken(x, err); e.Class != llm.ClassInvalid {
				t.Errorf("class %s: the same request would run away again", e.Class)
			}
		})
	}
}

func TestAnAnswerThatIsAWebPageIsCalledOne(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html>Please log in</html>")
	}))
	defer s.Close()
	c := client(s.Client())
	x, err := c.Post(t.Context(), s.URL, http.Header{}, body("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if e := c.Broken(x, io.ErrUnexpectedEOF); !strings.Contains(e.Message, "before the answer was complete") ||
		!strings.Contains(e.Message, "web page") {
		t.Errorf("the user is told: %s", e.Message)
	}
}

func TestAPageInThePlaceOfAnErrorIsKeptInPart(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("ä", 1<<19), http.StatusBadGateway)
	}))
	defer s.Close()
	_, err := client(s.Client()).Post(t.Context(), s.URL, http.Header{}, body("{}"))
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || len(e.Message) > 20<<10 || !strings.HasSuffix(e.Message, "of 1048576 bytes]") || !utf8.ValidString(e.Message) {
		t.Errorf("a message of %d bytes", len(e.Message))
	}
}

func TestAPlaceholderIsNoSecret(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no model x", http.StatusBadRequest)
	}))
	defer s.Close()
	_, err := client(s.Client()).Post(t.Context(), s.URL, http.Header{"Authorization": {"Bearer x"}}, body("{}"))
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Message != "no model x" {
		t.Errorf("got %v", err)
	}
}
