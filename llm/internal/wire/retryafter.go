package wire

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter reads how long a provider asks to wait: retry-after-ms, or
// Retry-After in seconds or as a date.
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

// ServerTime is the clock that a provider's times are of, where it tells: ours
// may be wrong.
func ServerTime(h http.Header, now time.Time) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return now
}

// maxWait bounds what a provider can ask for, so that no figure overflows.
const maxWait = 100 * 365 * 24 * time.Hour

// Bounded is a wait, as far as a provider can ask for it.
func Bounded(d time.Duration) time.Duration { return min(d, maxWait) }

// Wait is so many units of time, as a provider says them.
func Wait(n float64, unit time.Duration) time.Duration {
	if n >= float64(maxWait/unit) {
		return maxWait
	}
	return time.Duration(n * float64(unit))
}
