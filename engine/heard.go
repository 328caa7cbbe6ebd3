package engine

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Heard says that a run's journal has, behind an event, what a command becomes.
// A run that has ended may have done so before it took the command up, which is
// then gone with its inbox.
func (e *Engine) Heard(ctx context.Context, c journal.Command, after int64) (bool, error) {
	records, err := e.store.Records(ctx, c.Run, after, 0)
	if err != nil {
		return false, fmt.Errorf("engine: what became of %s of run %s: %w", c.Kind, c.Run, err)
	}
	for _, r := range records {
		if !becomes(c.Kind, event.Type(r.Type)) {
			continue
		}
		ev, err := event.Decode(r.Body)
		if err != nil {
			return false, fmt.Errorf("engine: run %s, event %d: %w", c.Run, r.Seq, err)
		}
		if saidBy(ev.Data, c) {
			return true, nil
		}
	}
	return false, nil
}

// becomes says that a command of a kind is journalled as an event of a type.
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
	return t == event.TypeToolApprovalResolved
}

// saidBy says that an event has the sender of a command, and is about the same.
func saidBy(data event.Data, c journal.Command) bool {
	switch d := data.(type) {
	case event.CancelRequested:
		return d.By == c.By
	case event.PauseRequested:
		return d.By == c.By
	case event.InputReceived:
		return d.By == c.By
	case event.BudgetRaised:
		return d.By == c.By && d.Setting == c.Setting
	case event.ToolApprovalResolved:
		return d.CallID == c.CallID
	}
	return false
}
