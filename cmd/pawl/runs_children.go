package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// childRef is a run that a run started, as its journal tells of it.
type childRef struct {
	Run    string             `json:"run"`
	Name   string             `json:"name,omitempty"`
	CallID string             `json:"callId,omitempty"`
	Parked *event.ChildParked `json:"parked,omitempty"`
	// Decided says that nothing is left to decide about in a child that parked
	// for a decision.
	Decided bool `json:"decided,omitempty"`
	// Unread says that a child that parked for a decision cannot be read.
	Unread bool `json:"unread,omitempty"`
	// Outcome is nil while the child has not ended.
	Outcome *event.Outcome `json:"outcome,omitempty"`
	// Cost is what the child has used of the run's budget so far.
	Cost *llm.Cost `json:"cost,omitempty"`
}

// startedBy marks a run that another one started, behind its name.
func startedBy(r journal.Run) string {
	if r.Parent == "" {
		return ""
	}
	return "  (started by " + r.Parent + ")"
}

// toResume is the run to resume so that a run goes on: a child goes on with the
// run that started it.
func toResume(r journal.Run) string { return cmp.Or(r.Parent, r.ID) }

// child takes in an event about one of the run's children.
func (p *page) child(data event.Data) {
	switch d := data.(type) {
	case event.ChildStarted:
		p.Children = append(p.Children, childRef{Run: d.Child, Name: d.Name, CallID: d.CallID})
	case event.ChildParked:
		p.childOf(d.Child, func(c *childRef) { c.Parked = &d })
	case event.ChildWaiting:
		if !d.Waiting {
			p.childOf(d.Child, func(c *childRef) { c.Parked = nil })
		}
	case event.ChildFinished:
		p.childOf(d.Child, func(c *childRef) { c.Parked, c.Outcome = nil, &d.Outcome })
	case event.RunResumed:
		for i := range p.Children {
			p.Children[i].Parked = nil
		}
	case event.BudgetCommitted:
		if d.Run == "" || d.Usage == nil {
			return
		}
		cost := llm.Cost{USD: d.USD, Priced: d.Priced}
		p.spend(*d.Usage, cost)
		p.childOf(d.Run, func(c *childRef) {
			if c.Cost == nil {
				c.Cost = &llm.Cost{Priced: true}
			}
			c.Cost.USD, c.Cost.Priced = c.Cost.USD+cost.USD, c.Cost.Priced && cost.Priced
		})
	}
}

func (p *page) childOf(run string, change func(*childRef)) {
	for i := range p.Children {
		if p.Children[i].Run == run {
			change(&p.Children[i])
		}
	}
}

// asks takes in the calls of the run's children that wait for a decision.
func (s *session) asks(ctx context.Context, p *page) error {
	pending, err := s.desk.Pending(ctx, p.ID)
	if err != nil {
		return err
	}
	p.asks(pending)
	for i, c := range p.Children {
		if !c.Decided {
			continue
		}
		_, err := s.engine.Inspect(ctx, c.Run)
		p.Children[i].Decided, p.Children[i].Unread = err == nil, err != nil
	}
	return nil
}

func (p *page) asks(pending []control.Pending) {
	open := map[string]bool{}
	for _, call := range pending {
		if call.Run != p.ID {
			open[call.Run] = true
			p.Pending = append(p.Pending, pendingOf(call.Run, call.ToolPendingApproval))
		}
	}
	for i, c := range p.Children {
		p.Children[i].Decided = c.Parked != nil && c.Parked.Reason == event.ParkApproval && !open[c.Run]
	}
}

// said is the child in a line: which run it is, how it stands, what it cost.
func (c childRef) said() string {
	stands := "goes on with this run"
	switch {
	case c.Outcome != nil:
		stands = fmt.Sprintf("%s, %s", c.Outcome.Status, reason(*c.Outcome))
	case c.Unread:
		stands = "parked: " + string(c.Parked.Reason) + ", and cannot be read"
	case c.Decided:
		stands = "decided about, " + stands
	case c.Parked != nil:
		stands = "parked: " + string(c.Parked.Reason)
	}
	return firstLine(fmt.Sprintf("%s  %s  %s  %s", c.Run, c.Name, stands, money(c.Cost)), 200)
}
