package wire

import (
	"context"
	"errors"
	"io"
	"time"
)

// DefaultIdle is how long a stream may be silent before it counts as stalled.
// Every byte counts, comments and pings too.
const DefaultIdle = 5 * time.Minute

// ErrIdle is the cause when a connection was silent for too long.
var ErrIdle = errors.New("no byte arrived for too long")

// maxAnswer bounds what one answer may send, events and all: a service that
// never stops must not take the process's memory. The longest answers of today
// stay far below it.
const maxAnswer = 128 << 20

// ErrAnswerTooLarge is returned for an answer beyond the bound.
var ErrAnswerTooLarge = errors.New("the answer is larger than 128 MiB")

// ErrArgumentsTooLarge is returned for arguments of which more would be built
// than their bytes are worth.
var ErrArgumentsTooLarge = errors.New("the streamed arguments hold too many values, or go too deep")

// watchedReader puts the watchdog off with every byte that arrives, and bounds
// their number.
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
	if err != nil && errors.Is(context.Cause(w.ctx), ErrIdle) {
		err = ErrIdle
	}
	return n, err
}
