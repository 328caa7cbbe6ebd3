package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/transport"
)

// says is a provider that answers with these headers and counts its requests.
type says struct {
	header http.Header
	status int
	asked  atomic.Int64
}

func (s *says) RoundTrip(*http.Request) (*http.Response, error) {
	s.asked.Add(1)
	return &http.Response{StatusCode: s.status, Header: s.header, Body: http.NoBody}, nil
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func ask(ctx context.Context, c *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider.example", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func TestNextRequestWaitsForTheResetOfWhateverIsUsedUp(t *testing.T) {
	at := func(d time.Duration) string { return time.Now().Add(d).Format(time.RFC3339) }
	for name, c := range map[string]struct {
		status int
		header func() http.Header
		want   time.Duration
	}{
		"nothing said": {200, func() http.Header { return nil }, 0},
		"something left": {200, func() http.Header {
			return headers("X-Ratelimit-Remaining-Requests", "1", "X-Ratelimit-Reset-Requests", "30s")
		}, 0},
		"no requests": {200, func() http.Header {
			return headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "30s")
		}, 30 * time.Second},
		"no requests, in seconds": {200, func() http.Header {
			return headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1.5")
		}, 1500 * time.Millisecond},
		"no requests, since 1970": {200, func() http.Header {
			return headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", strconv.FormatInt(time.Now().Add(7*time.Second).UnixMilli(), 10))
		}, 7 * time.Second},
		"no tokens": {200, func() http.Header {
			return headers("X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "20ms")
		}, 20 * time.Millisecond},
		"anthropic requests": {200, func() http.Header {
			return headers("Anthropic-Ratelimit-Requests-Remaining", "0", "Anthropic-Ratelimit-Requests-Reset", at(12*time.Second))
		}, 12 * time.Second},
		"anthropic input": {200, func() http.Header {
			return headers("Anthropic-Ratelimit-Input-Tokens-Remaining", "0", "Anthropic-Ratelimit-Input-Tokens-Reset", at(12*time.Second))
		}, 12 * time.Second},
		"anthropic output": {200, func() http.Header {
			return headers("Anthropic-Ratelimit-Output-Tokens-Remaining", "0", "Anthropic-Ratelimit-Output-Tokens-Reset", at(12*time.Second))
		}, 12 * time.Second},
		"another clock": {200, func() http.Header {
			return headers("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat),
				"Anthropic-Ratelimit-Output-Tokens-Remaining", "0", "Anthropic-Ratelimit-Output-Tokens-Reset", at(-time.Hour+12*time.Second))
		}, 12 * time.Second},
		"429":            {429, func() http.Header { return headers("Retry-After", "9") }, 9 * time.Second},
		"429 in ms":      {429, func() http.Header { return headers("Retry-After-Ms", "250", "Retry-After", "9") }, 250 * time.Millisecond},
		"429 says none":  {429, func() http.Header { return nil }, 0},
		"200 with retry": {200, func() http.Header { return headers("Retry-After", "9") }, 0},
		"no reset":       {200, func() http.Header { return headers("X-Ratelimit-Remaining-Requests", "0") }, 0},
		"nonsense": {200, func() http.Header {
			return headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "soon")
		}, 0},
		"the longer one": {429, func() http.Header {
			return headers("Retry-After", "2", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "5s")
		}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				provider := &says{status: c.status, header: c.header()}
				var limiter transport.Limiter
				one := client(t, transport.Options{Base: &http.Client{Transport: provider}, Limiter: &limiter, Provider: "acme"})
				two := client(t, transport.Options{Base: &http.Client{Transport: provider}, Limiter: &limiter, Provider: "acme"})
				other := client(t, transport.Options{Base: &http.Client{Transport: provider}, Limiter: &limiter, Provider: "other"})
				if err := ask(t.Context(), one); err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				if err := ask(t.Context(), other); err != nil || time.Since(begin) != 0 {
					t.Errorf("another provider was held for %s: %v", time.Since(begin), err)
				}
				if err := ask(t.Context(), two); err != nil || time.Since(begin) != c.want {
					t.Errorf("held for %s, want %s: %v", time.Since(begin), c.want, err)
				}
			})
		})
	}
}

func TestAWaitEndsWithItsContextAndNothingIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &says{status: 429, header: headers("Retry-After", "50")}
		c := client(t, transport.Options{Base: &http.Client{Transport: provider}, Limiter: new(transport.Limiter), Provider: "acme"})
		if err := ask(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		stopped := errors.New("the run was cancelled")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, stopped)
		defer cancel()
		begin := time.Now()
		if err := ask(ctx, c); err == nil || time.Since(begin) != time.Second {
			t.Errorf("ended after %s with %v", time.Since(begin), err)
		}
		if n := provider.asked.Load(); n != 1 {
			t.Errorf("the provider was asked %d times", n)
		}
	})
}

func TestAHoldThatIsTooLongIsTheMachinesToDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &says{status: 200, header: headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "2h")}
		c := client(t, transport.Options{Base: &http.Client{Transport: provider}, Limiter: new(transport.Limiter), Provider: "acme"})
		if err := ask(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		begin := time.Now()
		failure, ok := errors.AsType[*llm.Error](ask(t.Context(), c))
		if !ok || failure.Class != llm.ClassThrottled || !failure.HasRetryAfter || failure.RetryAfter != time.Hour || failure.Provider != "acme" {
			t.Errorf("got %+v", failure)
		}
		if time.Since(begin) != 0 || provider.asked.Load() != 1 {
			t.Errorf("held for %s, asked %d times", time.Since(begin), provider.asked.Load())
		}
	})
}

// budgeted is a provider with a number of requests for each window of time. It
// tells what is left as OpenAI does, and counts what comes beyond it.
type budgeted struct {
	limit  int64
	length time.Duration

	mu       sync.Mutex
	used     int64
	ends     time.Time
	windows  int
	answered int
	beyond   int
}

func (b *budgeted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	b.mu.Lock()
	now := time.Now()
	if !now.Before(b.ends) {
		b.used, b.ends = 0, now.Add(b.length)
		b.windows++
	}
	b.used++
	left := b.limit - b.used
	if left < 0 {
		b.beyond++
	} else {
		b.answered++
	}
	h := w.Header()
	h.Set("X-Ratelimit-Limit-Requests", strconv.FormatInt(b.limit, 10))
	h.Set("X-Ratelimit-Remaining-Requests", strconv.FormatInt(max(left, 0), 10))
	h.Set("X-Ratelimit-Reset-Requests", b.ends.Sub(now).String())
	b.mu.Unlock()
	if left < 0 {
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// Sixty-four runs share what a provider has: once it has told what that is, not
// one request is sent too many, and none is left waiting.
func TestManyRunsTogetherStayWithinTheLimit(t *testing.T) {
	provider := &budgeted{limit: 16, length: 40 * time.Millisecond}
	server := httptest.NewServer(provider)
	defer server.Close()
	var limiter transport.Limiter
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	send := func(c *http.Client) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("{}"))
		if err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	base := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	client := func() *http.Client {
		return client(t, transport.Options{Base: base, Limiter: &limiter, Provider: "acme"})
	}
	if err := send(client()); err != nil {
		t.Fatal(err)
	}
	const runs, each = 64, 4
	var group sync.WaitGroup
	for range runs {
		group.Go(func() {
			c := client()
			for range each {
				if err := send(c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	base.CloseIdleConnections()
	if provider.beyond > 0 || provider.answered != runs*each+1 {
		t.Errorf("%d requests were answered and %d sent beyond the limit, in %d windows", provider.answered, provider.beyond, provider.windows)
	}
	t.Logf("%d requests in %d windows of %d", provider.answered, provider.windows, provider.limit)
}

// client is a client that can be made.
func client(t *testing.T, o transport.Options) *http.Client {
	t.Helper()
	c, err := transport.New(o)
	if err != nil {
		t.Error(err)
	}
	return c
}

// Who names a proxy wants no request to go past it.
func TestAProxyIsNotLeftOutBeforeATransportThatTakesNone(t *testing.T) {
	base := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("sent past the proxy") })}
	if _, err := transport.New(transport.Options{Base: base, Proxy: &url.URL{Scheme: "http", Host: "proxy.example:3128"}}); !errors.Is(err, transport.ErrNoProxy) {
		t.Errorf("got %v", err)
	}
	if _, err := transport.New(transport.Options{Base: base}); err != nil {
		t.Error(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestProxyReplacesThatOfTheEnvironment(t *testing.T) {
	proxy := &url.URL{Scheme: "http", Host: "proxy.example:3128"}
	c := client(t, transport.Options{Proxy: proxy})
	got, err := c.Transport.(*http.Transport).Proxy(httptest.NewRequest(http.MethodPost, "http://api.example", nil))
	if err != nil || got.String() != proxy.String() {
		t.Errorf("the proxy is %v, %v", got, err)
	}
}

func FuzzHeadersNeverHoldForLong(f *testing.F) {
	f.Add("0", "6m0s", "100", "20ms", 200, "")
	f.Add("0", "1e309", "-1", "2026-11-21T08:00:00Z", 429, "99999999999999999999")
	f.Add("9223372036854775807", "1", "0", "1760000000000", 429, "-1")
	f.Fuzz(func(t *testing.T, remaining, reset, tokens, tokensReset string, status int, after string) {
		provider := &says{status: status, header: headers(
			"X-Ratelimit-Remaining-Requests", remaining, "X-Ratelimit-Reset-Requests", reset,
			"X-Ratelimit-Remaining-Tokens", tokens, "Anthropic-Ratelimit-Tokens-Remaining", tokens,
			"X-Ratelimit-Reset-Tokens", tokensReset, "Anthropic-Ratelimit-Tokens-Reset", tokensReset, "Retry-After", after)}
		synctest.Test(t, func(t *testing.T) {
			c := client(t, transport.Options{Base: &http.Client{Transport: provider}, Limiter: new(transport.Limiter), Provider: "acme"})
			_ = ask(t.Context(), c)
			begin := time.Now()
			_ = ask(t.Context(), c)
			if held := time.Since(begin); held < 0 || held > time.Minute {
				t.Errorf("held for %s", held)
			}
		})
	})
}

// held answers every request when it is let go, or after a time.
type held struct {
	after time.Duration
	says
}

func (h *held) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked.Add(1)
	time.Sleep(h.after)
	return &http.Response{StatusCode: 200, Header: h.header, Body: http.NoBody}, nil
}

// The second burst is not held back either, where the answers to the first said nothing of a limit.
func TestBurstsAreNotHeldBackWhereNothingWasThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests, answers = 12, 3 * time.Second
		provider := &held{after: answers}
		client := client(t, transport.Options{Base: &http.Client{Transport: provider}, Limiter: new(transport.Limiter), Provider: "acme"})
		for burst := range int64(2) {
			start := time.Now()
			var all sync.WaitGroup
			for range requests {
				all.Go(func() {
					if err := ask(t.Context(), client); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if took := time.Since(start); took != answers || provider.asked.Load() != (burst+1)*requests {
				t.Errorf("burst %d: %d requests were made, in %s", burst+1, provider.asked.Load(), took)
			}
		}
	})
}
