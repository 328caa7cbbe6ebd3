package view

import (
	"encoding/json"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

// Account is what a run may use, and the usage that no entry shows.
type Account struct {
	Limits    budget.Limits `json:"limits"`
	ToolCalls int           `json:"toolCalls"`
	Turns     int           `json:"turns"`
	// defaultCap reports that the cost limit is Pawl's default. going holds the calls
	// in progress, and windows the context windows of the models that the run has
	// pinned.
	defaultCap bool
	going      map[string]bool
	windows    map[string]int
}

func (a *Account) add(data event.Data) {
	switch d := data.(type) {
	case event.RunStarted:
		a.pinned(d.Config)
	case event.RunForked:
		a.ToolCalls, a.Turns, a.going = 0, 0, nil
		if len(d.Config) > 0 {
			a.pinned(d.Config)
		}
	case event.BudgetRaised:
		c := agent.Config{Limits: a.Limits, DefaultCap: a.defaultCap}
		_ = c.SetLimit(d.Setting, d.Value) // a setting that is invalid now had no effect then either
		a.Limits, a.defaultCap = c.Limits, c.DefaultCap
	case event.ModelResponse:
		if d.Purpose == "" {
			a.Turns++
		}
	case event.ToolStarted: // the first attempt
		if a.going == nil {
			a.going = map[string]bool{}
		}
		if !a.going[d.CallID] {
			a.going[d.CallID] = true
			a.ToolCalls++
		}
	case event.ToolResult:
		delete(a.going, d.CallID)
	}
}

// pinned reads the limits and models from a run's configuration.
func (a *Account) pinned(config json.RawMessage) {
	var c agent.Config
	if json.Unmarshal(config, &c) != nil {
		return
	}
	a.Limits, a.defaultCap, a.windows = c.Limits, c.DefaultCap, map[string]int{}
	for _, t := range c.Targets {
		if t.ContextWindow > 0 {
			a.windows[t.Model] = t.ContextWindow
		}
	}
}
