package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// startedBy returns a mark for a child run, after its name.
func startedBy(r journal.Run) string {
	if r.Parent == "" {
		return ""
	}
	return "  (started by " + r.Parent + ")"
}

// toResume returns the run to resume so that a run continues: a child continues
// with the root of its tree.
func toResume(r journal.Run) string { return cmp.Or(r.Root, r.ID) }

// asks adds the open questions of the run and its descendants.
func (s *session) asks(ctx context.Context, p *page) error {
	pending, err := s.controller.Pending(ctx, p.ID)
	if err != nil {
		return err
	}
	p.asks(pending)
	for _, c := range p.Children {
		if !c.Decided {
			continue
		}
		_, err := s.engine.Inspect(ctx, c.Run)
		c.Decided, c.Unread = err == nil, err != nil
	}
	return nil
}

func (p *page) asks(pending []control.Pending) {
	p.questions, p.Pending = pending, control.Calls(pending)
	open := map[string]bool{}
	for _, q := range pending {
		for _, step := range q.Path {
			open[step.Run] = true
		}
		p.Waiting = append(p.Waiting, q)
	}
	for _, w := range p.unread {
		p.Waiting = append(p.Waiting, w)
	}
	for _, c := range p.Children {
		c.Decided = c.Parked != nil && c.Parked.Reason == event.ParkApproval && !open[c.Run]
	}
}

// childLine returns a child in one line: the run, its status, its cost.
func childLine(c *view.ChildRun) string {
	stands := "resumes with this run"
	switch {
	case c.Outcome != nil:
		stands = fmt.Sprintf("%s, %s", c.Outcome.Status, reason(*c.Outcome))
	case c.Unread:
		stands = "parked: " + string(c.Parked.Reason) + ", and cannot be read"
	case c.Decided:
		stands = "decided, " + stands
	case c.Parked != nil:
		stands = "parked: " + string(c.Parked.Reason)
	}
	return firstLine(fmt.Sprintf("%s  %s  %s  %s", c.Run, c.Name, stands, money(c.Cost, c.Used)), 200)
}
