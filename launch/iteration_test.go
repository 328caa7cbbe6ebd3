package launch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/memory"
)

// A run of long answers, with one field of the iteration block changed at a
// time. What the run does shows each of the four.
//
// rows: ALDO-4, ALDO-5, ALDO-7, ALDO-12
func TestEachFieldOfAnIterationHasItsEffect(t *testing.T) {
	type seen struct {
		Reason event.Reason
		Cycles int
		// Strategy is how the history was first compressed, Summaries how many
		// answers of the model were summaries.
		Strategy  string
		Summaries int
	}
	var script strings.Builder
	for i := range 40 {
		fmt.Fprintf(&script, "- text: %q\n", fmt.Sprint("Step ", i+1, ". ")+strings.Repeat("Still at work. ", 40))
	}
	path := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(path, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	fields := func(cycles, window int, strategy, text string) string {
		return fmt.Sprintf("tools: {allow: []}\niteration: {max_cycles: %d, context_window: %d, summary_strategy: %s, termination_conditions: [{kind: text-includes, text: %q}]}",
			cycles, window, strategy, text)
	}
	for _, tt := range []struct {
		name, file string
		want       seen
	}{
		{"as it is", fields(12, 100_000, "rolling-window", "never"), seen{event.ReasonMaxCycles, 12, "", 0}},
		{"max_cycles", fields(7, 100_000, "rolling-window", "never"), seen{event.ReasonMaxCycles, 7, "", 0}},
		{"context_window", fields(12, 1000, "rolling-window", "never"), seen{event.ReasonMaxCycles, 12, "rolling-window", 0}},
		{"summary_strategy", fields(12, 1000, "periodic-summary", "never"), seen{event.ReasonMaxCycles, 12, "periodic-summary", 3}},
		{"termination_conditions", fields(12, 100_000, "rolling-window", "Step 3."), seen{event.ReasonConditionMet, 3, "", 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			o.Model = "scripted/" + path
			started, _, env := start(t, file(t, tt.file), o)
			_, events := run(t, memory.New(nil), started, env)
			got := seen{Reason: outcome(t, events).Reason, Cycles: outcome(t, events).Cycles}
			for _, e := range events {
				switch d := e.Data.(type) {
				case event.HistoryCompressed:
					if got.Strategy == "" {
						got.Strategy = d.Strategy
					}
				case event.ModelResponse:
					if d.Purpose == event.PurposeSummary {
						got.Summaries++
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
