package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/internal/engine"
)

// sameSignal is how long after the first signal another one counts as the same:
// timeout(1) and other wrappers signal both the process and its group, and a person
// does not press a key twice that fast.
const sameSignal = 150 * time.Millisecond

// interruptible ends its context with [engine.ErrInterrupted] at the first Ctrl-C,
// so that the run parks; the second one kills as usual. Losing the terminal parks
// too, unless the process ignores that signal (nohup).
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, signals...)
	go func() {
		select {
		case <-ch:
			cancel(engine.ErrInterrupted)
			time.Sleep(sameSignal)
			signal.Stop(ch)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		// A run may park faster than the duplicate signal arrives.
		if !errors.Is(context.Cause(ctx), engine.ErrInterrupted) {
			signal.Stop(ch)
		}
		cancel(nil)
	}
}

// surviveBrokenPipe turns the signal of a closed stdout into a write error, so that
// a run whose reader is gone parks instead of dying.
func surviveBrokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
