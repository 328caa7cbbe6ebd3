package control

import (
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/llm"
)

// Spent is what a run, or a run below it, paid a model for in one cycle.
type Spent struct {
	Run   string `json:"run"`
	Name  string `json:"name,omitempty"`
	Step  string `json:"step,omitempty"`
	Cycle int    `json:"cycle"`
	Model string `json:"model,omitempty"`
	// Calls counts the calls that were charged; Usage is what their answers report.
	Calls int       `json:"calls"`
	Usage llm.Usage `json:"usage"`
	USD   float64   `json:"usd"`
	// Reserved is the worst case of a call that is not settled.
	Reserved float64 `json:"reserved"`
}

// Spend returns what a run and all runs below it spent, each by cycle and model. A run
// has an account of its own: what a fork shares was paid by its origin.
func (d *Controller) Spend(ctx context.Context, run string) ([]Spent, error) {
	row, err := d.store.Run(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	below, err := d.Below(ctx, run)
	if err != nil {
		return nil, err
	}
	all, err := d.spentOf(ctx, []Spent{}, row.ID, row.Name)
	for _, b := range below {
		if err != nil {
			break
		}
		all, err = d.spentOf(ctx, all, b.ID, b.Name)
	}
	return all, err
}

// SpendByPart divides what the runs of a spend paid by the parts of their requests.
func (d *Controller) SpendByPart(ctx context.Context, spent []Spent) ([]replay.Share, error) {
	all := []replay.Share{}
	seen := map[string]bool{}
	for _, s := range spent {
		if seen[s.Run] {
			continue
		}
		seen[s.Run] = true
		parts, err := replay.Shares(ctx, d.past, s.Run)
		if err != nil {
			return all, err
		}
		all = append(all, parts...)
	}
	return all, nil
}

// spentOf adds what one run spent itself.
func (d *Controller) spentOf(ctx context.Context, all []Spent, run, name string) ([]Spent, error) {
	own := len(all)
	step, model := "", ""
	open := map[string]*event.Event{}
	at := func(e *event.Event) *Spent {
		for i := range all[own:] {
			if s := &all[own+i]; s.Cycle == e.Cycle && s.Model == model {
				return s
			}
		}
		all = append(all, Spent{Run: run, Name: name, Step: step, Cycle: e.Cycle, Model: model})
		return &all[len(all)-1]
	}
	for e, err := range drive.AsStored(ctx, d.store, run, event.TypeRunStarted, event.TypeBudgetReserved, event.TypeModelRequested, event.TypeModelResponse, event.TypeBudgetCommitted) {
		if err != nil {
			return all, err
		}
		if started, is := e.Data.(event.RunStarted); is {
			step = started.Step
		}
		if e.Run != run {
			continue
		}
		switch data := e.Data.(type) {
		case event.BudgetReserved:
			if data.Run == "" {
				open[data.ID] = e
			}
		case event.ModelRequested:
			model = data.Model
		case event.ModelResponse:
			s := at(e)
			s.Usage = s.Usage.Add(data.Usage)
		case event.BudgetCommitted:
			if data.Run != "" {
				continue
			}
			if delete(open, data.ID); data.USD > 0 || data.Input+data.Output > 0 { // else the call was not made
				s := at(e)
				s.USD += data.USD
				s.Calls++
			}
		}
	}
	for _, e := range open {
		if usd := e.Data.(event.BudgetReserved).USD; usd > 0 {
			at(e).Reserved += usd
		}
	}
	return all, nil
}
