package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// Spot identifies a child run within its parent. Two trees are compared spot by
// spot.
type Spot struct {
	// Step is the step with its attempt, or the run's other role in a workflow.
	Step string `json:"step,omitempty"`
	// Call is the number of the call, for an agent that was called as a tool.
	Call int `json:"call,omitempty"`
}

// String names the spot.
func (p Spot) String() string {
	if p.Call > 0 {
		return fmt.Sprintf("call %d of an agent", p.Call)
	}
	return "step " + p.Step
}

// Child is a run in its spot of a parent.
type Child struct {
	Spot
	Run  string `json:"run"`
	Name string `json:"name,omitempty"`
	// call is the call that the run answers.
	call string
}

var callPlace = regexp.MustCompile(`-(\d+)-(\d+)$`)

// belowOf returns child runs in their spots. A run that replaces another, as in a fork, is
// compared in its place. Agents that were called as tools are in the order of the calls,
// not of their starts.
func belowOf(children []*view.ChildRun) (runs []Child) {
	places := map[string]int{}
	for _, c := range children {
		b := Child{Spot{Step: c.Step}, c.Run, c.Name, c.CallID}
		if at, again := places[c.Step]; again && c.Step != "" {
			runs[at] = b
			continue
		}
		places[c.Step] = len(runs)
		runs = append(runs, b)
	}
	order := func(b Child) (cycle, n int) {
		if at := callPlace.FindStringSubmatch(b.call); at != nil {
			cycle, _ = strconv.Atoi(at[1])
			n, _ = strconv.Atoi(at[2])
		}
		return cycle, n
	}
	slices.SortStableFunc(runs, func(a, b Child) int {
		cycleA, a1 := order(a)
		cycleB, b1 := order(b)
		return cmp.Or(cmp.Compare(cycleA, cycleB), cmp.Compare(a1, b1))
	})
	calls := 0
	for i := range runs {
		if runs[i].Step == "" {
			calls++
			runs[i].Call = calls
		}
	}
	return runs
}

// bySteps groups a workflow's events by step and sorts the steps by rank, because
// the order in which parallel steps finish is arbitrary.
func (s *side) bySteps(ranks map[string]int) {
	rank := func(t plainEvent) int {
		of, about := t.event.Data.(event.Stepped)
		if !about || of.OfStep() == "" {
			return -1
		}
		id := of.OfStep()
		if pass, is := of.(event.Iteration); is {
			id = fmt.Sprintf("%s[%d]", id, pass.Index)
		}
		if _, known := ranks[id]; !known {
			ranks[id] = len(ranks)
		}
		return ranks[id]
	}
	first := slices.IndexFunc(s.events, func(t plainEvent) bool { return rank(t) >= 0 })
	if first < 0 {
		return
	}
	keys := map[*event.Event]int{}
	for _, t := range s.events[first:] {
		if keys[t.event] = rank(t); keys[t.event] < 0 {
			keys[t.event] = math.MaxInt // the run's end
		}
	}
	slices.SortStableFunc(s.events[first:], func(a, b plainEvent) int { return cmp.Compare(keys[a.event], keys[b.event]) })
}

// compareBelow compares the children of two runs spot by spot.
func (d *Diff) compareBelow(ctx context.Context, store journal.Store, l, r *side) error {
	there := map[Spot]Child{}
	for _, b := range r.below {
		there[b.Spot] = b
	}
	for _, b := range l.below {
		other, both := there[b.Spot]
		if !both {
			d.OnlyLeft = append(d.OnlyLeft, b)
			continue
		}
		delete(there, b.Spot)
		_, err := store.Run(ctx, b.Run)
		_, errRight := store.Run(ctx, other.Run)
		switch err := cmp.Or(err, errRight); {
		case errors.Is(err, journal.ErrNotFound): // it was not created, or is a function
			continue
		case err != nil:
			return err
		}
		pair, err := diff(ctx, store, b.Run, other.Run, l.words, r.words)
		if err != nil {
			return err
		}
		if pair.Spot = b.Spot; pair.PartAt == nil {
			pair.Cycles = []CyclePair{}
		}
		d.Below = append(d.Below, pair)
	}
	d.OnlyRight = slices.DeleteFunc(r.below, func(b Child) bool { _, left := there[b.Spot]; return !left })
	return nil
}

// Alike counts the children that are equal on both sides, and reports whether all
// are.
func (d *Diff) Alike() (same int, all bool) {
	all = len(d.OnlyLeft)+len(d.OnlyRight) == 0
	for i := range d.Below {
		n, allOf := d.Below[i].Alike()
		if same += n; d.Below[i].PartAt == nil {
			same++
		}
		all = all && allOf && d.Below[i].PartAt == nil
	}
	return same, all
}
