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
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// summarized is a run as a list shows it.
type summarized struct {
	control.RunStatus
	Input string `json:"input,omitempty"`
	// Model is the first of the run's models.
	Model string    `json:"model,omitempty"`
	Usage llm.Usage `json:"usage,omitzero"`
	// Cost is nil where no model was called.
	Cost *llm.Cost `json:"cost,omitempty"`
	// StepCount and IterationCount are what a run has that has no cycles.
	StepCount      int `json:"stepCount,omitempty"`
	IterationCount int `json:"iterationCount,omitempty"`
}

// summaries adds to runs what their first event and their spending say. A run
// that cannot be read stays listed without.
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

// startOf is how a run was started, as its fork changed it.
func (s *session) startOf(ctx context.Context, r journal.Run) (event.RunStarted, error) {
	first, err := drive.At[event.RunStarted](ctx, s.store, r.ID, 0)
	if err != nil || r.ForkOf == "" {
		return first, err
	}
	forked, err := drive.At[event.RunForked](ctx, s.store, r.ID, r.ForkSeq)
	return first.Forked(forked), err
}

// counted are the steps of a workflow's plan, or the iterations of a loop that have
// ended.
func (s *session) counted(ctx context.Context, run string, started event.RunStarted) (planned, ended int) {
	var of steps
	if of.Begin(started); of.Ledger == nil {
		return len(of.Lines), 0
	}
	for e, err := range drive.AsStored(ctx, s.store, run, event.TypeChildStarted, event.TypeChildFinished, event.Iteration{}.EventType()) {
		if err != nil {
			break
		}
		of.Ledger.Add(e.Data)
	}
	return 0, of.Ledger.Ended()
}

// did is how far a run came, in the unit that it has.
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

// spentBy is what a run has used. An outcome says it; of a run that has none,
// only the events are read that tell of spending.
func (s *session) spentBy(ctx context.Context, r journal.Run) (llm.Usage, *llm.Cost, error) {
	var o event.Outcome
	if len(r.Outcome) > 0 {
		err := json.Unmarshal(r.Outcome, &o)
		return o.Usage, o.Cost, err
	}
	var p page
	for e, err := range drive.AsStored(ctx, s.store, r.ID,
		event.TypeRunForked, event.TypeModelResponse, event.TypeModelAttemptFailed, event.TypeBudgetCommitted) {
		if err != nil {
			return p.Usage, p.Cost, err
		}
		p.add(e)
	}
	return p.Usage, p.Cost, nil
}

// cost is what a run has cost, in few words.
func (r summarized) cost() string {
	if r.Cost == nil {
		return "-"
	}
	few, _, _ := strings.Cut(money(r.Cost, r.Usage), " (")
	return few
}
