package stop_test

import (
	"fmt"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/stop"
)

// did is a settled call and what the working tree was after it.
type did struct {
	facts  event.Facts
	tree   string
	news   bool
	result event.ToolResult
}

func edited(tree string) did {
	return did{facts: event.Facts{Paths: []event.PathUse{{Path: "main.go", Write: true}}}, tree: tree}
}

func ran(tree string, news bool) did {
	return did{facts: event.Facts{Commands: []event.Command{{Words: []string{"make"}}}}, tree: tree, news: news}
}

// looked is a call after which the tree was looked at, though it changes nothing.
func looked(tree string) did { d := read(); d.tree = tree; return d }

func read() did { return did{facts: event.Facts{Paths: []event.PathUse{{Path: "main.go"}}}} }

// What counts is the work, not what is called how often.
func TestCyclesThatLeaveTheWorkingTreeAsItWasAreCounted(t *testing.T) {
	outside := edited("a")
	outside.facts.Paths = []event.PathUse{{Path: "/tmp/x", Write: true, Outside: true}}
	for name, c := range map[string]struct {
		cycle func(n int) []did
		// nudge and stop are the cycles that call for them, 0 for none.
		nudge, stop int
	}{
		"edits that change nothing": {func(int) []did { return []did{edited("a")} }, 9, 17},
		"edits that are taken back": {func(n int) []did { return []did{edited(fmt.Sprint(n % 3))} }, 11, 19},
		"edits that fail, between looks at files": {func(n int) []did {
			if n%2 == 0 {
				return []did{read()}
			}
			return []did{edited("a")}
		}, 17, 33},
		"an edit to no effect, then the same tests again and again": {func(n int) []did {
			if n <= 2 {
				return []did{edited("a")}
			}
			return []did{ran("a", false)}
		}, 9, 17},
		"an edit to no effect, then tests that say something new": {func(n int) []did {
			if n <= 2 {
				return []did{edited("a")}
			}
			return []did{ran("a", true)}
		}, 0, 0},
		"an edit to no effect, then tests that say something new before some that do not": {func(n int) []did {
			if n <= 2 {
				return []did{edited("a")}
			}
			return []did{ran("a", true), ran("a", false)}
		}, 0, 0},
		"an edit to no effect, then tests before looks at files": {func(n int) []did {
			if n <= 2 {
				return []did{edited("a")}
			}
			return []did{ran("a", false), looked("a")}
		}, 9, 17},
		"edits before looks at files":         {func(int) []did { return []did{edited("a"), looked("a")} }, 9, 17},
		"commands alone, whatever they print": {func(int) []did { return []did{ran("a", false)} }, 0, 0},
		"files read and nothing changed":      {func(int) []did { return []did{read()} }, 0, 0},
		"edits that change something":         {func(n int) []did { return []did{edited(fmt.Sprint(n))} }, 0, 0},
		"a tree that nobody can tell":         {func(int) []did { return []did{edited("")} }, 0, 0},
		"files written elsewhere":             {func(int) []did { return []did{outside} }, 0, 0},
		"a new state now and then":            {func(n int) []did { return []did{edited(fmt.Sprint(n / 7))} }, 0, 0},
		"beside calls that change something":  {func(n int) []did { return []did{edited("a"), ran(fmt.Sprint(n), false)} }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var r stop.Repetition
			nudge, end := 0, 0
			for n := 1; n <= 60 && end == 0; n++ {
				var w stop.Work
				for _, d := range c.cycle(n) {
					d.result.Tree = d.tree
					w.Add(&d.facts, &d.result, d.news)
				}
				r.Worked(w)
				switch d, due := r.Due(); {
				case due && d.Pattern != string(stop.UnchangedTree):
					t.Fatalf("cycle %d: %+v", n, d)
				case due && d.Action == event.StuckNudge && nudge == 0:
					nudge = n
					r.Nudged(stop.UnchangedTree)
				case due && d.Action == event.StuckStop:
					end = n
				case due:
					t.Fatalf("cycle %d: %+v", n, d)
				}
			}
			if nudge != c.nudge || end != c.stop {
				t.Errorf("nudged in cycle %d and stopped in %d, want %d and %d", nudge, end, c.nudge, c.stop)
			}
		})
	}
}

func TestCyclesThatChangeNothingAreAboutNoTool(t *testing.T) {
	var r stop.Repetition
	r.Called(stop.Call{Tool: "fs.edit", Digest: "a", Result: &event.ToolResult{Output: "x"}})
	for range 9 {
		r.Worked(stop.Work{States: []string{"a"}, Edited: true})
	}
	if d, due := r.Due(); !due || d != (event.Stuck{Pattern: string(stop.UnchangedTree), Count: 8, Action: event.StuckNudge}) {
		t.Errorf("due %t: %+v", due, d)
	}
}

// A state that comes back after very many others is taken for a new one: what
// is remembered is bounded.
func TestFewStatesOfTheTreeAreRemembered(t *testing.T) {
	var r stop.Repetition
	for n := range 10_000 {
		r.Worked(stop.Work{States: []string{fmt.Sprint(n % 100)}, Edited: true})
		if d, due := r.Due(); due {
			t.Fatalf("cycle %d: %+v", n, d)
		}
	}
}
