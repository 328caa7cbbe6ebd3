package perform

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
)

// Effect is one action with an effect outside the run.
type Effect struct {
	Work
	// Timeout bounds the effect, 0 for no bound of its own.
	Timeout time.Duration
	// Watch is called when the effect begins, unless it is nil. It may call stop at any
	// time to end the effect's context, until unwatch is called.
	Watch func(stop context.CancelCauseFunc) (unwatch func())
	// Unhurried reports whether Do has no grace period, because whatever it waits for
	// is already bounded.
	Unhurried bool
}

// Work performs an effect. Both methods return the events to journal, if any.
type Work interface {
	// Do must return soon after ctx ends, and must not panic.
	Do(ctx context.Context) []event.Data
	// GiveUp returns what to journal if Do does not return.
	GiveUp(ctx context.Context, why error) []event.Data
}

// Grace is how long an effect may take to return after its context ended. Then
// it is settled without waiting for it.
const Grace = 5 * time.Second

// ErrTimeout is the cause of an effect's own timeout; [OutOfTime] is that of a
// limit on the run's time.
var ErrTimeout = errors.New("timeout")

// OutOfTime is the cause for which effects end at a limit on the run's time.
type OutOfTime struct {
	Setting string
	// Asks reports whether the run parks there so that the limit can be raised.
	Asks bool
}

// Error names the limit.
func (e OutOfTime) Error() string {
	if e.Setting == budget.IdleTime {
		return "nothing new had come of the run for as long as " + e.Setting + " allows"
	}
	return "the run's wall time is used up"
}

// Guard calls foreign code and turns a panic into the error that failed returns. It
// also calls the methods of a returned error, because they are foreign code too: a nil
// pointer of an error type may panic in Error.
func Guard[T any](call func() (T, error), failed func(message string) error) (v T, err error) {
	deed := "panicked: "
	defer func() {
		if p := recover(); p != nil {
			err = failed(fmt.Sprint(deed, p))
		}
	}()
	if v, err = call(); err != nil {
		deed = fmt.Sprintf("gave an error of type %T that panicked when it was read: ", err)
		read(err)
	}
	return v, err
}

// read calls the methods of an error that later code calls.
func read(err error) {
	_ = err.Error()
	_ = errors.Is(err, context.Canceled)
}
