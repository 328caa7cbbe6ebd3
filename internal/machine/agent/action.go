package agent

import (
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// step is what a run may have to do next: an action, or nil where it has not. A step
// changes nothing; what follows from its action comes back as an event.
type step func() machine.Action

// first is the action of the first step that has one, nil where none has.
func first(steps ...step) machine.Action {
	for _, s := range steps {
		if a := s(); a != nil {
			return a
		}
	}
	return nil
}

func record(d event.Data) machine.Action { return machine.Record{Data: d} }

func fail(reason event.Reason, class, message string) machine.Action {
	return record(event.RunTerminatedBy{Reason: reason, Error: &event.Failure{Class: class, Message: message}})
}

func internal(err error) machine.Action { return fail(event.ReasonInternal, "internal", err.Error()) }

// several are the actions of one step, which are due at once.
type several struct {
	machine.Action
	all []machine.Action
}

// together makes one of those actions that are not nil.
func together(actions ...machine.Action) (one machine.Action) {
	n := 0
	for _, a := range actions {
		if a != nil {
			one, n = a, n+1
		}
	}
	if n > 1 {
		return several{all: slices.Clone(actions)}
	}
	return one
}

// actions are those that are due.
type actions []machine.Action

// add takes in an action, or several, or none.
func (due *actions) add(a machine.Action) {
	switch a := a.(type) {
	case nil:
	case several:
		for _, one := range a.all {
			due.add(one)
		}
	default:
		*due = append(*due, a)
	}
}

// hooks counts the hooks that are asked for.
func (due actions) hooks() (n int) {
	for _, a := range due {
		if _, ok := a.(machine.RunHook); ok {
			n++
		}
	}
	return n
}
