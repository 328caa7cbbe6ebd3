package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/pawlrun/pawl/engine"
)

// interruptible ends its context with [engine.ErrInterrupted] at the first
// Ctrl-C, so that the run parks; the second one kills as usual. The loss of
// the terminal parks too, unless the process was told to ignore it (nohup).
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
			signal.Stop(ch)
			cancel(engine.ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		cancel(nil)
	}
}

// surviveBrokenPipe turns the signal of a closed stdout into a write error, so
// that a run whose reader goes away is parked and not torn off.
func surviveBrokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
