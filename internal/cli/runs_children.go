package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// childRef is a child run, as its parent's journal records it.
type childRef struct {
	Run    string `json:"run"`
	Name   string `json:"name,omitempty"`
	CallID string `json:"callId,omitempty"`
	// Step names a run that is a step or a judge, with its iteration and attempt;
	// Finished is how the step ended.
	Step     string              `json:"step,omitempty"`
	Finished *event.StepFinished `json:"finished,omitempty"`
	Parked   *event.ChildParked  `json:"parked,omitempty"`
	// Decided reports that a child that parked for a decision has no open question
	// left.
	Decided bool `json:"decided,omitempty"`
	// Unread reports that a child that parked for a decision cannot be read.
	Unread bool `json:"unread,omitempty"`
	// Outcome is nil while the child has not ended.
	Outcome *event.Outcome `json:"outcome,omitempty"`
	// What the child has used of the run's budget so far.
	spent
}

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

// child applies an event about one of the run's children.
func (p *page) child(data event.Data) {
	switch d := data.(type) {
	case event.ChildStarted:
		if p.childAt == nil {
			p.childAt, p.childFor = map[string]int{}, map[string]string{}
		}
		p.childAt[d.Child], p.childFor[d.Step] = len(p.Children), d.Child
		p.Children = append(p.Children, childRef{Run: d.Child, Name: d.Name, CallID: d.CallID, Step: d.ID})
	case event.JudgeVerdict:
		delete(p.childFor, d.Step)
	case event.Checkpoint:
		delete(p.childFor, d.Step)
	case event.StepFinished:
		p.childOf(p.childFor[d.Step], func(c *childRef) { c.Finished = &d })
	case event.StepSkipped:
		p.skipped = append(p.skipped, d)
	case event.RunForked:
		p.skipped = nil
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
		p.childOf(d.Run, func(c *childRef) { c.Spend(*d.Usage, cost) })
	}
}

func (p *page) childOf(run string, change func(*childRef)) {
	if i, known := p.childAt[run]; known {
		change(&p.Children[i])
	}
}

// asks adds the open questions of the run and its descendants.
func (s *session) asks(ctx context.Context, p *page) error {
	pending, err := s.controller.Pending(ctx, p.ID)
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
	for i, c := range p.Children {
		p.Children[i].Decided = c.Parked != nil && c.Parked.Reason == event.ParkApproval && !open[c.Run]
	}
}

// line returns the child in one line: the run, its status, its cost.
func (c childRef) line() string {
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
