package signals

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

const (
	// sendTimeout limits one request, and tries the number of attempts. pause is the
	// delay after the first failure; it doubles after each further one.
	sendTimeout = 10 * time.Second
	tries       = 4
	pause       = time.Second
)

// collector sends OTLP in JSON over HTTP.
type collector struct {
	url     string
	headers [][2]string
	client  *http.Client
}

func newCollector(url string, headers [][2]string) *collector {
	return &collector{url: url, headers: headers, client: &http.Client{
		Timeout: sendTimeout,
		// Do not follow redirects: the headers may contain credentials for this
		// address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// send sends a body, and retries the failures that OTLP declares retryable.
func (c *collector) send(ctx context.Context, body []byte) error {
	wait := pause
	for try := 1; ; try++ {
		again, asked, err := c.try(ctx, body)
		if err == nil || !again || try == tries {
			return err
		}
		timer := time.NewTimer(max(wait, asked))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		wait *= 2
	}
}

// try makes one attempt. again reports whether to retry, and wait is the delay that the
// collector requests.
func (c *collector) try(ctx context.Context, body []byte) (again bool, wait time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, fmt.Errorf("signals: %w", err)
	}
	for _, h := range c.headers {
		r.Header.Set(h[0], h[1])
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.client.Do(r)
	if err != nil {
		return true, 0, fmt.Errorf("signals: send to the collector: %w", err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	if answer.StatusCode/100 == 2 {
		return false, 0, nil
	}
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
	again = slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, answer.StatusCode)
	return again, time.Duration(min(max(seconds, 0), 60)) * time.Second, fmt.Errorf("signals: the collector answered %s", answer.Status)
}
