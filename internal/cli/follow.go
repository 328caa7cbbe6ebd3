package cli

import (
	"context"
	"fmt"
	"iter"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
)

// follow shows a run that this process drives until it ends or parks, and returns
// its exit code as an error.
func (a *app) follow(r drive.Run, v display, o output) error {
	a.showAddress(r.RunID())
	shown := show(o.events(r), v)
	if shown != nil {
		// The output is gone, so the run must not continue to spend.
		r.Interrupt()
	}
	state, err := r.Wait(context.Background())
	if err != nil {
		return failure(err)
	}
	if state.Outcome == nil { // it has parked, perhaps long after its start
		a.showAddress(r.RunID())
	}
	switch {
	case brokenPipe(shown):
		return withCode(exitOfState(state))
	case shown != nil:
		return failure(fmt.Errorf("%w; the journal is complete: %s runs show %s", shown, a.invocation(), r.RunID()))
	}
	return withCode(exitOfState(state))
}

// show passes every event to the view. An engine's failure ends the view too, and
// Wait returns it.
func show(events iter.Seq2[event.Event, error], v display) error {
	for e, err := range events {
		if err != nil {
			break
		}
		if err := v.show(e); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
	}
	if err := v.end(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
