package engine

import (
	"slices"

	"github.com/pawlrun/pawl/event"
)

// openChild is a run that this one started and of which no outcome is known here.
type openChild struct {
	// run is its own, call the call that it answers and step the step that it is,
	// empty for none.
	run, call, step string
}

// openChildren are those of a run. What one event takes does not grow with how many
// there are.
type openChildren struct {
	byRun map[string]openChild
	// order are their runs, oldest first, with some that have ended.
	order []string
}

// note follows them along a run's events.
func (o *openChildren) note(data event.Data) {
	switch x := data.(type) {
	case event.ChildStarted:
		if o.byRun == nil {
			o.byRun = map[string]openChild{}
		}
		if len(o.order) > 2*len(o.byRun)+64 {
			o.order = slices.DeleteFunc(o.order, func(run string) bool { _, open := o.byRun[run]; return !open })
		}
		o.byRun[x.Child] = openChild{run: x.Child, call: x.CallID, step: x.Step}
		o.order = append(o.order, x.Child)
	case event.ChildFinished:
		delete(o.byRun, x.Child)
	}
}

// all are they, oldest first.
func (o *openChildren) all() (open []openChild) {
	for _, run := range o.order {
		if c, is := o.byRun[run]; is {
			open = append(open, c)
		}
	}
	return open
}

// of is the child of a run's id, and whether it is open.
func (o *openChildren) of(run string) (openChild, bool) {
	c, open := o.byRun[run]
	return c, open
}
