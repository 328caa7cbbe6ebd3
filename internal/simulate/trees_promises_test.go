package simulate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine/agent"
)

// drawn is one reservation, as the journal of a run has it.
type drawn struct {
	reserved event.BudgetReserved
	at       int64
	used     *event.BudgetCommitted
}

// trunk is what the journal of one run says.
type trunk struct {
	row      journal.Run
	outcome  event.Outcome
	own      map[string]drawn
	children map[string]map[string]drawn
	started  map[string]int64
	finished map[string]event.Outcome
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
	for id, at := range root.started {
		child := trees[id]
		end, ok := root.finished[id]
		switch {
		case !ok:
			g.violate("child %s has no child.finished", id)
		case child == nil && end.Status != event.StatusCancelled && end.Reason != event.ReasonToolUnavailable:
			g.violate("child %s was never made and ended as %+v", id, end)
		case child == nil:
		case child.outcome.Reason != end.Reason || child.outcome.Usage != end.Usage:
			g.violate("child %s ended as %+v, and its parent says %+v", id, child.outcome, end)
		case at == 0:
			g.violate("child %s was started before it was meant to be", id)
		}
		if child != nil {
			g.balanced(root, child)
		}
	}
	for _, row := range rows[1:] {
		if root.started[row.ID] == 0 || row.Parent != root.row.ID {
			g.violate("run %s has the parent %q, which does not know of it", row.ID, row.Parent)
		}
	}
	var usd float64
	for _, d := range root.own {
		usd += d.used.USD
	}
	for _, child := range trees {
		if child != root && child.outcome.Cost != nil {
			usd += child.outcome.Cost.USD
		}
	}
	if c := root.outcome.Cost; c != nil && math.Abs(c.USD-usd) > 1e-9 {
		g.violate("the tree cost %v, and its root says %v", usd, c.USD)
	}
	g.bill.settled(g.world, root.outcome.Usage, usd, root.most)
}

// balanced holds a child's account against what its parent's journal says of it.
func (g *grove) balanced(root, child *trunk) {
	above := root.children[child.row.ID]
	for id, d := range child.own {
		a, ok := above[id]
		switch {
		case !ok:
			g.violate("%s of %s was never set aside above", id, child.row.ID)
		case a.at >= d.at || a.reserved.USD != d.reserved.USD || a.reserved.Input != d.reserved.Input || a.reserved.Output != d.reserved.Output:
			g.violate("%s of %s is %+v at %d, and above %+v at %d", id, child.row.ID, d.reserved, d.at, a.reserved, a.at)
		case a.used == nil || a.used.USD != d.used.USD || a.used.Input != d.used.Input || a.used.Output != d.used.Output:
			g.violate("%s of %s used %+v, and above %+v", id, child.row.ID, d.used, a.used)
		}
	}
	for id, a := range above {
		if _, ok := child.own[id]; !ok {
			if a.used == nil || a.used.USD != 0 || a.used.Usage != nil {
				g.violate("%s of %s was never used, and above it was %+v", id, child.row.ID, a.used)
			}
		}
	}
}

// fold folds one journal and holds it against the promises about single runs.
func (g *grove) fold(row journal.Run) *trunk {
	k := &trunk{row: row, own: map[string]drawn{}, children: map[string]map[string]drawn{}, started: map[string]int64{}, finished: map[string]event.Outcome{}}
	records, err := g.store.Records(g.t.Context(), row.ID, 0, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	if row.State != journal.Ended {
		g.violate("run %s is %s", row.ID, row.State)
	}
	m, head, ends, calls := agent.New(), "", 0, 0
	account := sums{g: g, run: row.ID, held: map[string]budget.Amount{}}
	settled := map[string]bool{}
	for i, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil || e.Seq != int64(i+1) || e.Prev != head || e.Parent != row.Parent {
			g.violate("event %d of %s does not chain (%v)", i+1, row.ID, err)
			return k
		}
		head = event.Hash(r.Body)
		if err := m.Apply(e); err != nil {
			g.violate("the journal of %s does not fold: %v", row.ID, err)
			return k
		}
		account.event(e.Data, m.Config().Limits)
		k.most = max(k.most, caps(m.Config().Limits).USD)
		switch d := e.Data.(type) {
		case event.ModelRequested:
			calls++
			if d.Purpose == event.PurposeSummary && row.Parent != "" {
				g.seen("summary in a child")
			}
		case event.ModelResponse, event.ModelAttemptFailed:
			calls--
		case event.ToolResult:
			if settled[d.CallID] {
				g.violate("%s has two results", d.CallID)
			}
			settled[d.CallID] = true
		case event.ChildStarted:
			if k.started[d.Child] != 0 {
				g.violate("child %s is started twice", d.Child)
			}
			k.started[d.Child] = r.Pos
		case event.ChildParked:
			g.seen("child parked")
		case event.ChildFinished:
			if _, twice := k.finished[d.Child]; twice {
				g.violate("child %s is finished twice", d.Child)
			}
			k.finished[d.Child] = d.Outcome
			switch {
			case d.Outcome.OK:
				g.seen("child ok")
			case d.Outcome.Status == event.StatusCancelled:
				g.seen("child cancelled")
			case strings.Contains(d.Outcome.NextSafeAction, "raise usd_per_run there"):
				g.seen("child stopped by its parent's limit")
			}
		case event.BudgetReserved:
			k.in(d.Run)[d.ID] = drawn{reserved: d, at: r.Pos}
		case event.BudgetCommitted:
			if d.Run != "" && d.Usage == nil {
				g.seen("given back")
			}
			x := k.in(d.Run)[d.ID]
			x.used = &d
			k.in(d.Run)[d.ID] = x
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
	if len(account.held) > 0 {
		g.violate("run %s ended with %v set aside", row.ID, account.held)
	}
	return k
}

// in are the reservations of a child, or the run's own.
func (k *trunk) in(child string) map[string]drawn {
	if child == "" {
		return k.own
	}
	if k.children[child] == nil {
		k.children[child] = map[string]drawn{}
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
