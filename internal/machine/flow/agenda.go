package flow

import (
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
)

// agenda is what the machine wants done. An errand stays on it until the event
// comes that settles it, so that what one event takes does not grow with the plan.
type agenda struct {
	byKey map[string]*errand
	order []*errand
}

type errand struct {
	// actions are what is wanted now; then takes in what came of it.
	actions func() []machine.Action
	then    func(event.Data)
	gone    bool
	// stops says that others may not be wanted any more once it is settled, so that
	// none is given behind it.
	stops bool
}

func (a *agenda) add(key string, actions func() []machine.Action, then func(event.Data)) *errand {
	if a.byKey == nil {
		a.byKey = map[string]*errand{}
	}
	e := &errand{actions: actions, then: then}
	a.byKey[key] = e
	a.order = append(a.order, e)
	return e
}

// drop takes an errand off, and reports whether it was there.
func (a *agenda) drop(key string) (e *errand, had bool) {
	if e, had = a.byKey[key]; had {
		e.gone = true
		delete(a.byKey, key)
	}
	return e, had
}

// settle takes an errand off with what came of it.
func (a *agenda) settle(key string, d event.Data) error {
	e, had := a.drop(key)
	if !had {
		return fmt.Errorf("%w: nothing requested %s (%s)", tree.ErrMisfit, d.EventType(), key)
	}
	e.then(d)
	return nil
}

// atOnce bounds how many actions are given at once: their inputs are in memory
// together, and what is left is given once those are on their way.
const atOnce = 64

// actions are those of the first errands.
func (a *agenda) actions(due []machine.Action) []machine.Action {
	kept, stops := a.order[:0], false
	for _, e := range a.order {
		if e.gone {
			continue
		}
		kept = append(kept, e)
		if len(due) < atOnce && !stops {
			due, stops = append(due, e.actions()...), e.stops
		}
	}
	clear(a.order[len(kept):])
	a.order = kept
	return due
}

// record asks for a decision to be journalled.
func (m *Machine) record(key string, d event.Data, then func(event.Data)) *errand {
	return m.agenda.add(key, func() []machine.Action { return []machine.Action{machine.Record{Data: d}} }, then)
}
