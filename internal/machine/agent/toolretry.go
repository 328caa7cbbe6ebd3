package agent

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// mayRetry reports whether a failure of the call's next attempt may be followed by
// another attempt: the tool declares that to run twice does no harm, and nobody
// had to approve the call, because an approval is good for one attempt. What
// pays, sends, deletes or grants is made once (HAR-56 to 60).
func (c *call) mayRetry(cfg *Config) bool {
	return c.mayRepeat(cfg) && unasked(c.verdict.Decision) && c.retry.count < cfg.Limits.ToolRetries()
}

// mayRepeat reports whether an attempt whose process is gone may be made again. One
// that cannot be taken back is made again only when a person approves it anew.
func (c *call) mayRepeat(cfg *Config) bool {
	alone := c.verdict != nil && unasked(c.verdict.Decision) || cfg.answeredBy() != ""
	return c.repeatable() && !(alone && c.final())
}

// nextRetry decides about an attempt that failed: another one after a wait,
// or the failure as the call's result. A further attempt is not another call of
// the budget's (max_tool_calls), and is made only in what is left of the time.
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
		c.running = false
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
