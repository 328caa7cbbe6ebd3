package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/models"
)

// account is what a run may use, and the usage that no other figure shows.
type account struct {
	Limits    budget.Limits `json:"limits"`
	ToolCalls int           `json:"toolCalls"`
	Turns     int           `json:"turns"`
	// ActiveSeconds is how long the run has been active, IdleSeconds the time since
	// its last progress.
	ActiveSeconds float64 `json:"activeSeconds"`
	IdleSeconds   float64 `json:"idleSeconds"`
	// started holds the counted calls. windows holds the context windows of the
	// run's models, as recorded at its start or else as known here, 0 if unknown.
	// pins holds the run's current settings.
	started map[string]bool
	windows map[string]int
	pins    agent.Config
}

func (a *account) add(data event.Data) {
	switch d := data.(type) {
	case event.RunStarted:
		a.pinned(d.Config)
	case event.RunForked:
		a.ToolCalls, a.Turns, a.started = 0, 0, nil
		if len(d.Config) > 0 {
			a.pinned(d.Config)
		}
	case event.BudgetRaised:
		_ = a.pins.SetLimit(d.Setting, d.Value) // a setting that is invalid now changed nothing then either
		a.Limits = a.pins.Limits
	case event.ModelResponse:
		if d.Purpose == "" {
			a.Turns++
		}
	case event.ToolStarted:
		if a.started == nil {
			a.started = map[string]bool{}
		}
		if !a.started[d.CallID] {
			a.started[d.CallID] = true
			a.ToolCalls++
		}
	}
}

// pinned reads the limits and models of a run's first event.
func (a *account) pinned(config json.RawMessage) {
	var c agent.Config
	if json.Unmarshal(config, &c) != nil {
		return
	}
	a.pins, a.Limits, a.windows = c, c.Limits, map[string]int{}
	for _, t := range c.Targets {
		if t.ContextWindow > 0 {
			a.windows[t.Model] = t.ContextWindow
		}
	}
}

// window returns the context window of a model of the run.
func (a *account) window(model string) (models.Info, bool) {
	n, known := a.windows[model]
	if !known {
		if a.windows == nil {
			a.windows = map[string]int{}
		}
		info, _ := new(models.Resolver).Lookup(model)
		n, a.windows[model] = info.ContextWindow, info.ContextWindow
	}
	return models.Info{ContextWindow: n}, n > 0
}

// used returns how much of each limit has been used.
func (p *page) used() string {
	l := p.Limits
	var parts []string
	if limit, _ := l.CostCap(); limit > 0 {
		used := 0.0
		if p.Cost != nil {
			used = p.Cost.USD
		}
		parts = append(parts, usd(used, p.Usage)+" of "+dollars(limit))
	}
	spent := budget.Spent{
		Cycles: p.Cycles, Turns: p.Turns, ToolCalls: p.ToolCalls, Input: p.Usage.Input, Output: p.Usage.Output,
		Active: seconds(p.ActiveSeconds), Idle: seconds(p.IdleSeconds),
	}
	table := budget.Table()
	slices.SortStableFunc(table, func(a, b budget.Setting) int { return cmp.Compare(a.Kind, b.Kind) })
	for _, s := range table {
		limit, _ := s.Value(l)
		switch used := s.Used(spent); {
		case limit <= 0 || s.Kind == budget.Money:
		case s.Kind == budget.Each:
			parts = append(parts, view.Bound(s, limit)...)
		case s.Kind == budget.Time || s.Kind == budget.Idle:
			parts = append(parts, lasting(used)+" of "+strings.TrimSpace(lasting(limit)+" "+s.Unit))
		default:
			parts = append(parts, fmt.Sprintf("%.0f of %.0f %s", used, limit, s.Unit))
		}
	}
	return strings.Join(parts, ", ")
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
