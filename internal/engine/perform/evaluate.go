package perform

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// errNoExpressions is the error of an environment that cannot evaluate
// expressions.
var errNoExpressions = errors.New("nothing here evaluates expressions")

// typedError is an error with a kind.
type typedError interface {
	error
	ErrorType() string
}

// EvaluateExpression returns the value of an expression. A panic becomes its error.
func (p *Performer) EvaluateExpression(ctx context.Context, a machine.Evaluate) event.ConditionEvaluated {
	evaluated := event.ConditionEvaluated{ID: a.ID, Step: a.Step, Expression: a.Expression}
	value, err := Guard(func() (json.RawMessage, error) {
		if p.Env.Evaluate == nil {
			return nil, errNoExpressions
		}
		return p.Env.Evaluate(ctx, a.Expression, a.Variables)
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
