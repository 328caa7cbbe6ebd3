package tree

import (
	"cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// children contains the runs that a run started. The cost of an event does not depend
// on their number.
type children struct {
	// open contains the children without an outcome, by run id. order lists them in the
	// order of their starts and may also contain ended ones.
	open  map[string]*child
	order []*child
	// byID contains all children by the ids that their run gave them.
	byID map[string]*child
	// due lists the children that need an action and may also contain ended ones. A
	// child that has started needs none until an event makes it due.
	due             []*child
	parked, waiting int
}

type child struct {
	Child
	// due reports whether the list due contains the child. stop is the reason why it
	// must end, empty if it may continue.
	due  bool
	stop string
}

func (c *children) add(d event.ChildStarted) {
	if c.open == nil {
		c.open, c.byID = map[string]*child{}, map[string]*child{}
	}
	x := &child{Child: Child{ChildStarted: d}}
	c.open[d.Child], c.byID[d.Action()] = x, x
	c.order = append(compacted(c.order, len(c.open)), x)
}

// compacted removes ended children from a list when they are the majority.
func compacted(list []*child, open int) []*child {
	if len(list) < 64 || len(list) < 2*open {
		return list
	}
	kept := make([]*child, 0, 2*open)
	for _, c := range list {
		if c.Outcome == nil {
			kept = append(kept, c)
		}
	}
	return kept
}

// change folds an event about a child.
func (c *children) change(x *child, d event.Data) {
	c.count(x, -1)
	x.Apply(d)
	c.count(x, 1)
}

// count adds an open child, times times, to the numbers of parked and waiting children.
func (c *children) count(x *child, times int) {
	switch {
	case x.Outcome != nil:
	case x.Parked != nil:
		c.parked += times
	case x.Waiting:
		c.waiting += times
	}
}

// wants adds a child to the due ones.
func (c *children) wants(x *child) {
	if !x.due {
		x.due = true
		c.due = append(c.due, x)
	}
}

// resume makes all open children due, because no process drives them yet.
func (c *children) resume() {
	for _, x := range c.order {
		if x.Outcome == nil {
			c.change(x, event.RunResumed{})
			c.wants(x)
		}
	}
}

// forget removes the children that have not ended.
func (c *children) forget() {
	for _, x := range c.open {
		delete(c.byID, x.Action())
	}
	if c.open != nil {
		*c = children{open: map[string]*child{}, byID: c.byID}
	}
}

// actions returns the due actions for children.
func (c *children) actions() (actions []machine.Action) {
	kept := c.due[:0]
	for _, x := range c.due {
		if x.Outcome != nil {
			continue
		}
		kept = append(kept, x)
		switch {
		case x.stop != "":
			actions = append(actions, x.cancel())
		case x.Parked == nil:
			actions = append(actions, machine.StartChild{ID: x.Action(), Child: x.ChildStarted.Child, Kind: x.Kind, Name: x.Name, Step: x.Step})
		}
	}
	clear(c.due[len(kept):])
	c.due = kept
	return actions
}

func (x *child) cancel() machine.CancelChild {
	return machine.CancelChild{ID: x.Action(), Child: x.ChildStarted.Child, Reason: cmp.Or(x.stop, "the run that started this one was cancelled")}
}

// halted returns the children that wait for a person if all open children do.
func (c *children) halted() (halted []Parked) {
	if c.parked == 0 || c.parked < len(c.open) {
		return nil
	}
	for _, x := range c.order {
		if x.Outcome == nil {
			halted = append(halted, Parked{Name: x.Name, ChildParked: x.Parked})
		}
	}
	return halted
}

// Child is the state of a run that another one started.
type Child struct {
	event.ChildStarted
	// Parked describes what the child waits for, nil while it runs. Waiting reports
	// whether a running child waits for a person.
	Parked  *event.ChildParked
	Waiting bool
	Outcome *event.Outcome
}

// Apply folds an event about the child, or run.resumed, after which the child must be
// driven again.
func (c *Child) Apply(d event.Data) {
	switch d := d.(type) {
	case event.ChildParked:
		c.Parked, c.Waiting = &d, false
	case event.ChildWaiting:
		if !d.Waiting {
			c.Parked = nil
		}
		c.Waiting = d.Waiting
	case event.ChildFinished:
		c.Outcome = &d.Outcome
	case event.RunResumed:
		c.Parked, c.Waiting = nil, false
	}
}
