package engine

import (
	"context"
	"errors"
	"net"
	"net/url"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// settledAttempt is what is journalled of an attempt at a tool call: the call's
// result, or a failure about which the machine decides first.
func settledAttempt(ctx context.Context, a machine.RunTool, r event.ToolResult, err error) event.Data {
	after, transient := transience(ctx, err)
	r.Retryable = transient
	if !transient || !a.Retries {
		return r
	}
	f := event.ToolAttemptFailed{CallID: a.CallID, Attempt: a.Attempt, Result: r}
	if after != nil {
		f.RetryAfterMs = new(after.Milliseconds())
	}
	return f
}

// transience says that another attempt may cure a failure, and when it should
// be made at the earliest, where that is known: the tool said so, or the network
// took too long (HAR-53). A call that the run itself stopped did not fail.
func transience(ctx context.Context, err error) (after *time.Duration, ok bool) {
	if cause := context.Cause(ctx); err == nil || cause != nil && !errors.Is(cause, errTimeout) {
		return nil, false
	}
	if t, declared := errors.AsType[*tool.TransientError](err); declared {
		return t.RetryAfter, true
	}
	return nil, networkTimeout(err)
}

// networkTimeout reports whether the network did not answer in time. That a
// tool as a whole took too long says nothing of the kind.
func networkTimeout(err error) bool {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Timeout()
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Timeout()
	}
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.Timeout()
}
