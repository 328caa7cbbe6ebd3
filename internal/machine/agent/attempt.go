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
	number int
	target int
	// failures counts the calls of this request that failed, for the limit on
	// calls in total (ALF-44). A call that its owner stopped does not count.
	failures int
	inFlight bool
	// orphan: the process that made the call is gone.
	orphan  bool
	failure *event.ModelAttemptFailed
	// lost says that the failure is an orphan's.
	lost bool
	// resumed says that somebody took the run up again after the failure.
	resumed   bool
	notBefore time.Time
	// withheld are the provider's own tools that the last call did not name.
	withheld *event.Withheld
}

// modelCall is the call of the model that a cycle makes, and its answer.
type modelCall struct {
	attempt
	// response is the cycle's answer, nil before it is there.
	response *event.ModelResponse
}

// begin opens a new request. The target stays: a fallback is kept for the rest
// of the run, so that neither cache nor signatures go back and forth.
func (a *attempt) begin() { *a = attempt{number: 1, target: a.target} }

func (a *attempt) requested(d event.ModelRequested) {
	a.number, a.inFlight = d.Attempt, true
	a.notBefore, a.withheld = time.Time{}, d.Withheld
}

func (a *attempt) failed(d *event.ModelAttemptFailed) {
	a.failure, a.lost, a.resumed = d, a.orphan, false
	a.inFlight, a.orphan = false, false
	a.failures++
}

// resume notes that the run was taken up again. A call that was stopped to
// park the run was no failure of anybody's.
func (a *attempt) resume() {
	a.orphan = a.inFlight
	if a.failure == nil || a.resumed {
		return
	}
	a.resumed = true
	if a.failure.Class == llm.ClassInterrupted && !a.lost {
		a.failures--
	}
}

func (a *attempt) retrying(d event.ModelRetrying, at time.Time, targets []Target) {
	a.number, a.failure = d.Attempt, nil
	a.notBefore = at.Add(time.Duration(d.DelayMs) * time.Millisecond)
	// A chain may name a model twice, so the search begins where it stands.
	for i := range targets {
		if at := (a.target + i) % len(targets); targets[at].Model == d.ToModel {
			a.target = at
			return
		}
	}
}

// maxRetryAfter is the longest wait that a provider may ask of an unattended
// run on the same model.
const maxRetryAfter = 60 * time.Second

// verdict is what to do about a failed attempt: try again at target after
// delay, park until the provider takes calls again, or (the zero verdict) end.
type verdict struct {
	retry  bool
	park   bool
	target int
	delay  time.Duration
}

// judge decides about a failed attempt (ALF-35 to 44). targets is
// the length of the chain, limit the number of calls in total that one request
// may take.
func judge(a *attempt, targets, limit int, seed string) verdict {
	f := a.failure
	interrupted := f.Class == llm.ClassInterrupted
	switch {
	case a.failures >= limit:
		return verdict{}
	case f.Adapted:
		return verdict{retry: true, target: a.target} // another request
	case !retryable(f.Class) && !interrupted:
		return verdict{}
	}
	if interrupted {
		if a.lost || a.resumed {
			return verdict{retry: true, target: a.target}
		}
		return verdict{retry: true, target: a.target, delay: backoff(a.failures, seed)}
	}
	next := min(a.target+1, targets-1)
	fallback := verdict{retry: true, target: next, delay: backoff(a.failures, seed)}
	if f.RetryAfterMs == nil {
		return fallback
	}
	wait := time.Duration(*f.RetryAfterMs) * time.Millisecond
	stay := next == a.target || f.Class == llm.ClassThrottled
	switch {
	case wait <= maxRetryAfter && stay:
		return verdict{retry: true, target: a.target, delay: wait}
	case next != a.target:
		// The hint is about the model that is being left.
		return fallback
	case a.resumed:
		return verdict{retry: true, target: a.target}
	}
	return verdict{park: true, delay: wait}
}

func retryable(c llm.Class) bool {
	return c == llm.ClassThrottled || c == llm.ClassOverloaded || c == llm.ClassNetwork
}

// backoff is the wait before retry n: 200 ms doubling, plus 0 to 25 % jitter,
// in whole milliseconds (ALF-37, ALF-38), and never longer than a provider may
// ask for. The jitter is drawn from the seed, because a machine has no
// randomness: runs differ, a fold does not.
func backoff(n int, seed string) time.Duration {
	const first = 200 * time.Millisecond
	base := maxRetryAfter
	if n < 10 {
		base = min(base, first<<max(n-1, 0))
	}
	return time.Duration(float64(base) * (1 + 0.25*fraction(seed))).Round(time.Millisecond)
}

// fraction draws a number from [0, 1). The hash alone hardly moves its high
// bits for seeds that differ at the end, hence the mixing.
func fraction(seed string) float64 {
	h := fnv.New32a()
	h.Write([]byte(seed))
	x := h.Sum32()
	x = (x ^ x>>16) * 0x85ebca6b
	x = (x ^ x>>13) * 0xc2b2ae35
	return float64(x^x>>16) / (1 << 32)
}
