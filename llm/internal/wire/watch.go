package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// DefaultIdle is how long a connection may be silent before it counts as stalled. Every
// byte counts, including comments and pings; the events of a stream have a separate
// limit, see [llm.Request].
const DefaultIdle = 5 * time.Minute

// ErrIdle is the cause if no data arrived for too long.
var ErrIdle = errors.New("no byte arrived for too long")

// StallError is the cause if a stream contained only comments and pings for too long.
type StallError struct{ After time.Duration }

func (e *StallError) Error() string {
	return fmt.Sprintf("the stream stalled: no data for %g s (stall_timeout)", e.After.Seconds())
}

// stall bounds the time without an event with content in a stream. It starts with
// [stall.begin].
type stall struct {
	after  time.Duration
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (s *stall) begin() {
	if s.timer == nil {
		s.timer = time.AfterFunc(s.after, func() { s.cancel(&StallError{s.after}) })
	}
}

// reset restarts the timer at an event with content.
func (s *stall) reset() { s.timer.Reset(s.after) }

func (s *stall) end() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// maxAnswer bounds the bytes of one answer, events included: a service that never stops
// must not exhaust the process's memory. The longest answers of current models are far
// smaller.
const maxAnswer = 128 << 20

// ErrAnswerTooLarge is returned for an answer beyond the bound.
var ErrAnswerTooLarge = errors.New("the answer is larger than 128 MiB")

// ErrArgumentsTooLarge is returned for streamed arguments that describe a value much
// larger than their bytes.
var ErrArgumentsTooLarge = errors.New("the streamed arguments hold too many values, or go too deep")

// watchedReader restarts the watchdog with every byte that arrives, and bounds the
// number of bytes.
type watchedReader struct {
	r        io.Reader
	watchdog *time.Timer
	idle     time.Duration
	ctx      context.Context
	total    int64
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.watchdog.Reset(w.idle)
	}
	if w.total += int64(n); w.total > maxAnswer {
		return n, ErrAnswerTooLarge
	}
	if err == nil {
		return n, nil
	}
	cause := context.Cause(w.ctx)
	if _, stalled := errors.AsType[*StallError](cause); stalled || errors.Is(cause, ErrIdle) {
		err = cause
	}
	return n, err
}
