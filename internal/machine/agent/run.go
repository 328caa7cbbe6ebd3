package agent

import (
	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/llm"
)

// ErrUnsupported is returned for a journal that another version wrote in a way
// that this one does not understand.
var ErrUnsupported = machine.ErrUnsupported

// ErrMisfit is returned for an event that cannot follow on those before it,
// such as a second result of a call or anything after run.completed. A driver
// that meets it must not journal the event.
var ErrMisfit = tree.ErrMisfit

// run is what every part of a machine knows: how the run is configured, where it
// stands, and what it and those that it started have used.
type run struct {
	tree.Base
	cfg   Config
	phase phase
	cycle int
	// pause says that somebody wants the run to park between two effects.
	pause bool
	// rooms are what providers said of the room for requests, by target.
	rooms map[string]llm.Room
	// answered counts the model calls whose outcome is known.
	answered int
}

// phase is the position within a cycle.
type phase uint8

const (
	phaseNew phase = iota
	// phaseReady: between cycles, history whole.
	phaseReady
	// phaseModel: the cycle has begun and its answer is not there yet.
	phaseModel
	// phaseTools: the answer is journalled, its calls are not all settled.
	phaseTools
	// phaseSettled: the cycle is whole; what follows is not decided.
	phaseSettled
	// phaseEnding: terminated_by is journalled, run.completed is due.
	phaseEnding
	phaseEnded
)

func (r *run) cancelled() machine.Action {
	if r.Cancel == nil {
		return nil
	}
	return record(event.RunTerminatedBy{Reason: event.ReasonCancelled, Detail: r.Cancel.Reason})
}

// atCeiling reports whether the last cycle that the run may have has begun.
func (r *run) atCeiling() bool {
	return r.cfg.Limits.MaxCycles > 0 && r.cycle >= r.cfg.Limits.MaxCycles
}

// outOfCycles ends the run where it may have no other cycle.
func (r *run) outOfCycles() machine.Action {
	if !r.atCeiling() {
		return nil
	}
	return record(event.RunTerminatedBy{Reason: event.ReasonMaxCycles, Limit: budget.CycleCap})
}
