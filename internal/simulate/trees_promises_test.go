package simulate_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/flow"
	processes "github.com/pawlrun/pawl/internal/machine/process"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// drawn is one reservation, as the journal of a run has it.
type drawn struct {
	reserved event.BudgetReserved
	at       int64
	used     *event.BudgetCommitted
}

// draws are reservations by their ids. One that was given back may be set aside
// again under its id.
type draws map[string][]drawn

// trunk is what the journal of one run says.
type trunk struct {
	row      journal.Run
	outcome  event.Outcome
	own      draws
	children map[string]draws
	started  map[string]int64
	finished map[string]event.Outcome
	// funcs are the children that are functions, which have no journal.
	funcs map[string]bool
	first event.RunStarted
	*story
	parked bool
	// used is what its own calls took and the runs that it started.
	used llm.Usage
	// most is the highest cap in money that the run had.
	most float64
}

// check holds every journal that is left against the promises about trees.
func (g *grove) check() {
	trees := map[string]*trunk{}
	rows := g.rows()
	for _, row := range rows {
		trees[row.ID] = g.fold(row)
	}
	if g.t.Failed() || len(g.violations) > 0 {
		return
	}
	root := trees[rows[0].ID]
	for _, row := range rows {
		run := trees[row.ID]
		g.startedWell(trees, run)
		if above := trees[row.Parent]; run != root && (above == nil || above.started[row.ID] == 0) {
			g.violate("run %s has the parent %q, which does not know of it", row.ID, row.Parent)
		}
		g.placed(trees, run)
		g.read(trees, run)
	}
	if g.t.Failed() || len(g.violations) > 0 {
		return
	}
	usd := g.spent(trees, root, math.Inf(1))
	g.bill.settled(g.world, root.outcome.Usage, usd, root.most)
}

// startedWell holds what a run says of those that it started against what these
// say themselves.
func (g *grove) startedWell(trees map[string]*trunk, run *trunk) {
	for id, at := range run.started {
		child := trees[id]
		end, ok := run.finished[id]
		switch {
		case !ok:
			g.violate("child %s has no child.finished", id)
		case run.funcs[id] && child != nil:
			g.violate("the function %s has a journal", id)
		case run.funcs[id]:
		case child == nil && end.Status != event.StatusCancelled && end.Reason != event.ReasonToolUnavailable:
			g.violate("child %s was never made and ended as %+v", id, end)
		case child == nil:
		case child.outcome.Reason != end.Reason || child.outcome.Usage != end.Usage:
			g.violate("child %s ended as %+v, and its parent says %+v", id, child.outcome, end)
		case at == 0:
			g.violate("child %s was started before it was meant to be", id)
		}
		if child != nil {
			g.balanced(run, child)
		}
	}
}

// placed holds a run's row and first event against where it stands in the tree.
func (g *grove) placed(trees map[string]*trunk, run *trunk) {
	depth, at := 1, run
	for at.row.Parent != "" && trees[at.row.Parent] != nil {
		depth, at = depth+1, trees[at.row.Parent]
	}
	if run.row.Root != at.row.ID || run.row.Depth != depth || run.first.Root != at.row.ID || run.first.Depth != depth {
		g.violate("run %s is %d below %s, and its row says %+v", run.row.ID, depth, at.row.ID, run.row)
	}
	if depth == 4 {
		g.seen("a tree four deep")
		if run.parked {
			g.seen("a leaf parked four deep")
		}
	}
}

// spent is what a run and all below it paid for. It is what the run says, and
// where no provider lies no more than the smallest cap on the way to the root.
func (g *grove) spent(trees map[string]*trunk, run *trunk, cap float64) float64 {
	cap = min(cap, run.most)
	var usd float64
	for _, of := range run.own {
		for _, d := range of {
			usd += d.used.USD
		}
	}
	for id := range run.started {
		if child := trees[id]; child != nil {
			usd += g.spent(trees, child, cap)
		}
	}
	if c := run.outcome.Cost; c != nil && math.Abs(c.USD-usd) > 1e-9 {
		g.violate("run %s and those below it cost %v, and it says %v", run.row.ID, usd, c.USD)
	}
	if g.honest && usd > cap+1e-9 {
		g.violate("run %s and those below it cost %v under a cap of %v", run.row.ID, usd, cap)
	}
	return usd
}

// balanced holds a child's account against what its parent's journal says of it.
func (g *grove) balanced(root, child *trunk) {
	above := draws{}
	for id, of := range root.children[child.row.ID] {
		above[id] = slices.Clone(of)
	}
	for id, of := range child.drawn() {
		for _, d := range of {
			i := slices.IndexFunc(above[id], func(a drawn) bool { return a.covers(d) })
			if i < 0 {
				g.violate("%s of %s is %+v at %d, used %+v, and above are %+v", id, child.row.ID, d.reserved, d.at, d.used, above[id])
				continue
			}
			above[id] = slices.Delete(above[id], i, i+1)
		}
	}
	for id, left := range above {
		for _, a := range left {
			if a.used == nil || a.used.USD != 0 || a.used.Usage != nil {
				g.violate("%s of %s was never used, and above it was %+v", id, child.row.ID, a.used)
			}
		}
	}
}

// covers reports whether a reservation is one of the run above for a
// reservation of a child: it came first, and says the same of both its sides.
func (a drawn) covers(d drawn) bool {
	return a.at < d.at && a.used != nil && d.used != nil &&
		a.reserved.USD == d.reserved.USD && a.reserved.Input == d.reserved.Input && a.reserved.Output == d.reserved.Output &&
		a.used.USD == d.used.USD && a.used.Input == d.used.Input && a.used.Output == d.used.Output &&
		(a.used.Usage == nil) == (d.used.Usage == nil)
}

// drawn are the run's own reservations and those of all below it, as the run above
// knows them.
func (k *trunk) drawn() draws {
	all := maps.Clone(k.own)
	for child, of := range k.children {
		for id, d := range of {
			all[child+"/"+id] = d
		}
	}
	return all
}

// fold folds one journal and holds it against the promises about single runs.
func (g *grove) fold(row journal.Run) *trunk {
	k := &trunk{row: row, own: draws{}, children: map[string]draws{}, started: map[string]int64{}, finished: map[string]event.Outcome{}, funcs: map[string]bool{}}
	if row.State != journal.Ended {
		g.violate("run %s is %s", row.ID, row.State)
	}
	var m machine.Funder
	head, ends, calls := "", 0, 0
	account := sums{g: g, run: row.ID, held: map[string]budget.Amount{}}
	settled := map[string]bool{}
	i := 0
	for read, err := range drive.Events(g.t.Context(), g.store, row.ID, 0) {
		if err != nil {
			g.t.Fatal(err)
		}
		i++
		r, e := read.Record, read.Event
		if e.Seq != int64(i) || e.Prev != head || e.Parent != row.Parent {
			g.violate("event %d of %s does not chain", i, row.ID)
			return k
		}
		head = event.Hash(r.Body)
		if d, first := e.Data.(event.RunStarted); first {
			m = machineOf(d)
		}
		if err := m.Apply(e); err != nil {
			g.violate("the journal of %s does not fold: %v", row.ID, err)
			return k
		}
		account.event(e.Data, limitsOf(m))
		k.most = max(k.most, caps(limitsOf(m)).USD)
		k.story.event(e.Data)
		switch d := e.Data.(type) {
		case event.RunStarted:
			k.first, k.story = d, g.newStory(row, d)
		case event.RunParked:
			k.parked = true
		case event.BudgetRefused:
			if d.Run != "" && d.Run != row.Parent {
				g.seen("refused by a share two above")
			}
		case event.ModelRequested:
			calls++
			if d.Purpose == event.PurposeSummary && row.Parent != "" {
				g.seen("summary in a child")
			}
		case event.ModelResponse:
			calls--
			k.used = k.used.Add(d.Usage)
		case event.ModelAttemptFailed:
			calls--
			k.used = k.used.Add(d.Usage)
		case event.ToolResult:
			if settled[d.CallID] {
				g.violate("%s has two results", d.CallID)
			}
			settled[d.CallID] = true
		case event.ChildStarted:
			if k.started[d.Child] != 0 {
				g.violate("child %s is started twice", d.Child)
			}
			k.started[d.Child], k.funcs[d.Child] = r.Pos, d.Kind == flow.KindFunc
		case event.ChildParked:
			g.seen("child parked")
		case event.ChildFinished:
			if _, twice := k.finished[d.Child]; twice {
				g.violate("child %s is finished twice", d.Child)
			}
			k.finished[d.Child] = d.Outcome
			k.used = k.used.Add(d.Outcome.Usage)
			switch {
			case d.Outcome.OK:
				g.seen("child ok")
			case d.Outcome.Status == event.StatusCancelled:
				g.seen("child cancelled")
			case strings.Contains(d.Outcome.NextSafeAction, "raise usd_per_run there"):
				g.seen("child stopped by its parent's limit")
			}
		case event.BudgetReserved:
			k.in(d.Run)[d.ID] = append(k.in(d.Run)[d.ID], drawn{reserved: d, at: r.Pos})
		case event.BudgetCommitted:
			if d.Run != "" && d.Usage == nil {
				g.seen("given back")
			}
			if all := k.in(d.Run)[d.ID]; len(all) > 0 {
				all[len(all)-1].used = &d
			}
		case event.RunCompleted:
			ends++
			k.outcome = d.Outcome
			if d.Outcome.Reason == event.ReasonInternal {
				g.violate("run %s ended by a defect: %+v", row.ID, d.Outcome.Error)
			}
		}
		if calls < 0 || calls > 1 {
			g.violate("%d model calls of %s are open at event %d", calls, row.ID, e.Seq)
		}
	}
	if ends != 1 {
		g.violate("run %s has %d terminal events", row.ID, ends)
	}
	k.story.end()
	if k.used != k.outcome.Usage {
		g.violate("run %s and those below it used %+v, and it says %+v", row.ID, k.used, k.outcome.Usage)
	}
	if len(account.held) > 0 {
		g.violate("run %s ended with %v set aside", row.ID, account.held)
	}
	return k
}

// limitsOf are the limits that a run has.
func limitsOf(m machine.Machine) budget.Limits {
	switch m := m.(type) {
	case *flow.Machine:
		return m.Limits
	case *processes.Machine:
		return m.Limits
	}
	return m.(*agent.Machine).Config().Limits
}

// in are the reservations of a child, or the run's own.
func (k *trunk) in(child string) draws {
	if child == "" {
		return k.own
	}
	if k.children[child] == nil {
		k.children[child] = draws{}
	}
	return k.children[child]
}

// sums follows what a run and those that it started have spent and set aside:
// nothing is set aside beyond what is left, nothing after an overrun, and what
// goes beyond was used beyond a reservation.
type sums struct {
	g       *grove
	run     string
	spent   budget.Amount
	held    map[string]budget.Amount
	overrun string
}

func (s *sums) event(data event.Data, limits budget.Limits) {
	switch d := data.(type) {
	case event.BudgetReserved:
		if s.overrun != "" {
			s.g.violate("%s of %q is set aside in %s after an overrun of %s", d.ID, d.Run, s.run, s.overrun)
		}
		s.held[d.Run+" "+d.ID] = budget.Amount{USD: d.USD, Input: d.Input, Output: d.Output}
		total := s.spent
		for _, a := range s.held {
			total = total.Add(a)
		}
		if total.Exceeds(caps(limits)) {
			s.g.violate("%s of %q may bring %s to %+v under %+v", d.ID, d.Run, s.run, total, caps(limits))
		}
		if len(s.held) > 1 {
			s.g.seen("two calls at once in a tree")
		}
	case event.BudgetCommitted:
		key := d.Run + " " + d.ID
		reserved, ok := s.held[key]
		if !ok {
			s.g.violate("%s of %q is settled in %s and was not set aside", d.ID, d.Run, s.run)
		}
		delete(s.held, key)
		used := budget.Amount{USD: d.USD, Input: d.Input, Output: d.Output}
		s.spent = s.spent.Add(used)
		if used.Exceeds(reserved) {
			if s.g.honest || d.Estimated && misjudged(used, reserved) {
				s.g.violate("%s of %q used %+v of %+v", d.ID, d.Run, used, reserved)
			}
			if d.Run != "" && s.spent.Exceeds(caps(limits)) {
				s.g.seen("overrun by a child")
			}
		}
	case event.BudgetOverrun:
		s.overrun = d.Setting
	case event.BudgetRaised:
		s.overrun = ""
	}
}

func (g *grove) listing() string {
	var b strings.Builder
	for _, row := range g.rows() {
		fmt.Fprintf(&b, "%s (parent %q)\n", row.ID, row.Parent)
		records, err := g.store.Records(g.t.Context(), row.ID, 0, 0)
		if err != nil {
			return err.Error()
		}
		for _, r := range records {
			e, err := event.Decode(r.Body)
			if err != nil {
				return err.Error()
			}
			body, _ := json.Marshal(e.Data)
			fmt.Fprintf(&b, "%5d %4d %s %s %.200s\n", r.Pos, e.Seq, e.Time.Format("15:04:05.000"), e.Type(), body)
		}
	}
	return b.String()
}
