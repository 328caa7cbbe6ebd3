package transport

import (
	"net/http"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// limits are what an answer says of the requests after it.
type limits struct {
	requests *requests
	// closed is how long nothing may be sent, 0 for no such thing.
	closed time.Duration
}

// requests are how many are left until a reset, and how many there are in all,
// 0 for unknown.
type requests struct {
	remaining, limit int64
	reset            time.Duration
}

// The headers of Anthropic, and those of OpenAI, which the compatible services
// have taken over.
var (
	requestHeaders = []headerNames{
		{"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
		{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
	}
	tokenHeaders = []headerNames{
		{"", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
		{"", "Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset"},
		{"", "Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset"},
		{"", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
	}
)

type headerNames struct{ limit, remaining, reset string }

// readLimits reads an answer's headers. What is missing or makes no sense
// limits nothing: the provider will refuse what is too much.
func readLimits(h http.Header, status int, now time.Time) limits {
	var l limits
	if status == http.StatusTooManyRequests {
		l.closed, _ = wire.RetryAfter(h, now)
	}
	for _, names := range tokenHeaders {
		if r, ok := names.read(h, now); ok && r.remaining == 0 {
			l.closed = max(l.closed, r.reset)
		}
	}
	for _, names := range requestHeaders {
		if r, ok := names.read(h, now); ok {
			l.requests = &r
			break
		}
	}
	return l
}

func (n headerNames) read(h http.Header, now time.Time) (r requests, ok bool) {
	remaining, err := strconv.ParseInt(h.Get(n.remaining), 10, 64)
	if err != nil || remaining < 0 || remaining > mostCounted {
		return r, false
	}
	reset, ok := readReset(h, h.Get(n.reset), now)
	if !ok {
		return r, false
	}
	r = requests{remaining: remaining, reset: reset}
	if limit, err := strconv.ParseInt(h.Get(n.limit), 10, 64); err == nil && limit > 0 && limit <= mostCounted {
		r.limit = limit
	}
	return r, true
}

const (
	// mostCounted and longestReset bound what a header can say, so that no sum
	// overflows.
	mostCounted  = 1 << 40
	longestReset = 365 * 24 * time.Hour
	// A number of seconds that is larger than epoch counts from 1970, and one
	// larger than epochMillis does so in milliseconds.
	epoch       = 100_000_000
	epochMillis = 100_000_000_000
)

// readReset reads how long it is to a reset: a duration ("6m0s", "20ms"), a
// number of seconds, a time, or a time as seconds or milliseconds since 1970.
func readReset(h http.Header, text string, now time.Time) (time.Duration, bool) {
	if d, err := time.ParseDuration(text); err == nil {
		return bounded(d), true
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return bounded(at.Sub(wire.ServerTime(h, now))), true
	}
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !(n >= 0) || n > 1e15:
		return 0, false
	case n >= epochMillis:
		return bounded(time.UnixMilli(int64(n)).Sub(wire.ServerTime(h, now))), true
	case n >= epoch:
		return bounded(time.Unix(int64(n), 0).Sub(wire.ServerTime(h, now))), true
	case n > longestReset.Seconds():
		return longestReset, true
	}
	return time.Duration(n * float64(time.Second)), true
}

func bounded(d time.Duration) time.Duration { return min(max(d, 0), longestReset) }
