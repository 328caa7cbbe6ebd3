package control

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// LeftByServer reports whether a run that no process drives has stopped only
// because its server stopped or died. It returns false for a run that ended,
// that a person parked, that waits for a person, or that a command line drove.
func (d *Controller) LeftByServer(ctx context.Context, r journal.Run) (bool, error) {
	going := r.State == journal.Running || r.State == journal.Waiting || r.State == journal.Queued
	interrupted := r.State == journal.Parked && r.Detail == string(event.ParkInterrupted)
	if r.Parent != "" || !going && !interrupted {
		return false, nil
	}
	for rec, err := range d.backwards(ctx, r, 8) {
		if err != nil {
			return false, err
		}
		switch event.Type(rec.Type) {
		case event.TypeRunStarted, event.TypeRunResumed, event.TypeRunParked, event.TypeRunForked:
			return served(rec)
		}
	}
	return false, nil
}

// served reports whether an event says that a server drove the run at that time.
func served(rec journal.Record) (bool, error) {
	e, err := event.Decode(rec.Body)
	if err != nil {
		return false, fmt.Errorf("control: run %s, event %d: %w", rec.Run, rec.Seq, err)
	}
	switch data := e.Data.(type) {
	case event.RunStarted:
		return data.Served, nil
	case event.RunResumed:
		return data.Served, nil
	case event.RunParked:
		return data.Served, nil
	}
	return false, nil
}
