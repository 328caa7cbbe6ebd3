package agent

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// retry is the state of a call's failed attempts that another one may cure.
type retry struct {
	// count is the number of attempts that followed a failed one. An attempt whose
	// process died does not count.
	count int
	// spent is how long the failed attempts ran, without the waits between them.
	spent time.Duration
	// failure is the newest attempt's, until the next one begins; undecided reports
	// whether it has had no consequence yet, and notBefore is the end of the wait.
	failure   *event.ToolAttemptFailed
	undecided bool
	notBefore time.Time
}

func (r *retry) started() { *r = retry{count: r.count, spent: r.spent} }

// due reports whether an attempt has failed and the next one has not begun.
func (r *retry) due() bool { return r.failure != nil }

// mayRetry reports whether another attempt may follow a failure of the call's next
// attempt: the tool declares that running it twice is harmless, and the call needed no
// person's approval, because an approval is good for one attempt. A call that pays,
// sends, deletes or grants is made once.
func (c *call) mayRetry(cfg *Config) bool {
	return c.mayRepeat(cfg) && unasked(c.verdict.Decision) && c.retry.count < cfg.Limits.ToolRetries()
}

// mayRepeat reports whether an attempt whose process is gone may be made again. An
// irreversible one is made again only after a new approval, and none after too many deaths.
func (c *call) mayRepeat(cfg *Config) bool {
	alone := c.verdict != nil && unasked(c.verdict.Decision) || cfg.answeredBy() != ""
	return c.repeatable() && c.deaths < machine.MaxDeaths && !(alone && c.final())
}

// nextRetry decides about a failed attempt: another one after a wait, or the failure as
// the call's result. A further attempt does not count for max_tool_calls, and is made
// only within the remaining time.
func (c *call) nextRetry(r *run) machine.Action {
	f := c.retry.failure
	delay := backoff(c.retry.count+1, r.ID+"/"+f.CallID+"/"+strconv.Itoa(f.Attempt))
	if f.RetryAfterMs != nil {
		delay = time.Duration(*f.RetryAfterMs) * time.Millisecond
	}
	switch {
	case r.Cancel != nil:
		return record(c.abandoned())
	case !c.mayRetry(&r.cfg), delay > maxRetryAfter, r.Overrun != "", r.noTimeFor(delay) != "":
		return record(f.Result)
	}
	return record(event.ToolRetrying{CallID: f.CallID, Attempt: f.Attempt + 1, DelayMs: delay.Milliseconds()})
}

// abandoned is the result of a call that was cancelled between two attempts.
func (c *call) abandoned() event.ToolResult {
	return c.failed(event.ErrorCancelled, "the run was cancelled before another attempt at this call; the last one failed with "+string(c.retry.failure.Result.ErrorType))
}

func (s *calls) applyAttemptFailed(r *run, e *event.Event, d *event.ToolAttemptFailed) error {
	if c := s.touch(d.CallID); c != nil && c.result == nil && !c.running {
		return fmt.Errorf("%w: attempt %d at %s failed without being in flight", ErrMisfit, d.Attempt, d.CallID)
	}
	return s.onOpen(r, e, d.CallID, func(c *call) {
		c.running, c.deaths = false, 0
		c.retry.failure, c.retry.undecided = d, true
		c.retry.spent += time.Duration(d.Result.DurationMs) * time.Millisecond
	})
}

func (s *calls) applyRetrying(r *run, e *event.Event, d event.ToolRetrying) error {
	if c := s.touch(d.CallID); c != nil && c.result == nil && !c.retry.undecided {
		return fmt.Errorf("%w: attempt %d at %s follows no failure", ErrMisfit, d.Attempt, d.CallID)
	}
	return s.onOpen(r, e, d.CallID, func(c *call) {
		c.retry.undecided = false
		c.retry.count++
		c.retry.notBefore = e.Time.Add(time.Duration(d.DelayMs) * time.Millisecond)
	})
}
