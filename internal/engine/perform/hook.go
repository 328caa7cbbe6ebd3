package perform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// hookCall is a call of a hook. It settles with a result. If the run stops it, it
// settles with nothing, and the hook runs again if the run continues.
type hookCall struct {
	*Performer
	a     machine.RunHook
	hook  hook.Hook
	known bool
	call  hook.Call
	start time.Time
}

// RunHook returns the effect of a call of a hook.
func (p *Performer) RunHook(a machine.RunHook) Effect {
	h, known := p.hook(a.Stage, a.Hook)
	return Effect{Timeout: h.Timeout, Work: &hookCall{Performer: p, a: a, hook: h, known: known, start: p.Clock.Awake(), call: hook.Call{
		Stage: a.Stage, Hook: a.Hook, Run: p.Place.Run, Cycle: a.Cycle, CallID: a.CallID, Tool: a.Tool,
		Args: bytes.Clone(a.Args), Result: a.Result, Outcome: a.Outcome, Compaction: a.Compaction,
	}}}
}

// Do implements [Work].
func (c *hookCall) Do(ctx context.Context) []event.Data {
	if !c.known {
		return c.settle(ctx, hook.Answer{}, errors.New("it is not there any more"))
	}
	answer, err := Guard(func() (hook.Answer, error) { return c.hook.Run(ctx, c.call) },
		func(message string) error { return errors.New("it " + message) })
	if err == nil {
		// A hook that was killed produced no output, and empty output would
		// allow the call, so report the context's error.
		err = ctx.Err()
	}
	return c.settle(ctx, answer, err)
}

// GiveUp implements [Work].
func (c *hookCall) GiveUp(ctx context.Context, why error) []event.Data {
	return c.settle(ctx, hook.Answer{}, why)
}

func (c *hookCall) settle(ctx context.Context, answer hook.Answer, err error) []event.Data {
	if err != nil {
		if err = hookFailure(ctx, err, c.hook.Timeout); err == nil {
			return nil
		}
	}
	if err == nil && drive.NestedTooDeep(answer.Args) {
		err = fmt.Errorf("the arguments that it gave are nested deeper than %d levels", drive.MaxNesting)
	}
	// Redact before cutting, or half of a secret could remain.
	if err != nil {
		err = errors.New(c.Record.Secrets.Text(err.Error()))
	}
	answer.Reason = c.Record.Secrets.Text(answer.Reason)
	r := hook.Result(c.call, c.a.Observer, answer, err)
	r.Args = bytes.Clone(r.Args) // the hook may keep its slice
	r.Reason = drive.Stored(r.Reason)
	r.Output = drive.Stored(c.Record.Secrets.Text(r.Output))
	if text, cut := tool.Bound(r.Output, c.a.MaxResultChars); cut {
		r.Output, r.Contains = text, drive.Excerpt{Full: r.Output}.Contains(c.a.Sought)
	}
	r.DurationMs = c.Clock.Awake().Sub(c.start).Milliseconds()
	return []event.Data{r}
}

// hookFailure returns why a hook did not finish, nil if the run itself stopped
// it, because that is not the hook's failure.
func hookFailure(ctx context.Context, err error, timeout time.Duration) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrTimeout):
		return fmt.Errorf("it was stopped after its timeout of %s", timeout)
	case errors.As(cause, new(OutOfTime)):
		return fmt.Errorf("it was stopped because %w", cause)
	case cause != nil:
		return nil
	}
	return err
}

// hook returns the run's hook with a stage and a name.
func (v *Env) hook(stage event.HookStage, name string) (hook.Hook, bool) {
	for _, h := range v.Hooks {
		if h.Stage == stage && h.Name == name {
			return h, true
		}
	}
	return hook.Hook{Timeout: hook.DefaultTimeout}, false
}

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
