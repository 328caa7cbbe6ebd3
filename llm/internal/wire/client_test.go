package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

func body(pieces ...string) *llm.Encoded {
	e := &llm.Encoded{}
	for _, p := range pieces {
		e.Segments = append(e.Segments, []byte(p))
	}
	return e
}

func client(h *http.Client) *wire.Client {
	return &wire.Client{Provider: "test", HTTP: wire.WithoutRedirects(h), RequestIDs: []string{"Request-Id", "X-Request-Id"}}
}

// slow is an answer whose pieces come at a pace, on the test's clock.
type slow struct {
	pause  time.Duration
	pieces int
	ctx    context.Context
}

func (s *slow) RoundTrip(req *http.Request) (*http.Response, error) {
	s.ctx = req.Context()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(s), Request: req}, nil
}

func (s *slow) Read(p []byte) (int, error) {
	if s.pieces == 0 {
		return 0, io.EOF
	}
	s.pieces--
	select {
	case <-time.After(s.pause):
		return copy(p, ": ping\n"), nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// Every byte counts, a ping as much as an answer.
func TestTheWatchdogCountsBytesAndNotEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(&http.Client{Transport: &slow{pause: 4 * time.Minute, pieces: 10}})
		x, err := c.Post(t.Context(), "http://test.invalid", http.Header{}, body("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if _, err := io.ReadAll(x.Body); err != nil {
			t.Errorf("40 minutes of pings: %v", err)
		}
	})
}

func TestASilentConnectionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := client(&http.Client{Transport: &slow{pause: time.Hour, pieces: 1}})
		x, err := c.Post(t.Context(), "http://test.invalid", http.Header{}, body("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		_, err = io.ReadAll(x.Body)
		if !errors.Is(err, wire.ErrIdle) || time.Since(start) != wire.DefaultIdle {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if e := c.Broken(x, err); e.Class != llm.ClassNetwork || !strings.Contains(e.Message, "too long") {
			t.Errorf("%v", e)
		}
	})
}

// mute never answers.
type mute struct{}

func (mute) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func TestAServiceThatNeverAnswersIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(&http.Client{Transport: mute{}})
		c.Idle = time.Minute
		start := time.Now()
		_, err := c.Post(t.Context(), "http://test.invalid", http.Header{}, body("{}"))
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Class != llm.ClassNetwork || !errors.Is(err, wire.ErrIdle) || time.Since(start) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

func TestABodyInPiecesArrivesWholeAndWithItsLength(t *testing.T) {
	sent := body("{", strings.Repeat("x", 100_000), "", "}")
	want := bytes.Join(sent.Segments, nil)
	var got []byte
	var length int64
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		length = r.ContentLength
		got, _ = io.ReadAll(r.Body)
	}))
	defer s.Close()
	x, err := client(s.Client()).Post(t.Context(), s.URL, http.Header{}, sent)
	if err != nil {
		t.Fatal(err)
	}
	x.Close()
	if length != int64(len(want)) || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, announced %d, want %d", len(got), length, len(want))
	}
	// A transport may read it in any way that readers allow.
	_, _ = client(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		if err := iotest.TestReader(r.Body, want); err != nil {
			t.Error(err)
		}
		return nil, io.EOF
	})}).Post(t.Context(), "http://test.invalid", http.Header{}, sent)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAFailureKeepsWhatTheServiceSaid(t *testing.T) {
	for _, c := range []struct {
		status int
		header http.Header
		body   string
		want   llm.Error
	}{
		{
			status: 503, header: http.Header{"Retry-After": {"2"}, "X-Request-Id": {"r1"}}, body: "<html>busy</html>",
			want: llm.Error{Class: llm.ClassOverloaded, Message: "<html>busy</html>", RequestID: "r1", RetryAfter: 2 * time.Second, HasRetryAfter: true},
		},
		{status: 500, want: llm.Error{Class: llm.ClassOverloaded, Message: "Internal Server Error"}},
		{status: 302, header: http.Header{"Location": {"http://elsewhere.invalid/"}}, want: llm.Error{
			Class: llm.ClassInvalid, Message: `the endpoint redirects to "http://elsewhere.invalid/"; redirects are not followed`,
		}},
		{status: 300, want: llm.Error{Class: llm.ClassInvalid, Message: "the endpoint redirects and does not say where; redirects are not followed"}},
		{status: 300, header: http.Header{"Location": {"http://[elsewhere"}}, want: llm.Error{
			Class: llm.ClassInvalid, Message: "the endpoint redirects to a place that cannot be read; redirects are not followed",
		}},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range c.header {
				w.Header()[name] = values
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		_, err := client(s.Client()).Post(t.Context(), s.URL, http.Header{}, body("{}"))
		s.Close()
		c.want.Provider, c.want.Status = "test", c.status
		if e, ok := errors.AsType[*llm.Error](err); !ok || *e != c.want {
			t.Errorf("HTTP %d: got %+v, want %+v", c.status, err, c.want)
		}
	}
}

// The client of net/http fails where it reads such a place, redirects off or not.
func TestRedirectToInvalidAddressIsReported(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://[elsewhere?key=hidden")
			w.WriteHeader(status)
		}))
		_, err := client(wire.NewHTTP()).Post(t.Context(), s.URL, http.Header{}, body("{}"))
		s.Close()
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Class != llm.ClassInvalid || e.Message != "the endpoint redirects to a place that cannot be read; redirects are not followed" {
			t.Errorf("HTTP %d: %+v", status, err)
		}
	}
}

func TestRetryAfterInAllItsForms(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const century = 100 * 365 * 24 * time.Hour
	skewed := http.Header{"Date": {"Fri, 02 Jan 2026 04:05:05 GMT"}, "Retry-After": {"Fri, 02 Jan 2026 04:05:10 GMT"}}
	if got, ok := wire.RetryAfter(skewed, now); got != 5*time.Second || !ok {
		t.Errorf("a date by the provider's clock gives %s, %t", got, ok)
	}
	for _, c := range []struct {
		name, value string
		want        time.Duration
		ok          bool
	}{
		{"Retry-After", "7", 7 * time.Second, true},
		{"Retry-After", "0.5", 500 * time.Millisecond, true},
		{"Retry-After", "0", 0, true},
		{"Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT", time.Minute, true},
		{"Retry-After", "Fri, 02 Jan 2026 03:00:00 GMT", 0, true},
		{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT", century, true},
		{"Retry-After-Ms", "250", 250 * time.Millisecond, true},
		{"Retry-After", "1e300", century, true},
		{"Retry-After", "Inf", century, true},
		{"Retry-After", "-1", 0, false},
		{"Retry-After", "NaN", 0, false},
		{"Retry-After", "soon", 0, false},
		{"Retry-After", "", 0, false},
	} {
		h := http.Header{}
		h.Set(c.name, c.value)
		if got, ok := wire.RetryAfter(h, now); got != c.want || ok != c.ok {
			t.Errorf("%s: %q gives %s, %t; want %s, %t", c.name, c.value, got, ok, c.want, c.ok)
		}
	}
}

func TestTheFormOfAnAnswerIsReadFromItsBytes(t *testing.T) {
	for answer, want := range map[string]bool{
		`{"a":1}`: true, " \r\n\t{}": true, "\xef\xbb\xbf{": true, "data: {}\n\n": false, ": ping\n\n": false, "": false, "\xef\xbb\xbf\n\ndata: {}": false,
	} {
		for _, cut := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader} {
			x := &wire.Exchange{Body: cut(strings.NewReader(answer))}
			got, err := x.IsJSON()
			if err != nil || got != want {
				t.Errorf("%q: %t, %v", answer, got, err)
			}
			if all, err := x.ReadAll(); string(all) != answer || err != nil {
				t.Errorf("%q reads as %q afterwards, %v", answer, all, err)
			}
		}
	}
}

// Services that cannot answer yet keep a connection open with empty lines, also
// where the answer is to come whole (DeepSeek).
func TestBlanksAreWaitedOutHoweverManyTheyAre(t *testing.T) {
	for _, n := range []int{511, 512, 513, 5000} {
		x := &wire.Exchange{Body: iotest.HalfReader(strings.NewReader(strings.Repeat("\n", n) + `{"a":1}`))}
		if whole, err := x.IsJSON(); !whole || err != nil {
			t.Errorf("behind %d empty lines: %t, %v", n, whole, err)
		}
		if all, err := x.ReadAll(); strings.TrimSpace(string(all)) != `{"a":1}` || err != nil {
			t.Errorf("behind %d empty lines it reads as %q, %v", n, all, err)
		}
	}
}

func TestAConnectionThatBreaksBeforeItsFirstByteHasNoForm(t *testing.T) {
	broken := errors.New("reset")
	for answer, want := range map[string]error{"": broken, " \n": broken, "{": nil, "data": nil} {
		x := &wire.Exchange{Body: io.MultiReader(strings.NewReader(answer), iotest.ErrReader(broken))}
		if _, err := x.IsJSON(); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", answer, err, want)
		}
		if got, err := x.ReadAll(); string(got) != answer || !errors.Is(err, broken) {
			t.Errorf("%q reads as %q afterwards, %v", answer, got, err)
		}
	}
}

func TestAFinishedExchangeLeavesItsConnectionToTheNext(t *testing.T) {
	var connections atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: last\n\n")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, ": one more ping\n\n")
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c := client(s.Client())
	for range 5 {
		x, err := c.Post(t.Context(), s.URL, http.Header{}, body("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := wire.NewEventReader(x.Body).Next(); err != nil {
			t.Fatal(err)
		}
		x.Finish()
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for five exchanges in turn", n)
	}
}

// A server that keeps the stream open after its last event is not waited for.
func TestFinishDoesNotWaitForAStreamThatIsKeptOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(&http.Client{Transport: &slow{pause: 20 * time.Millisecond, pieces: 1_000_000}})
		x, err := c.Post(t.Context(), "http://test.invalid", http.Header{}, body("{}"))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		x.Finish()
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestTheSharedHeaderIsNeverWrittenTo(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
	}))
	defer s.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{"X-Api-Key": {"key"}}
	c := client(&http.Client{Jar: jar})
	for range 2 {
		x, err := c.Post(t.Context(), s.URL, h, body("{}"))
		if err != nil {
			t.Fatal(err)
		}
		x.Close()
	}
	if len(h) != 1 {
		t.Errorf("the header is now %v", h)
	}
}

func TestAProxyOfTheEnvironmentIsUsed(t *testing.T) {
	transport, ok := wire.NewHTTP().Transport.(*http.Transport)
	if !ok || transport.Proxy == nil {
		t.Fatal("the default transport knows no proxy")
	}
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.String() }))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport.Proxy = http.ProxyURL(at)
	x, err := client(&http.Client{Transport: transport}).Post(t.Context(), "http://service.invalid/v1", http.Header{}, body("{}"))
	if err != nil {
		t.Fatal(err)
	}
	x.Close()
	if asked != "http://service.invalid/v1" {
		t.Errorf("the proxy was asked for %q", asked)
	}
}

// A call that never left the process costs nothing; one with an unknown fate may have
// been answered and charged.
func TestAFailureSaysWhetherTheProviderWasSentAnything(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(refuses.Close)
	throughProxy := &http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(refuses.URL) }}}
	strangers := httptest.NewTLSServer(http.NotFoundHandler())
	strangers.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(strangers.Close)
	nobody := httptest.NewServer(nil)
	nobody.Close()
	hangsUp := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(hangsUp.Close)
	for _, c := range []struct {
		name, url string
		client    *http.Client
		unsent    bool
	}{
		{"nobody listens", nobody.URL, &http.Client{}, true},
		{"the proxy makes no connection", "https://provider.invalid", throughProxy, true},
		{"the certificate is a stranger's", strangers.URL, &http.Client{}, true},
		{"the connection ends after the request", hangsUp.URL, &http.Client{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := client(c.client).Post(t.Context(), c.url, http.Header{}, body("{}"))
			failure, ok := errors.AsType[*llm.Error](err)
			if !ok || failure.Class != llm.ClassNetwork {
				t.Fatalf("the failure is %v, want a network one", err)
			}
			if failure.Unsent != c.unsent {
				t.Errorf("unsent is %v, want %v: %v", failure.Unsent, c.unsent, err)
			}
		})
	}
}

// chatter is a stream whose pieces come one every pause, the last of them for ever.
type chatter struct {
	pieces []string
	pause  time.Duration
	kind   string
	ctx    context.Context
}

func (s *chatter) RoundTrip(req *http.Request) (*http.Response, error) {
	s.ctx = req.Context()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.kind}}, Body: io.NopCloser(s), Request: req}, nil
}

func (s *chatter) Read(p []byte) (int, error) {
	select {
	case <-time.After(s.pause):
		n := copy(p, s.pieces[0])
		if len(s.pieces) > 1 {
			s.pieces = s.pieces[1:]
		}
		return n, nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// Nothing but an event that says something puts off the end of a stream.
func TestAStreamThatSaysNothingIsGivenUp(t *testing.T) {
	const words = "data: a\n\n"
	for name, c := range map[string]struct {
		pieces []string
		kind   string
		stall  time.Duration
		text   string
		after  time.Duration
	}{
		"comments":                  {pieces: []string{words, words, ": ping\n\n"}, text: "aa", after: 140 * time.Second},
		"pings by name":             {pieces: []string{words, "event: ping\ndata: {}\n\n"}, text: "a{}", after: 130 * time.Second},
		"pings by type":             {pieces: []string{words, "data: {\"type\": \"ping\"}\n\n"}, text: `a{"type": "ping"}`, after: 130 * time.Second},
		"keepalives":                {pieces: []string{words, "event: keepalive\ndata: {}\n\n"}, text: "a{}", after: 130 * time.Second},
		"comments alone":            {pieces: []string{": ping\n\n"}, kind: "text/event-stream", after: 120 * time.Second},
		"blanks before a stream":    {pieces: []string{"\n"}, kind: "text/event-stream; charset=utf-8", after: 120 * time.Second},
		"a time of the request":     {pieces: []string{words, ": ping\n\n"}, stall: 45 * time.Second, text: "a", after: 55 * time.Second},
		"a longer time":             {pieces: []string{words, ": ping\n\n"}, stall: time.Hour, text: "a", after: time.Hour + 10*time.Second},
		"a silence that was broken": {pieces: []string{words, ": ping\n\n", ": ping\n\n", words, ": ping\n\n"}, text: "aa", after: 160 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ask := func(pieces []string) (*llm.Response, error) {
					h := &http.Client{Transport: &chatter{pieces: pieces, pause: 10 * time.Second, kind: c.kind}}
					ctx := wire.For(t.Context(), &llm.Request{StallTimeout: c.stall})
					return client(h).Ask(ctx, "http://test.invalid", http.Header{}, body("{}"), &reading{})
				}
				start := time.Now()
				resp, err := ask(c.pieces)
				e, ok := errors.AsType[*llm.Error](err)
				if !ok || e.Class != llm.ClassNetwork || e.Unsent || !strings.Contains(e.Message, "the stream stalled: no data for ") || !strings.Contains(e.Message, "stall_timeout") {
					t.Fatalf("%v", err)
				}
				if got := time.Since(start); got != c.after {
					t.Errorf("given up after %s, want %s", got, c.after)
				}
				var text strings.Builder
				if resp != nil {
					text.WriteString(resp.Parts.Text())
				}
				if got := text.String(); !strings.HasPrefix(got, c.text) || strings.Trim(got[len(c.text):], `{}"type: ing`) != "" {
					t.Errorf("kept %q, want %q", got, c.text)
				}
				if _, err := ask([]string{words, "data: fails\n\n"}); err == nil || strings.Contains(err.Error(), "stalled") {
					t.Errorf("the next attempt: %v", err)
				}
			})
		})
	}
}
