package transport_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/transport"
)

// bucket is a provider that takes a number of requests a minute from one key, as a
// bucket that is refilled at a constant rate.
type bucket struct {
	perMinute float64

	mu            sync.Mutex
	left          float64
	at            time.Time
	taken, denied int
}

func (b *bucket) RoundTrip(*http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.left = min(b.perMinute, b.left+b.perMinute*now.Sub(b.at).Minutes())
	b.at = now
	h, status := http.Header{}, http.StatusOK
	if b.left < 1 {
		b.denied++
		status = http.StatusTooManyRequests
		h.Set("Retry-After", "5")
	} else {
		b.left--
		b.taken++
	}
	h.Set("X-Ratelimit-Limit-Requests", strconv.Itoa(int(b.perMinute)))
	h.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(int(b.left)))
	h.Set("X-Ratelimit-Reset-Requests", (time.Duration((b.perMinute-b.left)/b.perMinute*60) * time.Second).String())
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// Eight processes with ten runs each ask all the time for ten minutes with one key.
func TestProcessesThatShareAKeyAreSeldomRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := &bucket{perMinute: 60, left: 60, at: time.Now()}
		store := memory.New(nil)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		var all sync.WaitGroup
		for range 8 {
			limiter := &transport.Limiter{}
			limiter.Share(store)
			client, err := transport.New(transport.Options{Base: &http.Client{Transport: provider}, Limiter: limiter, Provider: "openai", Key: "one key"})
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				all.Go(func() {
					for ctx.Err() == nil {
						r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://model.example/", nil)
						if err != nil {
							t.Error(err)
							return
						}
						if answer, err := client.Do(r); err == nil {
							answer.Body.Close()
						}
						select {
						case <-time.After(time.Second):
						case <-ctx.Done():
						}
					}
				})
			}
		}
		all.Wait()
		t.Logf("%d requests were answered and %d refused", provider.taken, provider.denied)
		if share := float64(provider.denied) / float64(provider.taken+provider.denied); share >= 0.03 {
			t.Errorf("%.1f %% were refused", 100*share)
		}
		if provider.taken < 560 { // 660 are possible
			t.Errorf("only %d requests were answered", provider.taken)
		}
	})
}
