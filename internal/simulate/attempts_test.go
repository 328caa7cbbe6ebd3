package simulate_test

import (
	"time"

	"github.com/pawlrun/pawl/event"
)

// attempts checks a journal against the promises about further attempts at a call: only
// where two are harmless and no approval was needed, not before the wait is over, under
// the same key, and no more than the owner allows.
type attempts struct {
	effects  map[string]event.Effect
	gated    map[string]bool
	keys     map[string]string
	retries  map[string]int
	earliest map[string]time.Time
	failed   map[string]bool
}

func (a *attempts) event(w *world, e *event.Event) {
	switch d := e.Data.(type) {
	case event.ModelResponse:
		*a = attempts{
			effects: map[string]event.Effect{}, gated: map[string]bool{}, keys: map[string]string{},
			retries: map[string]int{}, earliest: map[string]time.Time{}, failed: map[string]bool{},
		}
	case event.ToolCall:
		a.effects[d.CallID] = d.Effect
		if d.EditedBy != "" {
			delete(a.keys, d.CallID) // other arguments are another action
		}
	case event.PolicyDecision:
		a.gated[d.CallID] = d.Decision == event.DecisionAsk
	case event.ToolStarted:
		a.started(w, e, d)
	case event.ToolAttemptFailed:
		a.failed[d.CallID] = true
		if effect := a.effects[d.CallID]; effect != event.EffectPure && effect != event.EffectIdempotent || a.gated[d.CallID] {
			w.violate("%s (%s) failed so that it may run again", d.CallID, effect)
		}
	case event.ToolRetrying:
		a.retries[d.CallID]++
		if !a.failed[d.CallID] || a.retries[d.CallID] > w.cfg.Limits.ToolRetries() {
			w.violate("attempt %d at %s is the %d. retry", d.Attempt, d.CallID, a.retries[d.CallID])
		}
		a.earliest[d.CallID], a.failed[d.CallID] = e.Time.Add(time.Duration(d.DelayMs)*time.Millisecond), false
	case event.ToolResult:
		if a.failed[d.CallID] {
			w.seen("tool failure settled")
		}
		delete(a.earliest, d.CallID)
	case event.RunResumed:
		if len(a.earliest) > 0 {
			w.seen("tool retry across a restart")
		}
	}
}

func (a *attempts) started(w *world, e *event.Event, d event.ToolStarted) {
	switch key, again := a.keys[d.CallID]; {
	case a.failed[d.CallID]:
		w.violate("%s runs again although nothing was decided about its failure", d.CallID)
	case again && key != d.Key:
		w.violate("%s runs under the keys %q and %q", d.CallID, key, d.Key)
	case e.Time.Before(a.earliest[d.CallID]):
		w.violate("attempt %d at %s does not wait until %s", d.Attempt, d.CallID, a.earliest[d.CallID])
	case !a.earliest[d.CallID].IsZero():
		w.seen("tool retry")
	}
	a.keys[d.CallID] = d.Key
	delete(a.earliest, d.CallID)
}
