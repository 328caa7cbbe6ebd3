package launch_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/journal/memory"
)

// A run that continues another one has an account of its own: the ended run's usage
// does not count, and its limits start from zero.
func TestAContinuedRunHasAnAccountOfItsOwn(t *testing.T) {
	store := memory.New(nil)
	started, _, env := start(t, file(t, "budgets: {max_model_turns: 1, max_tool_calls: 2}"), options(t))
	id, events := run(t, store, started, env)
	first := outcome(t, events)
	if first.Reason != "budget:max_model_turns" {
		t.Fatalf("ended with %+v", first)
	}
	next, env, err := launch.Continue(t.Context(), store, id, "Go on.", launch.Options{Host: launch.Host{Getenv: options(t).Getenv}})
	if err != nil {
		t.Fatal(err)
	}
	_, events = run(t, store, next, env)
	second := outcome(t, events)
	var reported event.Outcome
	for _, e := range events {
		if r, ok := e.Data.(event.ModelResponse); ok {
			reported.Usage = reported.Usage.Add(r.Usage)
		}
	}
	if second.Reason != "budget:max_model_turns" || second.Cycles != 1 || second.Usage != reported.Usage || reported.Usage.Input == 0 {
		t.Errorf("the second run: %+v, reported %+v", second, reported.Usage)
	}
}
