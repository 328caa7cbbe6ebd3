package simulate_test

import (
	"math/rand/v2"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// seldom makes some worlds that are about what few runs would come across,
// drawn from luck of its own: a seed keeps its other events. What [TestSeeds]
// asks for must not hang on the order of goroutines.
func (w *world) seldom() {
	r := rand.New(rand.NewPCG(uint64(w.seed), 23))
	switch n := r.IntN(20); {
	case n < 5: // a conversation that outgrows its window
		w.odds, w.honest, w.cfg.MaxTokens, w.cfg.Limits.MaxCycles = 60, true, 300, 12
		w.cfg.Compact = compact.Settings{
			Window:   550 + r.IntN(350),
			Strategy: pick(r, compact.PeriodicSummary, compact.SummarizeOlder),
		}
		if r.IntN(2) == 0 {
			w.cfg.Hooks = []agent.Hook{{Stage: event.HookBeforeCompaction, Name: "keep"}, {Stage: event.HookAfterCompaction, Name: "note", Observer: true}}
		}
	case n < 6: // a model that does one thing, and has time for it
		w.odds, w.idea, w.cfg.Limits.MaxCycles = 60, pick(r, "read", "panic"), 12
		w.cfg.Compact = compact.Settings{}
	case n < 9: // tools that fail for a while, and processes that do not wait for it
		w.flaky = true
	case n < 10: // an owner who takes the risk of the rule of two
		w.cfg.Policy.MaySend, w.cfg.Policy.RuleOfTwo = nil, policy.RuleOfTwoOff
		w.labels = &event.Labels{Untrusted: true, Private: true, Outgoing: true}
	case n < 14: // a conversation that only nudges and messages keep going
		w.chatty, w.odds, w.honest, w.cfg.MaxTokens, w.cfg.Limits.MaxCycles = true, pick(r, 0, 60), true, 300, 16
		w.cfg.OnNoToolCall, w.cfg.MaxNudges, w.cfg.NudgeText = agent.NoToolCallNudge, 0, strings.Repeat("go on ", 1+r.IntN(80))
		w.cfg.Compact = compact.Settings{
			Window:   400 + r.IntN(400),
			Strategy: pick(r, "", compact.PeriodicSummary, compact.SummarizeOlder),
		}
	}
}
