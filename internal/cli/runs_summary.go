package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// summarized is a run in a list.
type summarized struct {
	control.RunStatus
	Input string `json:"input,omitempty"`
	// Model is the first of the run's models.
	Model string    `json:"model,omitempty"`
	Usage llm.Usage `json:"usage,omitzero"`
	// Cost is nil if no model was called.
	Cost *llm.Cost `json:"cost,omitempty"`
	// StepCount and IterationCount replace the cycles of runs that have none.
	StepCount      int `json:"stepCount,omitempty"`
	IterationCount int `json:"iterationCount,omitempty"`
}

// summaries adds data of the first event and the spending to runs. A run that
// cannot be read is listed without them.
func (s *session) summaries(ctx context.Context, runs []control.RunStatus) []summarized {
	out := make([]summarized, len(runs))
	for i, r := range runs {
		out[i].RunStatus = r
		if started, err := s.startOf(ctx, r.Run); err == nil {
			out[i].Input, out[i].Model = given(started)
			out[i].StepCount, out[i].IterationCount = s.counted(ctx, r.ID, started)
		}
		if usage, cost, err := s.spentBy(ctx, r.Run); err == nil && cost != nil {
			out[i].Usage, out[i].Cost = usage, cost
		}
	}
	return out
}

// startOf returns how a run was started, with the changes of its fork.
func (s *session) startOf(ctx context.Context, r journal.Run) (event.RunStarted, error) {
	first, _, err := drive.Began(ctx, s.store, r.ID)
	if err != nil || r.ForkOf == "" {
		return first, err
	}
	forked, err := drive.At[event.RunForked](ctx, s.store, r.ID, r.ForkSeq)
	return first.Forked(forked), err
}

// counted counts the steps of a workflow's plan, or the finished iterations of a
// loop.
func (s *session) counted(ctx context.Context, run string, started event.RunStarted) (planned, ended int) {
	var v view.View
	if v.Steps.Begin(started); v.Steps.Ledger == nil {
		return len(v.Steps.Lines), 0
	}
	for e, err := range drive.AsStored(ctx, s.store, run, event.TypeChildStarted, event.TypeChildFinished, event.Iteration{}.EventType()) {
		if err != nil {
			break
		}
		v.Add(e)
	}
	return 0, v.Steps.Ledger.Ended()
}

// did returns the progress of a run, in its unit.
func (r summarized) did() string {
	switch {
	case r.Cycles > 0 || r.StepCount+r.IterationCount == 0 && r.Kind != launch.KindLoop && r.Kind != launch.KindGoal:
		return plural(r.Cycles, "cycle")
	case r.StepCount > 0:
		return plural(r.StepCount, "step")
	}
	return plural(r.IterationCount, "iteration")
}

func given(d event.RunStarted) (input, model string) {
	var c agent.Config
	if json.Unmarshal(d.Config, &c) == nil && len(c.Targets) > 0 {
		model = c.Targets[0].Model
	}
	if d.Input != nil {
		input = d.Input.Parts.Text()
	}
	return input, model
}

// spentBy returns what a run has used: from its outcome, or else from the events
// that record spending.
func (s *session) spentBy(ctx context.Context, r journal.Run) (llm.Usage, *llm.Cost, error) {
	var o event.Outcome
	if len(r.Outcome) > 0 {
		err := json.Unmarshal(r.Outcome, &o)
		return o.Usage, o.Cost, err
	}
	var v view.View
	for e, err := range drive.AsStored(ctx, s.store, r.ID,
		event.TypeRunForked, event.TypeModelResponse, event.TypeModelAttemptFailed, event.TypeBudgetCommitted) {
		if err != nil {
			return v.Run().Usage, v.Run().Cost, err
		}
		v.Add(e)
	}
	return v.Run().Usage, v.Run().Cost, nil
}

// cost returns the cost of a run in short form.
func (r summarized) cost() string {
	if r.Cost == nil {
		return "-"
	}
	few, _, _ := strings.Cut(money(r.Cost, r.Usage), " (")
	return few
}
