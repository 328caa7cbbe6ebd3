package tree

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/question"
)

// commands contains the programs of a run. The cost of an event does not depend on
// their number.
type commands struct {
	byID map[string]*command
	// begun lists the commands that have not ended, in the order of their starts.
	// running is the number of those that a process runs.
	begun   []*command
	running int
}

type command struct {
	id, step string
	verdict  *event.PolicyDecision
	// spent is the question whose approval an attempt has used. Another attempt needs
	// another decision.
	spent   *question.Exchange
	attempt int
	effect  event.Effect
	running bool
	// orphan reports whether the command has not ended and no process runs it.
	orphan bool
	// deaths counts the processes that died while they ran the command.
	deaths   int
	finished *event.CommandFinished
}

// repeatable reports whether the command may run again if it did not end.
func (c *command) repeatable() bool {
	return (c.effect == event.EffectPure || c.effect == event.EffectIdempotent) && c.deaths < machine.MaxDeaths
}

// resume marks all commands as orphans.
func (c *commands) resume() {
	for _, x := range c.begun {
		if x.running {
			x.deaths++
		}
		x.running, x.orphan = false, true
	}
	c.running = 0
}

// cutOff reports whether there are orphans.
func (c *commands) cutOff() bool { return len(c.begun) > c.running }

// lost settles the orphans of a run that ends, because they will not run again.
func (c *commands) lost() (actions []machine.Action) {
	for _, x := range c.begun {
		if x.orphan {
			actions = append(actions, settled(x.lost())...)
		}
	}
	return actions
}

func (c *commands) start(x *command, d *event.CommandStarted) {
	if !x.orphan && !x.running {
		c.begun = append(c.begun, x)
	}
	if !x.running {
		c.running++
	}
	x.attempt, x.effect, x.running, x.orphan = d.Attempt, d.Effect, true, false
}

// stop removes a command from the running ones. If again is set, the command may run
// once more.
func (c *commands) stop(x *command, d *event.CommandFinished, again bool) {
	if x.running {
		x.running = false
		c.running--
	}
	if x.orphan = again; again {
		return
	}
	x.finished = d
	c.begun = slices.DeleteFunc(c.begun, func(other *command) bool { return other == x })
}

// Command runs a program, and runs it again after a crash or an interruption if its
// effect class allows that. When it returns no actions because the command has ended,
// [Run.Ran] returns the result. Command sets a.Attempt and a.Verdict. A machine that
// judges commands itself records policy.decision first.
func (r *Run) Command(a machine.RunCommand) []machine.Action {
	a.Effect = cmp.Or(a.Effect, event.EffectAtMostOnce)
	c := r.commands.byID[a.ID]
	switch {
	case c == nil:
		c = &command{}
	case c.finished != nil, c.running:
		return nil
	case c.orphan && !c.repeatable():
		return settled(c.lost())
	case c.verdict == nil:
	case c.verdict.Decision == event.DecisionDeny:
		return settled(c.denied())
	case c.verdict.Decision == event.DecisionAsk:
		if steps, approved := r.approval(c, a); !approved {
			return steps
		}
	}
	a.Attempt, a.Verdict = c.attempt+1, c.verdict
	return []machine.Action{a}
}

// approval reports whether a command that policy asks about is approved. If it is not,
// approval returns the next steps toward a decision.
func (r *Run) approval(c *command, a machine.RunCommand) (steps []machine.Action, approved bool) {
	asked := r.questions.Of(c.id)
	if asked == nil || asked == c.spent {
		return []machine.Action{machine.Record{Data: c.question(a)}}, false
	}
	switch d := asked.Decided(); {
	case d == nil:
		return nil, false
	case d.Kind == event.ApprovalApproved:
		return nil, true
	default:
		return settled(c.rejected(d)), false
	}
}

// question returns the question about a command, in the form of a question about a
// call.
func (c *command) question(a machine.RunCommand) event.ToolPendingApproval {
	args, _ := json.Marshal(struct {
		Argv []string `json:"argv"`
		Env  []string `json:"env,omitempty"`
	}{a.Argv, shownOf(a.Env)})
	p := event.ToolPendingApproval{
		CallID: c.id, Tool: machine.CommandTool, Args: args, Digest: c.verdict.Digest, Reason: c.verdict.Reason, Rule: c.verdict.Rule,
		Fixed: true, Step: a.Step,
	}
	if c.verdict.Facts != nil {
		p.Risk, p.Runs = c.verdict.Facts.Risk, c.verdict.Facts.Runs
		p.Digest = event.AskedDigest(p.Digest, p.Runs)
	}
	return p
}

// shownOf returns environment variables in the form that a question shows.
func shownOf(env []string) []string {
	const most = 200
	shown := slices.Clone(env)
	for i, v := range shown {
		if runes := []rune(v); len(runes) > most {
			shown[i] = string(runes[:most]) + "…"
		}
	}
	return shown
}

// Ran returns how a command ended, nil before it has.
func (r *Run) Ran(id string) *event.CommandFinished {
	if c := r.commands.byID[id]; c != nil {
		return c.finished
	}
	return nil
}

// applyCommand folds an event about a command.
func (r *Run) applyCommand(e *event.Event, id string) error {
	if r.commands.byID == nil {
		r.commands.byID = map[string]*command{}
	}
	c := r.commands.byID[id]
	if c == nil {
		c = &command{id: id}
		r.commands.byID[id] = c
	}
	if c.finished != nil {
		return fmt.Errorf("%w: %s of %s, which has ended", ErrMisfit, e.Type(), id)
	}
	switch d := e.Data.(type) {
	case event.PolicyDecision:
		// An approval of the previous decision does not apply to this one.
		c.verdict, c.step, c.spent = &d, d.Step, r.questions.Of(id)
	case event.CommandStarted:
		c.step, c.spent = d.Step, r.questions.Of(id)
		r.commands.start(c, &d)
	case event.CommandFinished:
		// A command that stopped together with its run may run again, because the run
		// may resume.
		again := d.ErrorType == event.ErrorCancelled && c.running && c.repeatable() && r.Cancel == nil
		r.commands.stop(c, &d, again)
		r.Progress(r.Limits)
		source := event.TaintSource{Run: r.ID, CallID: d.ID, Tool: machine.CommandTool}
		r.Taint = r.Taint.With(source.Brings(d.Untrusted, d.Private))
	}
	return nil
}

func settled(d event.CommandFinished) []machine.Action {
	return []machine.Action{machine.Record{Data: d}}
}

// lost settles a command whose process is gone and that cannot run again.
func (c *command) lost() event.CommandFinished {
	why := "its effect class is " + string(c.effect)
	switch {
	case c.deaths >= machine.MaxDeaths:
		why = fmt.Sprintf("that happened %d times", c.deaths)
	case c.effect == event.EffectPure:
		return event.CommandFinished{ID: c.id, Step: c.step, ErrorType: event.ErrorCancelled, Error: "the run ended after the process had stopped that ran this command"}
	}
	return event.CommandFinished{
		ID: c.id, Step: c.step, ErrorType: event.ErrorInDoubt,
		Error: "the process stopped while this command was running, so it is not known whether it took effect; " +
			"it was not repeated because " + why,
	}
}

// denied settles a command that policy denies.
func (c *command) denied() event.CommandFinished {
	d := event.CommandFinished{ID: c.id, Step: c.step, ErrorType: event.ErrorDenied, Rule: c.verdict.Rule, Error: "not permitted by the rule " + c.verdict.Rule}
	if c.verdict.Reason != "" {
		d.Error += ": " + c.verdict.Reason
	}
	return d
}

// rejected settles a command that was not approved.
func (c *command) rejected(by *event.Resolution) event.CommandFinished {
	d := event.CommandFinished{ID: c.id, Step: c.step, ErrorType: event.ErrorRejected, Rule: c.verdict.Rule, Error: "rejected by " + by.Approver}
	if by.Kind == event.ApprovalExpired {
		d.ErrorType, d.Error = event.ErrorExpired, "nobody decided in time"
	}
	if by.Reason != "" {
		d.Error += ": " + by.Reason
	}
	return d
}
