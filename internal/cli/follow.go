package cli

import (
	"context"
	"fmt"
	"iter"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
)

// follow shows a run that this process drives until it has ended or parked,
// and gives its exit code as an error.
func (a *app) follow(r drive.Run, v display, o output) error {
	shown := show(o.events(r), v)
	if shown != nil {
		// Nobody hears the run any more, so it must not go on spending.
		r.Interrupt()
	}
	state, err := r.Wait(context.Background())
	if err != nil {
		return failure(err)
	}
	switch {
	case brokenPipe(shown):
		return withCode(exitOfState(state))
	case shown != nil:
		return failure(fmt.Errorf("%w; the journal is complete: %s runs show %s", shown, a.invocation(), r.RunID()))
	}
	return withCode(exitOfState(state))
}

// show gives every event to the view until there are no more. An engine's
// failure ends the view too, and is what Wait returns.
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
