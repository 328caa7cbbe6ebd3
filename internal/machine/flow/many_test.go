package flow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// manyItems plays a loop over items with at most atOnce active ones, 0 for no limit,
// and returns its events.
func manyItems(t *testing.T, items, atOnce int) []event.Event {
	p := plan.Plan{Steps: []plan.Step{{ID: "each", Loop: &plan.Loop{Items: static(items), Body: plan.Plan{Steps: []plan.Step{step("a"), step("b", "a")}}}}}}
	p.Steps[0].Loop.Items.Concurrency = atOnce
	play := newPlayer(t, p)
	var open []string
	for play.m.State().Outcome == nil {
		begun := len(play.begun)
		play.decide()
		for i := begun; i < len(play.begun); i++ {
			open = append(open, fmt.Sprint("run", i))
		}
		if len(open) == 0 {
			break
		}
		play.finish(open[0], ok("done"))
		open = open[1:]
	}
	if o := play.m.State().Outcome; o == nil || !o.OK || len(play.begun) != 2*items {
		t.Fatalf("%+v", o)
	}
	return play.events
}

// The cost of an event does not grow with the number of items: ten times as many items
// take about ten times as long.
func TestManyItemsTakeNoMoreEach(t *testing.T) {
	if testing.Short() {
		t.Skip("measures how time grows")
	}
	for _, atOnce := range []int{64, 0} {
		t.Run(fmt.Sprint(atOnce, " at once"), func(t *testing.T) {
			few := takes(t, func() { manyItems(t, 500, atOnce) })
			many := takes(t, func() { manyItems(t, 5000, atOnce) })
			if many > 30*few {
				t.Errorf("500 items take %s, 5000 take %s", few, many)
			}
		})
	}
}

// Folding iterations that have ended is fast.
func TestFinishedIterationsAreFoldedQuickly(t *testing.T) {
	if testing.Short() {
		t.Skip("measures how time grows")
	}
	events := manyItems(t, 5000, 64)
	took := takes(t, func() {
		m := flow.New()
		for i := range events {
			if err := m.Apply(&events[i]); err != nil {
				t.Fatal(err)
			}
		}
	})
	if took > time.Second {
		t.Errorf("a fold of %d events takes %s", len(events), took)
	}
}

// takes returns the processor time that do uses.
func takes(t *testing.T, do func()) time.Duration {
	before := processor.Time(t)
	do()
	return processor.Time(t) - before
}
