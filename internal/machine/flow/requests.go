package flow

import (
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
)

// requests holds the actions that the machine wants. A request stays until an event
// settles it, so that the cost of one event does not grow with the plan.
type requests struct {
	byKey map[string]*request
	order []*request
}

type request struct {
	// actions are the requested actions; then folds their result.
	actions func() []machine.Action
	then    func(event.Data)
	gone    bool
	// stops reports whether the other requests may be void once this one is settled, so
	// that none is returned after it.
	stops bool
}

func (a *requests) add(key string, actions func() []machine.Action, then func(event.Data)) *request {
	if a.byKey == nil {
		a.byKey = map[string]*request{}
	}
	e := &request{actions: actions, then: then}
	a.byKey[key] = e
	a.order = append(a.order, e)
	return e
}

// drop removes a request, and reports whether it was there.
func (a *requests) drop(key string) (e *request, had bool) {
	if e, had = a.byKey[key]; had {
		e.gone = true
		delete(a.byKey, key)
	}
	return e, had
}

// settle removes a request and passes on its result.
func (a *requests) settle(key string, d event.Data) error {
	e, had := a.drop(key)
	if !had {
		return fmt.Errorf("%w: nothing requested %s (%s)", tree.ErrMisfit, d.EventType(), key)
	}
	e.then(d)
	return nil
}

// atOnce bounds how many actions are returned at once: their inputs are in memory
// together, and the rest follows once those have started.
const atOnce = 64

// actions returns those of the first requests.
func (a *requests) actions(due []machine.Action) []machine.Action {
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

// record requests a decision to be journalled.
func (m *Machine) record(key string, d event.Data, then func(event.Data)) *request {
	return m.requests.add(key, func() []machine.Action { return []machine.Action{machine.Record{Data: d}} }, then)
}
