package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Spent is the usage of models and its cost; Cost is nil if no model was called.
type Spent struct {
	Cost *llm.Cost `json:"cost,omitempty"`
	Used llm.Usage `json:"-"`
}

// Spend adds the usage and the cost of a call. It does not change copies of s.
func (s *Spent) Spend(u llm.Usage, c llm.Cost) {
	sum := llm.Cost{Priced: true}
	if s.Cost != nil {
		sum = *s.Cost
	}
	s.Used = s.Used.Add(u)
	s.Cost = &llm.Cost{USD: sum.USD + c.USD, Priced: sum.Priced && c.Priced}
}

func (n *Entry) spend(u llm.Usage, c llm.Cost) {
	s := Spent{Used: n.Usage, Cost: n.Cost}
	s.Spend(u, c)
	n.Usage, n.Cost = s.Used, s.Cost
}

// whole is the state of the run as a whole.
type whole struct {
	run       Entry
	inherited *Inherited
	children  []*ChildRun
	// parked holds the children that wait, in the order in which they began to wait.
	parked []*ChildRun
	// ofStep holds the children that perform the current steps.
	ofStep map[string]*ChildRun
	// skipped are the steps that did not run.
	skipped []event.StepSkipped
	// atLimit is the limit at which the run has parked.
	atLimit *Limit
}

// Inherited is what a fork's source runs had spent before the fork; it does not count
// against the fork.
type Inherited struct {
	Usage llm.Usage `json:"usage"`
	Cost  *llm.Cost `json:"cost,omitempty"`
	// Changed names the settings and results that the fork changed.
	Changed []string `json:"changed,omitempty"`
}

// Limit is a limit at which a run has parked, with the run that has the limit and a
// value that lets the run continue.
type Limit struct {
	Run     string  `json:"run"`
	Setting string  `json:"setting"`
	AtLeast float64 `json:"atLeast,omitempty"`
}

// ChildRun is a child run, as the run's own events describe it.
type ChildRun struct {
	Run    string `json:"run"`
	Name   string `json:"name,omitempty"`
	CallID string `json:"callId,omitempty"`
	// Step names the step or judge that the run performs, with its iteration and
	// attempt; Finished is how the step ended.
	Step string `json:"step,omitempty"`
	// Of is the step without iteration and attempt.
	Of       string              `json:"-"`
	Finished *event.StepFinished `json:"finished,omitempty"`
	Parked   *event.ChildParked  `json:"parked,omitempty"`
	// Decided reports that a child that parked for a decision has no open question
	// left, Unread that the child cannot be read. Both come from other runs, not from
	// the events of this one.
	Decided bool `json:"decided,omitempty"`
	Unread  bool `json:"unread,omitempty"`
	// Outcome is nil until the child has ended.
	Outcome *event.Outcome `json:"outcome,omitempty"`
	// Spent is the usage of the child and its descendants so far.
	Spent
	entry *Entry
	// line is the line of its step, and pass the iteration that it performs; nil for
	// none.
	line *StepLine
	pass *IterationLine
}

// Run returns the entry of the run itself: its state, the usage of the run and all
// descendants, and the first line of its outcome.
func (v *View) Run() *Entry { return &v.run }

// Inherited returns what a fork inherited, nil for a run that is not a fork.
func (v *View) Inherited() *Inherited { return v.inherited }

// Children returns the child runs in the order of their start. Without [View.Texts]
// they have no model texts.
func (v *View) Children() []*ChildRun { return v.children }

// Child returns a child by its run, nil for none.
func (v *View) Child(run string) *ChildRun { return v.runs[run] }

// WaitingRuns returns the children that wait, in the order in which they began to wait.
func (v *View) WaitingRuns() []*ChildRun { return v.parked }

// Skipped returns the steps that did not run.
func (v *View) Skipped() []event.StepSkipped { return v.skipped }

// AtLimit returns the limit at which the run has parked, nil for none.
func (v *View) AtLimit() *Limit { return v.atLimit }

// itself updates the entry of the run.
func (v *View) itself(e *event.Event) {
	n := &v.run
	n.Seq = max(n.Seq, e.Seq)
	v.stepEnded(e.Data)
	switch d := e.Data.(type) {
	case event.RunStarted:
		*n = Entry{Kind: Run, Name: d.Name, State: Running, Run: e.Run, Start: e.Time, Seq: e.Seq}
	case event.RunForked:
		v.inherit(d)
		n.Run, n.State = e.Run, Running
	case event.RunParked:
		n.State = Waiting
		switch {
		case d.ParentLimit != "":
			v.atLimit = &Limit{cmp.Or(d.LimitRun, e.Parent, e.Run), d.ParentLimit, d.AtLeast}
		case d.Limit != "":
			v.atLimit = &Limit{e.Run, d.Limit, d.AtLeast}
		}
	case event.RunResumed:
		n.State, v.atLimit = Running, nil
	case event.BudgetRaised:
		v.atLimit = nil
	case event.RunCompleted:
		v.atLimit = nil
		n.State, n.Seconds = stateOf(d.Outcome), e.Time.Sub(n.Start).Seconds()
		n.Line = outcomeLine(d.Outcome, "")
	}
}

// inherit assigns what was spent so far to the runs that spent it.
func (v *View) inherit(d event.RunForked) {
	in := cmp.Or(v.inherited, &Inherited{})
	in.Usage = in.Usage.Add(v.run.Usage)
	switch c := v.run.Cost; {
	case in.Cost == nil:
		in.Cost = c
	case c != nil:
		in.Cost = &llm.Cost{USD: in.Cost.USD + c.USD, Priced: in.Cost.Priced && c.Priced}
	}
	in.Changed = slices.Clone(d.Changed)
	for _, r := range d.Results {
		in.Changed = append(in.Changed, "result of "+r.CallID)
	}
	v.inherited, v.run.Usage, v.run.Cost = in, llm.Usage{}, nil
}

func stateOf(o event.Outcome) State {
	switch {
	case o.OK:
		return Done
	case o.Status == event.StatusCancelled:
		return Cancelled
	}
	return Failed
}

// outcomeLine returns the first line of an outcome, or otherwise if it has no text.
func outcomeLine(o event.Outcome, otherwise string) string {
	return firstLine(cmp.Or(errorOf(o.Error), o.FinalOutput, otherwise, string(o.Reason)), lineWidth)
}

// child handles the start of a child run; the entry of its step or pass represents it.
func (v *View) child(e *event.Event, d event.ChildStarted) *Entry {
	var n *Entry
	if d.BeginsStep() {
		n = v.step(e, d.Step)
	} else {
		above, name := v.calls[cmp.Or(d.CallID, d.During)], cmp.Or(d.Name, d.Kind)
		if d.CallID == "" && d.Step != "" {
			above = v.at(d.Step)
			if strings.Contains(d.ID, "/") && above != nil {
				name, _, _ = strings.Cut("judge of "+above.Name, "/")
			}
		}
		n = v.begin(e, Child, above, firstLine(name, 100))
	}
	c := v.childOf(d.Child, n)
	c.Name, c.CallID, c.Step, c.Of = d.Name, cmp.Or(d.CallID, d.During), d.ID, d.Step
	v.children, v.ofStep[d.Step] = append(v.children, c), c
	if c.line = v.Steps.Of(d.Step); v.Steps.Ledger != nil {
		c.pass = v.Steps.Ledger.begins(d)
	}
	return n
}

// childOf returns a child by its run, with its entry.
func (v *View) childOf(run string, n *Entry) *ChildRun {
	c := v.runs[run]
	if c == nil {
		c = &ChildRun{Run: run}
		v.runs[run] = c
	}
	if c.entry = n; n != nil {
		n.Run = run
	}
	return c
}

// waits handles a child that begins to wait or, with wait false, stops waiting.
func (v *View) waits(e *event.Event, run string, wait bool, parked *event.ChildParked) *Entry {
	c := v.runs[run]
	if c == nil {
		return nil
	}
	before := len(v.parked)
	v.parked = slices.DeleteFunc(v.parked, func(x *ChildRun) bool { return x == c })
	if wait {
		v.parked = append(v.parked, c)
	}
	if c.line != nil {
		c.line.parked += len(v.parked) - before
	}
	if parked != nil || !wait {
		c.Parked = parked
	}
	n := c.entry
	if n == nil {
		return nil
	}
	switch {
	case wait && n.State == Running:
		n.State = Waiting
	case !wait && n.State == Waiting:
		n.State = Running
	}
	v.touch(n, e)
	return n
}

// childEnded handles the end of a child.
func (v *View) childEnded(e *event.Event, d event.ChildFinished) *Entry {
	n := v.waits(e, d.Child, false, nil)
	c := v.runs[d.Child]
	if c == nil {
		return nil
	}
	if c.Outcome = &d.Outcome; n != nil {
		n.Line = outcomeLine(d.Outcome, n.Line)
		v.end(n, e, stateOf(d.Outcome))
	}
	if c.pass != nil {
		c.pass.Exit, c.pass.Failed = d.Outcome.Reason, !d.Outcome.OK
	}
	if !v.Texts {
		c.withoutTexts()
	}
	return n
}

// withoutTexts removes the texts of the child and of its step.
func (c *ChildRun) withoutTexts() {
	if c.Outcome != nil {
		c.Outcome.FinalOutput = ""
	}
	if c.Finished != nil {
		c.Finished.Content, c.Finished.Result = "", nil
	}
}

// paid handles the usage of a child.
func (v *View) paid(e *event.Event, d event.BudgetCommitted) {
	if d.Run == "" || d.Usage == nil {
		return
	}
	cost, n := llm.Cost{USD: d.USD, Priced: d.Priced}, (*Entry)(nil)
	if c := v.runs[d.Run]; c != nil {
		c.Spend(*d.Usage, cost)
		if n = c.entry; c.line != nil {
			c.line.Spend(*d.Usage, cost)
		}
		if c.pass != nil {
			c.pass.Spend(*d.Usage, cost)
		}
	}
	v.spend(n, e, *d.Usage, cost)
}

// stepEnded records how a step ended in the run that performed it. It ignores the end
// of a judge or a reviewer.
func (v *View) stepEnded(data event.Data) {
	switch d := data.(type) {
	case event.StepFinished:
		if c := v.ofStep[d.Step]; c != nil {
			if c.Finished = &d; !v.Texts {
				c.withoutTexts()
			}
		}
	case event.JudgeVerdict:
		delete(v.ofStep, d.Step)
	case event.Checkpoint:
		delete(v.ofStep, d.Step)
	case event.StepSkipped:
		v.skipped = append(v.skipped, d)
	case event.RunForked:
		v.skipped = nil
	}
}
