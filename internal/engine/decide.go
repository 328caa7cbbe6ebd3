package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// mostStaged bounds how many decisions a machine may make without an effect: a
// machine that never stops deciding is broken and must not fill the memory. Each
// call of an answer takes a few decisions, and so does each child and each
// settled effect.
func (d *driver) mostStaged() int {
	return 20_000 + 20*(len(d.log.calls.calls)+len(d.children.active)+d.effects.ended)
}

// decide performs the actions that are due now and reports whether more may be
// due because of them.
func (d *driver) decide(work context.Context) (bool, error) {
	if len(d.log.staged) > d.mostStaged() {
		return false, fmt.Errorf("engine: run %s: the machine decided %d times without an effect", d.run.id, len(d.log.staged))
	}
	d.alarm = alarm{}
	if d.life.interrupted && !d.life.cancelled {
		if progress, err := d.keepAnswer(); progress || err != nil {
			return progress, err
		}
		return false, d.parkInterrupted()
	}
	progress := false
	var ask *machine.Ask
	for _, a := range d.machine.Next() {
		var err error
		changed := true
		switch a := a.(type) {
		case machine.Record:
			err = d.stage(a.Data)
		case machine.Resolve:
			err = d.stage(d.env.resolve(a))
		case machine.CheckAnswer:
			err = d.stage(drive.CheckAnswer(a))
		case machine.CallModel:
			changed, err = d.calls.beginModel(&a)
		case machine.RunTool:
			changed, err = d.calls.beginTool(a)
		case machine.RunCommand:
			changed, err = d.calls.beginCommand(a)
		case machine.StartChild:
			changed, err = d.children.begin(work, a)
		case machine.Deliver:
			d.mail.handOver(a)
			changed = false
		case machine.CancelChild:
			d.children.cancelChild(a)
			changed = false
		case machine.Reserve:
			err = d.above.reserve(a)
			changed = false
		case machine.Wait:
			changed, err = d.calls.wait(a)
		case machine.Evaluate:
			err = d.stage(d.env.evaluate(d.life.work, a))
		case machine.Observe:
			err = d.stage(d.env.observe(d.life.work, a))
		case machine.RunHook:
			d.calls.beginHook(a)
			changed = false
		case machine.Ask:
			ask = &a
			changed = false
		default:
			err = fmt.Errorf("engine: run %s: the machine asks for %T, which this driver cannot do", d.run.id, a)
		}
		if err != nil {
			return false, err
		}
		progress = progress || changed
	}
	if ask != nil {
		asked, err := d.questions.begin(*ask)
		return progress || asked, err
	}
	return progress, nil
}

// keepAnswer journals the calls of an answer that arrived while the run stops:
// only a call's own event contains its arguments, so they would be lost
// otherwise.
func (d *driver) keepAnswer() (progress bool, err error) {
	for _, a := range d.machine.Next() {
		var keep event.Data
		switch a := a.(type) {
		case machine.Resolve:
			keep = d.env.resolve(a)
		case machine.Record:
			switch a.Data.(type) {
			case event.BudgetCommitted, event.ToolCall:
				keep = a.Data
			}
		}
		if keep == nil {
			continue
		}
		if err := d.stage(keep); err != nil {
			return progress, err
		}
		progress = true
	}
	return progress, nil
}

// parkInterrupted parks once every effect has stopped.
func (d *driver) parkInterrupted() error {
	if len(d.effects.pending) > 0 || d.machine.State().Phase != machine.Running {
		return nil
	}
	return d.stage(event.RunParked{Reason: event.ParkInterrupted, Served: d.engine.opts.Served})
}

// moveDeadlines applies the machine's deadline to the effects.
func (c *core) moveDeadlines() {
	c.effects.deadlines.move(c.machine.State().Deadline, c.env.clock.counted)
}

// errNoExpressions is the error of an environment that cannot evaluate
// expressions.
var errNoExpressions = errors.New("nothing here evaluates expressions")

// typedError is an error with a kind.
type typedError interface {
	error
	ErrorType() string
}

// evaluate returns the value of an expression. A panic becomes its error.
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

// wait journals the intent of a wait, and its settlement when its time comes.
// Until then it sets the alarm.
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

// maxNesting is how deep the JSON of a call or an answer may be nested. The
// journal's readers accept 10,000 levels, some of which the event itself takes
// up; no tool takes more than 256.
const maxNesting = 1000

// maxCalls is how many calls an answer may make. No model makes as many, and the
// cost to settle each of them grows with their number.
const maxCalls = 256

// unfit returns why an answer cannot be kept as its adapter returned it: it
// contains a part that no conversation or journal can hold, or more calls than a
// run can settle.
func unfit(parts llm.Parts) error {
	calls := 0
	for i, p := range parts {
		var raw json.RawMessage
		switch p := p.(type) {
		case llm.Text:
			raw = p.Raw
		case llm.Reasoning:
			raw = p.Raw
		case llm.ToolCall:
			if calls++; calls > maxCalls {
				return adapterPanic(fmt.Sprintf("gave an answer of more than %d calls", maxCalls))
			}
			raw = p.Raw
		case llm.Item:
			raw = p.Raw
		case llm.Media:
		case llm.ToolResult:
			return adapterPanic(fmt.Sprintf("gave an answer whose part %d is the result of a call", i+1))
		default:
			return adapterPanic(fmt.Sprintf("gave an answer whose part %d is %T", i+1, p))
		}
		if len(raw) > 0 && (!json.Valid(raw) || nestedTooDeep(raw)) {
			return adapterPanic(fmt.Sprintf("gave an answer whose part %d has a raw form that is no JSON, or is nested deeper than %d levels", i+1, maxNesting))
		}
	}
	return nil
}

// nestedTooDeep reports whether a valid JSON text is nested deeper than maxNesting.
func nestedTooDeep(text []byte) bool { return drive.NestedDeeper(text, maxNesting) }
