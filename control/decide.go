package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/llm"
)

// ArgsError is what a tool says against arguments that a decision gives a call.
type ArgsError struct{ Message string }

// Error is the tool's own sentence.
func (e *ArgsError) Error() string { return e.Message }

// CheckArgs refuses arguments for a pending call that its tool would refuse: a
// slip must not use the question up. The error is then an [*ArgsError].
func (d *Desk) CheckArgs(ctx context.Context, p Pending, args json.RawMessage) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil {
		return &ArgsError{Message: "no JSON object: " + err.Error()}
	}
	if object == nil {
		return &ArgsError{Message: "no JSON object"}
	}
	started, err := d.started(ctx, p.Run)
	if err != nil || started.Spec == "" {
		return err
	}
	// What the run's tools need may be missing here; the run checks again.
	problem, err := launch.CheckCall(started, llm.ToolCall{CallID: p.CallID, Name: p.Tool, Args: args})
	if err == nil && problem != nil {
		return &ArgsError{Message: problem.Message}
	}
	return nil
}

// started is the run's first event.
func (d *Desk) started(ctx context.Context, run string) (event.RunStarted, error) {
	records, err := d.store.Records(ctx, run, 0, 1)
	if err != nil || len(records) == 0 {
		return event.RunStarted{}, errors.Join(fmt.Errorf("control: read the first event of run %s", run), err)
	}
	first, err := event.Decode(records[0].Body)
	if err != nil {
		return event.RunStarted{}, fmt.Errorf("control: run %s: %w", run, err)
	}
	started, _ := first.Data.(event.RunStarted)
	return started, nil
}

// StartedByRun names the run whose driver has started this process, directly or
// through others, or "" when no run has. Such a process decides about nothing:
// neither its own run's calls nor another's.
func (d *Desk) StartedByRun(ctx context.Context) (string, error) {
	drivers, err := d.Drivers(ctx)
	for owner, run := range drivers {
		if engine.StartedBy(owner) {
			return run, nil
		}
	}
	return "", err
}

// Drivers are the owners of the leases of runs that are going, each with one of
// its runs.
func (d *Desk) Drivers(ctx context.Context) (map[string]string, error) {
	rows, err := d.store.Runs(ctx, journal.Filter{States: []journal.State{journal.Running, journal.Waiting}})
	if err != nil {
		return nil, err
	}
	drivers := map[string]string{}
	for _, r := range rows {
		if r.Owner != "" {
			drivers[r.Owner] = r.ID
		}
	}
	return drivers, nil
}
