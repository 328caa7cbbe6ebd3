package engine

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// HasTaken reports whether a run's journal has what a command becomes, whose number the
// inbox gave, in an event behind that with the number after. A run that has ended
// may have done so before it took the command up, which is then gone with its
// inbox. A second cancel becomes nothing: the run is cancelled as it asks.
func (e *Engine) HasTaken(ctx context.Context, c journal.Command, after int64) (bool, error) {
	if c.Kind == journal.Cancel {
		after = 0
	}
	records, err := e.store.Records(ctx, c.Run, after, 0)
	if err != nil {
		return false, fmt.Errorf("engine: what became of %s of run %s: %w", c.Kind, c.Run, err)
	}
	for _, r := range records {
		if r.Run != c.Run || !becomes(c.Kind, event.Type(r.Type)) {
			continue
		}
		ev, err := event.Decode(r.Body)
		if err != nil {
			return false, fmt.Errorf("engine: run %s, event %d: %w", c.Run, r.Seq, err)
		}
		if isOf(ev.Data, c) {
			return true, nil
		}
	}
	return false, nil
}

// becomes reports whether a command of a kind is journalled as an event of a type.
func becomes(kind journal.CommandKind, t event.Type) bool {
	switch kind {
	case journal.Cancel:
		return t == event.TypeCancelRequested
	case journal.Pause:
		return t == event.TypePauseRequested
	case journal.Input:
		return t == event.TypeInputReceived
	case journal.Raise:
		return t == event.TypeBudgetRaised
	}
	return t.Resolves()
}

// isOf reports whether an event of the type that a command becomes is of this
// one. Of two decisions on a call the first counts, whoever made it.
func isOf(data event.Data, c journal.Command) bool {
	switch d := data.(type) {
	case event.CancelRequested:
		return true
	case event.PauseRequested:
		return d.Command == c.ID
	case event.InputReceived:
		return d.Command == c.ID
	case event.BudgetRaised:
		return d.Command == c.ID
	case event.Resolving:
		return d.Resolution().ID == c.CallID
	}
	return false
}
