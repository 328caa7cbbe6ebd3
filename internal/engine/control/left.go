package control

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
)

// LeftByServer reports whether a run that no process drives has stopped only
// because its server stopped or died. It returns false for a run that ended,
// that a person parked, that waits for a person, or that a command line drove.
func LeftByServer(ctx context.Context, s journal.Store, r journal.Run) (bool, error) {
	going := r.State == journal.Running || r.State == journal.Waiting || r.State == journal.Queued
	interrupted := r.State == journal.Parked && r.Detail == string(event.ParkInterrupted)
	if r.Parent != "" || !going && !interrupted {
		return false, nil
	}
	for e, err := range drive.Backwards(ctx, s, r, drive.OneOf(event.TypeRunStarted, event.TypeRunResumed, event.TypeRunParked, event.TypeRunForked)) {
		if err != nil {
			return false, fmt.Errorf("control: %w", err)
		}
		switch data := e.Data.(type) {
		case event.RunStarted:
			return data.Served, nil
		case event.RunResumed:
			return data.Served, nil
		case event.RunParked:
			return data.Served, nil
		}
		break
	}
	return false, nil
}
