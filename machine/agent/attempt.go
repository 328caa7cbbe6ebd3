package agent

import (
	"hash/fnv"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// attempt is the state of the current model request: which try it is, at which
// target, and what became of the last one.
type attempt struct {
	number    int
	target    int
	inFlight  bool
	orphan    bool
	failure   *event.ModelAttemptFailed
	notBefore time.Time
}

// begin opens a new request. The target stays: a fallback is kept for the rest
// of the run, so that neither cache nor signatures go back and forth (F23).
func (a *attempt) begin() { *a = attempt{number: 1, target: a.target} }

func (a *attempt) requested(d event.ModelRequested) {
	a.number, a.inFlight, a.orphan, a.failure = d.Attempt, true, false, nil
}

func (a *attempt) failed(d *event.ModelAttemptFailed) {
	a.inFlight, a.orphan, a.failure = false, false, d
}

func (a *attempt) retrying(d event.ModelRetrying, at time.Time, targets []Target) {
	a.number, a.failure = d.Attempt, nil
	a.notBefore = at.Add(time.Duration(d.DelayMs) * time.Millisecond)
	for i, t := range targets {
		if t.Model == d.ToModel {
			a.target = i
			break
		}
	}
}

// maxRetryAfter is the longest wait that a provider may ask of an unattended
// run on the same model (PRODUCT 6; FIELD F22 tells of sixteen days).
const maxRetryAfter = 60 * time.Second

// verdict is what to do about a failed attempt.
type verdict struct {
	// retry says to try again at target after delay; otherwise the run
	// parks until a moment, or ends.
	retry  bool
	target int
	delay  time.Duration
	park   bool
	until  time.Duration
}

// judge decides about a failed attempt (ALF-35 to 44, PRODUCT 6). limit is the
// number of calls in total that one request may take.
func judge(f *event.ModelAttemptFailed, target, targets, limit int, seed string) verdict {
	if f.Class == llm.ClassInterrupted {
		return verdict{retry: true, target: target}
	}
	if !retryable(f.Class) || f.Attempt >= limit {
		return verdict{}
	}
	next := min(target+1, targets-1)
	if f.RetryAfterMs != nil {
		wait := time.Duration(*f.RetryAfterMs) * time.Millisecond
		switch {
		case wait <= maxRetryAfter && f.Class == llm.ClassThrottled:
			return verdict{retry: true, target: target, delay: wait}
		case wait <= maxRetryAfter:
			return verdict{retry: true, target: next, delay: wait}
		case next == target:
			return verdict{park: true, until: wait}
		}
	}
	return verdict{retry: true, target: next, delay: backoff(f.Attempt, seed)}
}

func retryable(c llm.Class) bool {
	return c == llm.ClassThrottled || c == llm.ClassOverloaded || c == llm.ClassNetwork
}

// backoff is the wait before retry n: 200 ms doubling, plus 0 to 25 % jitter,
// in whole milliseconds (ALF-37, ALF-38). The jitter is drawn from the seed,
// because a machine has no randomness: runs differ, a fold does not.
func backoff(n int, seed string) time.Duration {
	base := 200 * time.Millisecond << (n - 1)
	h := fnv.New32a()
	h.Write([]byte(seed))
	jitter := float64(h.Sum32()) / (1 << 32) * 0.25
	return time.Duration(float64(base) * (1 + jitter)).Round(time.Millisecond)
}
