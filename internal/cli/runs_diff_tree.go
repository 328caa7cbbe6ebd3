package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// spot identifies a child run within its parent. Two trees are compared spot by
// spot.
type spot struct {
	// Step is the step with its attempt, or the run's other role in a workflow.
	Step string `json:"step,omitempty"`
	// Call is the number of the call, for an agent that was called as a tool.
	Call int `json:"call,omitempty"`
}

func (p spot) String() string {
	if p.Call > 0 {
		return fmt.Sprintf("call %d of an agent", p.Call)
	}
	return "step " + p.Step
}

// below is a run in its spot of a parent.
type below struct {
	spot
	Run  string `json:"run"`
	Name string `json:"name,omitempty"`
	// call is the call that the run answers.
	call string
}

var callPlace = regexp.MustCompile(`-(\d+)-(\d+)$`)

// belowOf returns child runs in their spots. A run that replaces another, as in a fork, is
// compared in its place. Agents that were called as tools are in the order of the calls,
// not of their starts.
func belowOf(children []*view.ChildRun) (runs []below) {
	places := map[string]int{}
	for _, c := range children {
		b := below{spot{Step: c.Step}, c.Run, c.Name, c.CallID}
		if at, again := places[c.Step]; again && c.Step != "" {
			runs[at] = b
			continue
		}
		places[c.Step] = len(runs)
		runs = append(runs, b)
	}
	order := func(b below) (cycle, n int) {
		if at := callPlace.FindStringSubmatch(b.call); at != nil {
			cycle, _ = strconv.Atoi(at[1])
			n, _ = strconv.Atoi(at[2])
		}
		return cycle, n
	}
	slices.SortStableFunc(runs, func(a, b below) int {
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
	rank := func(t telling) int {
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
	first := slices.IndexFunc(s.told, func(t telling) bool { return rank(t) >= 0 })
	if first < 0 {
		return
	}
	keys := map[*event.Event]int{}
	for _, t := range s.told[first:] {
		if keys[t.event] = rank(t); keys[t.event] < 0 {
			keys[t.event] = math.MaxInt // the run's end
		}
	}
	slices.SortStableFunc(s.told[first:], func(a, b telling) int { return cmp.Compare(keys[a.event], keys[b.event]) })
}

// diffBelow compares the children of two runs spot by spot.
func (s *session) diffBelow(ctx context.Context, d *diff, l, r *side) error {
	there := map[spot]below{}
	for _, b := range r.below {
		there[b.spot] = b
	}
	for _, b := range l.below {
		other, both := there[b.spot]
		if !both {
			d.OnlyLeft = append(d.OnlyLeft, b)
			continue
		}
		delete(there, b.spot)
		left, err := s.store.Run(ctx, b.Run)
		right, errRight := s.store.Run(ctx, other.Run)
		switch err := cmp.Or(err, errRight); {
		case errors.Is(err, journal.ErrNotFound): // it was not created, or is a function
			continue
		case err != nil:
			return err
		}
		pair, err := s.diff(ctx, left, right, l.words, r.words)
		if err != nil {
			return err
		}
		if pair.spot = b.spot; pair.PartAt == nil {
			pair.Cycles = []cyclePair{}
		}
		d.Below = append(d.Below, pair)
	}
	d.OnlyRight = slices.DeleteFunc(r.below, func(b below) bool { _, left := there[b.spot]; return !left })
	return nil
}

// alike counts the children that are equal on both sides, and reports whether all
// are.
func (d *diff) alike() (same int, all bool) {
	all = len(d.OnlyLeft)+len(d.OnlyRight) == 0
	for i := range d.Below {
		n, allOf := d.Below[i].alike()
		if same += n; d.Below[i].PartAt == nil {
			same++
		}
		all = all && allOf && d.Below[i].PartAt == nil
	}
	return same, all
}

// printBelow prints the differences of the children of two runs, with the path of
// steps.
func (d *diff) printBelow(b *strings.Builder, way string) {
	for _, pair := range d.Below {
		at := way + pair.spot.String()
		if pair.PartAt != nil {
			fmt.Fprintf(b, "\n%s: ", at)
			pair.printOwn(b)
		}
		pair.printBelow(b, at+", ")
	}
	for _, only := range []struct {
		in  string
		all []below
	}{{d.Left, d.OnlyLeft}, {d.Right, d.OnlyRight}} {
		for _, x := range only.all {
			fmt.Fprintf(b, "\n%s%s: only in %s, run %s %s\n", way, x.spot, only.in, x.Run, firstLine(x.Name, 60))
		}
	}
}
