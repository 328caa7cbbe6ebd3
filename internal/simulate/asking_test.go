package simulate_test

import (
	"math/rand/v2"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
)

// enough is a value of each limit that no run of the simulation reaches.
var enough = map[string]float64{
	"usd_per_run": 1000, "max_input_tokens": 1e9, "max_output_tokens": 1e9, "max_tool_calls": 1e6, "max_wall_time_seconds": 1e9,
}

// ownersAsk has a run of three ask at some of its limits, drawn from luck of its
// own: a seed keeps its other events.
func (w *world) ownersAsk() {
	r := rand.New(rand.NewPCG(uint64(w.seed), 13))
	if r.IntN(3) > 0 {
		return
	}
	w.cfg.OnBudget = map[string]agent.OnBudget{}
	for _, setting := range [...]string{"usd_per_run", "max_input_tokens", "max_output_tokens", "max_tool_calls", "max_wall_time_seconds"} {
		if r.IntN(2) == 0 {
			w.cfg.OnBudget[setting] = agent.BudgetAsk
		}
	}
	if w.cfg.OnBudget["max_tool_calls"] != "" {
		w.cfg.Limits.MaxToolCalls = 1 + r.IntN(12)
	}
	if w.cfg.OnBudget["max_wall_time_seconds"] != "" {
		w.cfg.Limits.MaxWallSeconds = float64(2 + r.IntN(60))
	}
}

// raise is what the owner of a run that has parked at a limit does, sooner or
// later.
func (s *simulation) raise(in *incarnation, run string, parked *event.RunParked) {
	if parked == nil || parked.Limit == "" || s.world.bad(2) {
		return
	}
	s.send(in, journal.Command{Run: run, By: "owner", Kind: journal.Raise, Setting: parked.Limit, Value: enough[parked.Limit]})
}

// asking holds a journal against the promise that a call for which a limit has
// no room is refused only where the owner is not asked about it.
type asking struct {
	held string
	open map[string]bool
}

func (a *asking) event(w *world, data event.Data) {
	switch d := data.(type) {
	case event.ToolCall:
		if a.open == nil {
			a.open = map[string]bool{}
		}
		a.open[d.CallID] = true
	case event.ToolStarted:
		if a.held == "" {
			return
		}
		w.seen("call after a raise of " + a.held)
		a.held = ""
	case event.ToolResult:
		delete(a.open, d.CallID)
		if d.Limit != "" && w.cfg.OnBudget[d.Limit] == agent.BudgetAsk {
			w.violate("%s was refused for %s, about which the owner is asked", d.CallID, d.Limit)
		}
	case event.RunParked:
		if d.Limit == "" {
			return
		}
		if w.cfg.OnBudget[d.Limit] != agent.BudgetAsk {
			w.violate("the run parks at %s, about which nobody is asked", d.Limit)
		}
		w.seen("parked at a limit")
		if len(a.open) > 0 {
			a.held = d.Limit
		}
	}
}
