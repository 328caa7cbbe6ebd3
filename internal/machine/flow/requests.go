package flow

import (
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
)

// requests contains the actions that the machine wants. A request remains until an
// event settles it, so the cost of an event does not grow with the plan.
type requests struct {
	byKey map[string]*request
	order []*request
}

type request struct {
	// actions returns the requested actions; then folds their result.
	actions func() []machine.Action
	then    func(event.Data)
	gone    bool
	// stops reports that settling this request may make the later requests obsolete, so
	// none of them is returned together with it.
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

// drop removes a request and reports whether it existed.
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

// atOnce limits the actions that are returned together, because their inputs are in
// memory at the same time. The rest follows when those have started.
const atOnce = 64

// actions appends the actions of the first requests to due.
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

// record requests that a decision be journalled.
func (m *Machine) record(key string, d event.Data, then func(event.Data)) *request {
	return m.requests.add(key, func() []machine.Action { return []machine.Action{machine.Record{Data: d}} }, then)
}
