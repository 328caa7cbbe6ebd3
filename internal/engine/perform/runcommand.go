package perform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
)

// NoCommands is the settlement of a command where nothing runs commands.
func NoCommands(a machine.RunCommand) event.Data {
	return unavailable(a, errors.New("nothing here runs commands"))
}

func unavailable(a machine.RunCommand, why error) event.CommandFinished {
	return event.CommandFinished{ID: a.ID, ErrorType: event.ErrorUnavailable, Error: why.Error(), Step: a.Step}
}

// judgement is the effect that decides about a command in its worktree.
type judgement struct {
	*Performer
	a     machine.RunCommand
	taint event.Taint
}

// JudgeApart returns the effect that decides about a command in its worktree.
func (p *Performer) JudgeApart(a machine.RunCommand, taint event.Taint) Effect {
	return Effect{Work: &judgement{Performer: p, a: a, taint: taint}, Unhurried: true}
}

// Do implements [Work].
func (j *judgement) Do(ctx context.Context) []event.Data {
	v, err := Guard(func() (event.PolicyDecision, error) {
		p, err := j.placeOf(ctx, j.a)
		if err != nil {
			return event.PolicyDecision{}, err
		}
		return judgeCommand(j.a, p, j.taint), p.close()
	}, commandPanic)
	switch late, ok := errors.AsType[OutOfTime](context.Cause(ctx)); {
	case ok && !late.Asks:
		return []event.Data{j.commandFinished(ctx, j.a, tool.Ended{}, late)}
	case context.Cause(ctx) != nil:
		return nil // it is judged again when the run continues
	case err != nil:
		return []event.Data{unavailable(j.a, err)}
	}
	return []event.Data{v}
}

// GiveUp implements [Work].
func (j *judgement) GiveUp(_ context.Context, why error) []event.Data {
	return []event.Data{unavailable(j.a, why)}
}

// Judge returns the decision of the rules about a command in the run's own directory.
func (p *Performer) Judge(a machine.RunCommand, taint event.Taint) event.PolicyDecision {
	return judgeCommand(a, workplace{commands: p.Commands, rules: p.Rules}, taint)
}

// Changed reports whether a file that an approved command runs has changed since the
// approval.
func (p *Performer) Changed(a machine.RunCommand) bool { return ranOtherwise(p.Commands, a) }

// judgeCommand returns the decision of the rules that apply where a command runs.
func judgeCommand(a machine.RunCommand, p workplace, taint event.Taint) event.PolicyDecision {
	args, _ := json.Marshal(struct {
		Argv  []string `json:"argv"`
		Stdin []byte   `json:"stdin,omitempty"`
	}{a.Argv, a.Stdin})
	call := event.ToolCall{CallID: a.ID, Tool: machine.CommandTool, Args: args, Effect: a.Effect, Digest: tool.Digest(machine.CommandTool, args, "")}
	facts, err := Guard(func() (event.Facts, error) {
		facts, labels := p.commands.Facts(toRun(a))
		call.Labels = labels
		return facts, nil
	}, func(message string) error { return errors.New(message) })
	if err != nil {
		call.Labels = event.Labels{Untrusted: true, Private: true, Outgoing: true}
		facts = event.Facts{Risk: event.RiskUnknown, Unclear: []string{"what it does: " + err.Error()}, Unsandboxed: true}
	}
	call.Facts = &facts
	rules := p.rules
	rules.Taint = taint
	v := rules.Decide(&call)
	if a.Permission != "" && v.Decision != event.DecisionDeny {
		v = policy.Verdict{Decision: event.DecisionAllow, Rule: a.Permission}
	}
	return event.PolicyDecision{
		CallID: a.ID, Decision: v.Decision, Rule: v.Rule, Reason: v.Reason, Sandbox: v.Sandbox, Digest: call.Digest, Facts: &facts, Step: a.Step,
	}
}

// ranOtherwise reports whether a file that an approved command runs has changed
// since the approval.
func ranOtherwise(commands tool.Commands, a machine.RunCommand) bool {
	if a.Verdict.Decision != event.DecisionAsk || a.Verdict.Facts == nil || len(a.Verdict.Facts.Runs) == 0 {
		return false
	}
	now, err := Guard(func() (event.Facts, error) {
		facts, _ := commands.Facts(toRun(a))
		return facts, nil
	}, func(message string) error { return errors.New(message) })
	return err != nil || !slices.Equal(now.Runs, a.Verdict.Facts.Runs)
}

func toRun(a machine.RunCommand) tool.Invocation {
	return tool.Invocation{Argv: slices.Clone(a.Argv), Env: slices.Clone(a.Env), Stdin: slices.Clone(a.Stdin)}
}

// errIdle is the cause when a command has printed nothing for too long.
var errIdle = errors.New("idle")

// command is a command that runs.
type command struct {
	*Performer
	a     machine.RunCommand
	idle  *idleLimit
	start time.Time
}

// RunCommand returns the effect of a command.
func (p *Performer) RunCommand(a machine.RunCommand) Effect {
	c := &command{Performer: p, a: a, start: p.Clock.Awake()}
	return Effect{Work: c, Timeout: a.WallLimit, Watch: func(stop context.CancelCauseFunc) func() {
		c.idle = newIdleLimit(a.IdleLimit, func() { stop(errIdle) })
		return c.idle.end
	}}
}

// Do implements [Work].
func (c *command) Do(ctx context.Context) []event.Data {
	to := toRun(c.a)
	to.Facts, to.Sandbox, to.Redact = c.a.Verdict.Facts, c.a.Verdict.Sandbox, c.Record.Secrets.Text
	to.Printed = func([]byte) { c.idle.reset() }
	r, err := Guard(func() (tool.Ended, error) { return c.runIn(ctx, c.a, to) }, commandPanic)
	return c.settle(ctx, r, err)
}

// GiveUp implements [Work].
func (c *command) GiveUp(ctx context.Context, why error) []event.Data {
	return c.settle(ctx, tool.Ended{}, commandPanic("was given up: "+why.Error()))
}

func (c *command) settle(ctx context.Context, r tool.Ended, err error) []event.Data {
	e := c.commandFinished(ctx, c.a, r, err)
	e.DurationMs = c.Clock.Awake().Sub(c.start).Milliseconds()
	if c.a.Worktree {
		e.Worktree = c.LeftTree(ctx, c.a.Step)
	}
	return []event.Data{e}
}

// runIn runs a command in its place.
func (p *Performer) runIn(ctx context.Context, a machine.RunCommand, c tool.Invocation) (tool.Ended, error) {
	at, err := p.placeOf(ctx, a)
	if err != nil {
		return tool.Ended{}, err
	}
	if ranOtherwise(at.commands, a) {
		return tool.Ended{}, errors.Join(&tool.Error{Type: event.ErrorConflict, Message: "a file that the command runs has changed since it was approved"}, at.close())
	}
	r, err := at.commands.Run(ctx, c)
	return r, errors.Join(err, at.close())
}

func commandPanic(message string) error {
	return &tool.Error{Type: event.ErrorPanic, Message: "the command " + message}
}

// idleLimit ends a command that prints nothing for too long. It is safe for
// concurrent use; the zero value bounds nothing.
type idleLimit struct {
	lasts time.Duration

	mu    sync.Mutex
	timer *time.Timer
}

func newIdleLimit(lasts time.Duration, over func()) *idleLimit {
	if lasts <= 0 {
		return &idleLimit{}
	}
	return &idleLimit{lasts: lasts, timer: time.AfterFunc(lasts, over)}
}

// reset restarts the timer, unless it has fired.
func (l *idleLimit) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil && l.timer.Stop() {
		l.timer.Reset(l.lasts)
	}
}

func (l *idleLimit) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}

// commandFinished returns the settlement of a command.
func (p *Performer) commandFinished(ctx context.Context, a machine.RunCommand, r tool.Ended, err error) event.CommandFinished {
	e := event.CommandFinished{
		ID: a.ID, ExitCode: r.ExitCode, Signal: r.Signal, Untrusted: r.Untrusted, Private: r.Private, Reached: r.Reached, Changed: r.Changed,
		Step: a.Step, Stderr: r.Stderr, Report: r.Report,
	}
	if err != nil {
		e.ErrorType, e.Limit, e.Error = commandFailure(ctx, a, err)
		e.Error = p.Record.Secrets.Text(e.Error)
	} else if len(r.Changed) > 0 {
		e.ErrorType, e.Error = event.ErrorProtected, "the command changed what is protected"
	}
	output, most := p.Record.Secrets.Text(r.Output), a.MaxOutputChars // redact before cutting, or half of a secret could remain
	if a.WholeJSON && len(output) <= machine.MostJSON && json.Valid([]byte(output)) {
		most = 0
	}
	x := p.Record.Excerpt(output, most, r.Truncated)
	e.Output, e.Blob, e.Truncated = x.Text, x.Blob, r.Truncated || x.Blob != ""
	return e
}

// commandFailure returns why a command did not finish.
func commandFailure(ctx context.Context, a machine.RunCommand, err error) (kind event.ErrorType, limit, message string) {
	typed, ok := errors.AsType[*tool.Error](err)
	time, late := errors.AsType[OutOfTime](context.Cause(ctx))
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errIdle):
		return event.ErrorTimeout, event.LimitIdle, fmt.Sprintf("the command was stopped because it had printed nothing for %s", a.IdleLimit)
	case errors.Is(cause, ErrTimeout):
		return event.ErrorTimeout, event.LimitWall, fmt.Sprintf("the command was stopped after its limit of %s", a.WallLimit)
	case late:
		return event.ErrorTimeout, time.Setting, "the command was stopped because " + time.Error()
	case cause != nil:
		return event.ErrorCancelled, "", "the command was stopped before it finished"
	case ok:
		return typed.Type, "", typed.Error()
	}
	return event.ErrorNotStarted, "", err.Error()
}

var errNoWorktrees = errors.New("nothing here makes worktrees for steps")

// treeName is the name of a step's worktree.
func (p *Performer) treeName(step string) string {
	return p.Place.Worktrees + strings.NewReplacer("[", ".", "]", "").Replace(step)
}

// MakeTree makes a step's worktree if it does not exist.
func (p *Performer) MakeTree(ctx context.Context, step string) (dir string, err error) {
	if p.Worktrees == nil {
		return "", errNoWorktrees
	}
	return p.Worktrees.Make(ctx, p.treeName(step))
}

// LeftTree returns the state of a step's worktree, nil if it is unknown. The
// step's result does not depend on it.
func (p *Performer) LeftTree(ctx context.Context, step string) *event.Worktree {
	if p.Worktrees == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Grace)
	defer cancel()
	left, err := Guard(func() (*event.Worktree, error) { return p.Worktrees.Find(ctx, p.treeName(step)) }, ToolPanic)
	if err != nil {
		return nil
	}
	return left
}

// workplace is where a command runs, and the rules that apply there.
type workplace struct {
	commands tool.Commands
	rules    policy.Rules
	close    func() error
}

// placeOf opens the place of a command.
func (p *Performer) placeOf(ctx context.Context, a machine.RunCommand) (at workplace, err error) {
	if !a.Worktree {
		return workplace{commands: p.Commands, rules: p.Rules, close: func() error { return nil }}, nil
	}
	dir, err := p.MakeTree(ctx, a.Step)
	if err == nil {
		at.commands, at.rules, at.close, err = p.Worktrees.Commands(dir)
	}
	return at, err
}
