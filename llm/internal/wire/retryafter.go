package wire

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter parses how long a provider asks to wait: retry-after-ms, or Retry-After in
// seconds or as a date.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return Wait(ms, time.Millisecond), true
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s >= 0 {
		return Wait(s, time.Second), true
	}
	if t, err := http.ParseTime(v); err == nil {
		return Bounded(max(t.Sub(ServerTime(h, now)), 0)), true
	}
	return 0, false
}

// ServerTime returns the provider's time if the header has it, because the local clock
// may be wrong.
func ServerTime(h http.Header, now time.Time) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return now
}

// maxWait bounds a provider's wait, so that no value overflows.
const maxWait = 100 * 365 * 24 * time.Hour

// Bounded limits a wait to maxWait.
func Bounded(d time.Duration) time.Duration { return min(d, maxWait) }

// Wait converts a provider's number of time units to a duration.
func Wait(n float64, unit time.Duration) time.Duration {
	if n >= float64(maxWait/unit) {
		return maxWait
	}
	return time.Duration(n * float64(unit))
}
