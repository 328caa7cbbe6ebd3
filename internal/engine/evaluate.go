package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// errNoExpressions is why nothing is evaluated in an environment that cannot.
var errNoExpressions = errors.New("nothing here evaluates expressions")

// typedError is an error that says of what kind it is.
type typedError interface {
	error
	ErrorType() string
}

// evaluate gives what an expression comes to. What it panics with is its error.
func (env *environment) evaluate(ctx context.Context, a machine.Evaluate) event.ConditionEvaluated {
	evaluated := event.ConditionEvaluated{ID: a.ID, Step: a.Step, Expression: a.Expression}
	value, err := guard(func() (json.RawMessage, error) {
		if env.Evaluate == nil {
			return nil, errNoExpressions
		}
		return env.Evaluate(ctx, a.Expression, a.Variables)
	}, func(message string) error { return errors.New("the expression " + message) })
	switch {
	case err != nil:
		evaluated.Error = err.Error()
		if typed, ok := errors.AsType[typedError](err); ok {
			evaluated.ErrorType = typed.ErrorType()
		}
	case !json.Valid(value):
		evaluated.Error = "it gave no JSON"
	default:
		evaluated.Value = value
	}
	return evaluated
}

// wait journals the intent of a wait, and its end once that has come. Until then
// it sets the alarm.
func (cs *calls) wait(a machine.Wait) (bool, error) {
	switch {
	case !a.Begun:
		return true, cs.stage(event.WaitStarted{ID: a.ID, Until: a.Until})
	case !a.Until.After(cs.env.clock.now()):
		return true, cs.stage(event.WaitFinished{ID: a.ID})
	}
	cs.alarm.set(a.Until)
	if len(cs.effects.pending) == 0 {
		cs.alarm.waiting = journal.WaitTime
	}
	return false, nil
}
