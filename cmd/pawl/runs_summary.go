package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine/agent"
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
}

// summaries adds to runs what their first event and their spending say. A run
// that cannot be read stays listed without.
func (s *session) summaries(ctx context.Context, runs []control.RunStatus) []summarized {
	out := make([]summarized, len(runs))
	for i, r := range runs {
		out[i].RunStatus = r
		if started, err := s.startOf(ctx, r.Run); err == nil {
			out[i].Input, out[i].Model = given(started)
		}
		if usage, cost, err := s.spentBy(ctx, r.Run); err == nil && cost != nil {
			out[i].Usage, out[i].Cost = usage, cost
		}
	}
	return out
}

// startOf is how a run was started, as its fork changed it.
func (s *session) startOf(ctx context.Context, r journal.Run) (event.RunStarted, error) {
	first, err := decoded[event.RunStarted](s.store.Records(ctx, r.ID, 0, 1))
	if err != nil || r.ForkOf == "" {
		return first, err
	}
	forked, err := decoded[event.RunForked](s.store.Records(ctx, r.ID, r.ForkSeq, 1))
	return first.Forked(forked), err
}

// decoded is the payload of the first of some records.
func decoded[T event.Data](records []journal.Record, err error) (T, error) {
	var none T
	if err != nil || len(records) == 0 {
		return none, err
	}
	e, err := event.Decode(records[0].Body)
	if err != nil {
		return none, err
	}
	d, ok := e.Data.(T)
	if !ok {
		return none, fmt.Errorf("event %d of run %s is %s", e.Seq, e.Run, e.Type())
	}
	return d, nil
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
	spending := []string{
		string(event.TypeRunForked), string(event.TypeModelResponse), string(event.TypeModelAttemptFailed), string(event.TypeBudgetCommitted),
	}
	const size = 500
	var p page
	for after := int64(0); ; {
		records, err := s.store.Records(ctx, r.ID, after, size)
		if err != nil {
			return p.Usage, p.Cost, err
		}
		for _, rec := range records {
			if after = rec.Seq; !slices.Contains(spending, rec.Type) {
				continue
			}
			e, err := event.Decode(rec.Body)
			if err != nil {
				return p.Usage, p.Cost, err
			}
			p.add(e)
		}
		if len(records) < size {
			return p.Usage, p.Cost, nil
		}
	}
}

// cost is what a run has cost, in few words.
func (r summarized) cost() string {
	switch {
	case r.Cost == nil:
		return "-"
	case !r.Cost.Priced && r.Usage.Estimated:
		return fmt.Sprintf("about USD %.4f", r.Cost.USD)
	case !r.Cost.Priced:
		return fmt.Sprintf("at least USD %.4f", r.Cost.USD)
	}
	return usd(r.Cost.USD, r.Usage)
}
