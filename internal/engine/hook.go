package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// hookEffect is the effect that calls a hook.
func hookEffect(id string) string { return "hook:" + id }

// beginHook queues a hook that is not under way already. It leaves one
// record, its result: a hook that a crash cut short runs again.
func (cs *calls) beginHook(a machine.RunHook) {
	if cs.effects.underWay[hookEffect(a.ID)] {
		return
	}
	cs.effects.mark(hookEffect(a.ID))
	cs.effects.add(func(work context.Context) { cs.callHook(work, a) })
}

// callHook runs one hook. It settles with a result, or with nothing when the run
// stops it, and runs again should the run go on.
func (cs *calls) callHook(work context.Context, a machine.RunHook) {
	h, known := cs.env.hook(a.Stage, a.Hook)
	ctx, cancel := cs.effects.until(work, h.Timeout)
	start := cs.env.clock.awake()
	call := hook.Call{
		Stage: a.Stage, Hook: a.Hook, Run: cs.run.id, Cycle: a.Cycle, CallID: a.CallID, Tool: a.Tool,
		Args: bytes.Clone(a.Args), Result: a.Result, Outcome: a.Outcome, Compaction: a.Compaction,
	}
	settle := func(ctx context.Context, answer hook.Answer, err error) []event.Data {
		if err != nil {
			if err = hookFailure(ctx, err, h.Timeout); err == nil {
				return nil
			}
		}
		if err == nil && nestedTooDeep(answer.Args) {
			err = fmt.Errorf("the arguments that it gave are nested deeper than %d levels", maxNesting)
		}
		// Before anything is cut, or half of a secret could be left.
		if err != nil {
			err = errors.New(cs.env.record.Secrets.Text(err.Error()))
		}
		answer.Reason = cs.env.record.Secrets.Text(answer.Reason)
		r := hook.Result(call, a.Observer, answer, err)
		r.Args = bytes.Clone(r.Args) // the hook may keep what it gave
		r.Reason = drive.Stored(r.Reason)
		r.Output = drive.Stored(cs.env.record.Secrets.Text(r.Output))
		if text, cut := tool.Bound(r.Output, a.MaxResultChars); cut {
			r.Output, r.Contains = text, drive.Excerpt{Full: r.Output}.Contains(a.Sought)
		}
		r.DurationMs = cs.env.clock.awake().Sub(start).Milliseconds()
		return []event.Data{r}
	}
	cs.effects.launch(ctx, cancel, effect{
		id: hookEffect(a.ID),
		do: func(ctx context.Context) []event.Data {
			if !known {
				return settle(ctx, hook.Answer{}, errors.New("it is not there any more"))
			}
			answer, err := guard(func() (hook.Answer, error) { return h.Run(ctx, call) },
				func(message string) error { return errors.New("it " + message) })
			if err == nil {
				// Who is stopped often says nothing more, and nothing lets things go on.
				err = ctx.Err()
			}
			return settle(ctx, answer, err)
		},
		giveUp: func(ctx context.Context, why error) []event.Data { return settle(ctx, hook.Answer{}, why) },
	})
}

// hookFailure is why a hook did not run to its end, nil when the run itself stopped it:
// that is no fault of the hook's.
func hookFailure(ctx context.Context, err error, timeout time.Duration) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return fmt.Errorf("it was stopped after its timeout of %s", timeout)
	case errors.As(cause, new(outOfTime)):
		return fmt.Errorf("it was stopped because %w", cause)
	case cause != nil:
		return nil
	}
	return err
}

// hook finds a hook of the run by its stage and name.
func (v *Env) hook(stage event.HookStage, name string) (hook.Hook, bool) {
	for _, h := range v.Hooks {
		if h.Stage == stage && h.Name == name {
			return h, true
		}
	}
	return hook.Hook{Timeout: hook.DefaultTimeout}, false
}
