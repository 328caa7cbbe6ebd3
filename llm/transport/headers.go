package transport

import (
	"net/http"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// limits are an answer's limits on later requests.
type limits struct {
	requests *requests
	// closed is how long nothing may be sent, 0 for no such limit.
	closed time.Duration
}

// requests holds how many requests are left until a reset, and the total, 0 if unknown.
type requests struct {
	remaining, limit int64
	reset            time.Duration
}

// The headers of Anthropic, and those of OpenAI, which compatible services use too.
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

// readLimits reads an answer's headers. Missing and invalid values impose no limit,
// because the provider itself refuses excess requests.
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
	// mostCounted and longestReset bound the values of headers, so that no sum
	// overflows.
	mostCounted  = 1 << 40
	longestReset = 365 * 24 * time.Hour
	// A number of seconds above epoch counts from 1970; a number above epochMillis is
	// in milliseconds since 1970.
	epoch       = 100_000_000
	epochMillis = 100_000_000_000
)

// readReset parses the time until a reset: a duration ("6m0s", "20ms"), a number of
// seconds, a time, or a time in seconds or milliseconds since 1970.
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
