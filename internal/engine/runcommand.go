package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
)

// beginCommand journals the intent of a command and queues its start. For a
// command that has not been judged, it journals the decision of policy, which
// the machine then uses.
func (cs *calls) beginCommand(a machine.RunCommand) (changed bool, err error) {
	switch {
	case cs.env.Commands == nil:
		return true, cs.stage(unavailable(a, errors.New("nothing here runs commands")))
	case a.Verdict == nil && a.Worktree:
		cs.judgeApart(a)
		return false, nil
	case a.Verdict == nil:
		return true, cs.stage(judgeCommand(a, workplace{commands: cs.env.Commands, rules: cs.env.Rules}, cs.machine.State().Taint))
	}
	if !a.Worktree && ranOtherwise(cs.env.Commands, a) {
		return true, cs.stage(judgeCommand(a, workplace{commands: cs.env.Commands, rules: cs.env.Rules}, cs.machine.State().Taint))
	}
	intent := event.CommandStarted{ID: a.ID, Argv: a.Argv, Dir: ".", Attempt: a.Attempt, Effect: a.Effect, Step: a.Step}
	if err := cs.stage(intent); err != nil {
		return true, err
	}
	cs.effects.add(func(work context.Context) { cs.runCommand(work, a) })
	return true, nil
}

func unavailable(a machine.RunCommand, why error) event.CommandFinished {
	return event.CommandFinished{ID: a.ID, ErrorType: event.ErrorUnavailable, Error: why.Error(), Step: a.Step}
}

// judgeApart judges a command in its worktree, which takes time to make.
func (cs *calls) judgeApart(a machine.RunCommand) {
	id := "judge " + a.ID
	if cs.effects.underWay[id] {
		return
	}
	cs.effects.mark(id)
	taint := cs.machine.State().Taint
	cs.effects.add(func(work context.Context) {
		ctx, release := cs.effects.until(work, 0)
		cs.effects.launch(ctx, release, effect{
			id: id, unhurried: true,
			do: func(ctx context.Context) []event.Data {
				v, err := guard(func() (event.PolicyDecision, error) {
					p, err := cs.env.placeOf(ctx, a)
					if err != nil {
						return event.PolicyDecision{}, err
					}
					return judgeCommand(a, p, taint), p.close()
				}, commandPanic)
				switch late, ok := errors.AsType[outOfTime](context.Cause(ctx)); {
				case ok && !late.asks:
					return []event.Data{cs.env.commandFinished(ctx, a, tool.Ended{}, late)}
				case context.Cause(ctx) != nil:
					return nil // it is judged again when the run continues
				case err != nil:
					return []event.Data{unavailable(a, err)}
				}
				return []event.Data{v}
			},
			giveUp: func(_ context.Context, why error) []event.Data { return []event.Data{unavailable(a, why)} },
		})
	})
}

// judgeCommand returns the decision of the rules that hold where a command runs.
func judgeCommand(a machine.RunCommand, p workplace, taint event.Taint) event.PolicyDecision {
	args, _ := json.Marshal(struct {
		Argv  []string `json:"argv"`
		Stdin []byte   `json:"stdin,omitempty"`
	}{a.Argv, a.Stdin})
	call := event.ToolCall{CallID: a.ID, Tool: machine.CommandTool, Args: args, Effect: a.Effect, Digest: tool.Digest(machine.CommandTool, args, "")}
	facts, err := guard(func() (event.Facts, error) {
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
	now, err := guard(func() (event.Facts, error) {
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

func (cs *calls) runCommand(work context.Context, a machine.RunCommand) {
	timed, release := cs.effects.until(work, a.WallLimit)
	ctx, stop := context.WithCancelCause(timed)
	idle := newIdleLimit(a.IdleLimit, func() { stop(errIdle) })
	start := cs.env.clock.awake()
	settle := func(ctx context.Context, r tool.Ended, err error) []event.Data {
		e := cs.env.commandFinished(ctx, a, r, err)
		e.DurationMs = cs.env.clock.awake().Sub(start).Milliseconds()
		if a.Worktree {
			e.Worktree = cs.env.leftTree(ctx, a.Step)
		}
		return []event.Data{e}
	}
	cs.effects.launch(ctx, func() { idle.end(); stop(nil); release() }, effect{
		id: "command " + a.ID,
		do: func(ctx context.Context) []event.Data {
			c := toRun(a)
			c.Facts, c.Sandbox, c.Printed, c.Redact = a.Verdict.Facts, a.Verdict.Sandbox, idle.reset, cs.env.record.Secrets.Text
			r, err := guard(func() (tool.Ended, error) { return cs.env.runIn(ctx, a, c) }, commandPanic)
			return settle(ctx, r, err)
		},
		giveUp: func(ctx context.Context, why error) []event.Data {
			return settle(ctx, tool.Ended{}, commandPanic("was given up: "+why.Error()))
		},
	})
}

// runIn runs a command in its place.
func (env *environment) runIn(ctx context.Context, a machine.RunCommand, c tool.Invocation) (tool.Ended, error) {
	p, err := env.placeOf(ctx, a)
	if err != nil {
		return tool.Ended{}, err
	}
	if ranOtherwise(p.commands, a) {
		return tool.Ended{}, errors.Join(&tool.Error{Type: event.ErrorConflict, Message: "a file that the command runs has changed since it was approved"}, p.close())
	}
	r, err := p.commands.Run(ctx, c)
	return r, errors.Join(err, p.close())
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
func (env *environment) commandFinished(ctx context.Context, a machine.RunCommand, r tool.Ended, err error) event.CommandFinished {
	e := event.CommandFinished{
		ID: a.ID, ExitCode: r.ExitCode, Signal: r.Signal, Untrusted: r.Untrusted, Private: r.Private, Reached: r.Reached, Changed: r.Changed,
		Step: a.Step, Stderr: r.Stderr, Report: r.Report,
	}
	if err != nil {
		e.ErrorType, e.Limit, e.Error = commandFailure(ctx, a, err)
		e.Error = env.record.Secrets.Text(e.Error)
	} else if len(r.Changed) > 0 {
		e.ErrorType, e.Error = event.ErrorProtected, "the command changed what is protected"
	}
	output, most := env.record.Secrets.Text(r.Output), a.MaxOutputChars // redact before cutting, or half of a secret could remain
	if a.WholeJSON && len(output) <= machine.MostJSON && json.Valid([]byte(output)) {
		most = 0
	}
	x := env.record.Excerpt(output, most, r.Truncated)
	e.Output, e.Blob, e.Truncated = x.Text, x.Blob, r.Truncated || x.Blob != ""
	return e
}

// commandFailure returns why a command did not finish.
func commandFailure(ctx context.Context, a machine.RunCommand, err error) (kind event.ErrorType, limit, message string) {
	typed, ok := errors.AsType[*tool.Error](err)
	time, late := errors.AsType[outOfTime](context.Cause(ctx))
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errIdle):
		return event.ErrorTimeout, event.LimitIdle, fmt.Sprintf("the command was stopped because it had printed nothing for %s", a.IdleLimit)
	case errors.Is(cause, errTimeout):
		return event.ErrorTimeout, event.LimitWall, fmt.Sprintf("the command was stopped after its limit of %s", a.WallLimit)
	case late:
		return event.ErrorTimeout, time.setting, "the command was stopped because " + time.Error()
	case cause != nil:
		return event.ErrorCancelled, "", "the command was stopped before it finished"
	case ok:
		return typed.Type, "", typed.Error()
	}
	return event.ErrorNotStarted, "", err.Error()
}

// lateCommands settles the open commands if the machine broke: with their
// results, or with the reason why there is none.
func (l *eventLog) lateCommands(late []event.Data) []event.Data {
	var closing []event.Data
	for _, c := range l.commands {
		var finished event.Data = event.CommandFinished{
			ID: c.ID, Step: c.Step, ErrorType: event.ErrorInDoubt, Error: "the run ended while this command was running, so it is not known whether it took effect",
		}
		for _, data := range late {
			if x, ok := data.(event.CommandFinished); ok && x.ID == c.ID {
				finished = x
			}
		}
		closing = append(closing, finished)
	}
	return closing
}

// Worktrees are directories of steps that work apart from each other. Its
// methods are called from several goroutines at once.
type Worktrees interface {
	// Make makes a step's worktree, or returns the existing one, which a crash or an
	// earlier attempt may have left. dir is the workspace in it. name is the path of
	// the worktree among all.
	Make(ctx context.Context, name string) (dir string, err error)
	// Find returns a worktree's place and commit, nil if it does not exist.
	Find(ctx context.Context, name string) (*event.Worktree, error)
	// Commands returns a runner of programs in a worktree and the rules that hold
	// there. close releases its resources.
	Commands(dir string) (commands tool.Commands, rules policy.Rules, close func() error, err error)
}

var errNoWorktrees = errors.New("nothing here makes worktrees for steps")

// makeTree makes a step's worktree if it does not exist.
func (env *environment) makeTree(ctx context.Context, step string) (dir string, err error) {
	if env.Worktrees == nil {
		return "", errNoWorktrees
	}
	return env.Worktrees.Make(ctx, env.run.treeName(step))
}

// worktreeStep returns the name of the worktree that a child works in: that of its
// step, or of the call that it answers; empty for none.
func (env *environment) worktreeStep(a *machine.StartChild) string {
	switch {
	case a.Worktree:
		return a.Step
	case env.Children[a.Name].Apart:
		return a.ID
	}
	return ""
}

// beginApart makes the worktree of a child, and returns the function that begins
// the child there.
func (env *environment) beginApart(ctx context.Context, a *machine.StartChild, offered Child) (func(json.RawMessage) (event.RunStarted, Env, error), error) {
	if offered.BeginIn == nil {
		return nil, errors.New("the agent " + a.Name + " works in no other directory than its own")
	}
	dir, err := env.makeTree(ctx, env.worktreeStep(a))
	return func(args json.RawMessage) (event.RunStarted, Env, error) { return offered.BeginIn(dir, args) }, err
}

// leftTree returns the state of a step's worktree, nil if it is unknown. The
// step's result does not depend on it.
func (env *environment) leftTree(ctx context.Context, step string) *event.Worktree {
	if env.Worktrees == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	left, err := guard(func() (*event.Worktree, error) { return env.Worktrees.Find(ctx, env.run.treeName(step)) }, toolPanic)
	if err != nil {
		return nil
	}
	return left
}

// workplace is where a command runs, and the rules that hold there.
type workplace struct {
	commands tool.Commands
	rules    policy.Rules
	close    func() error
}

// placeOf opens the place of a command.
func (env *environment) placeOf(ctx context.Context, a machine.RunCommand) (p workplace, err error) {
	if !a.Worktree {
		return workplace{commands: env.Commands, rules: env.Rules, close: func() error { return nil }}, nil
	}
	dir, err := env.makeTree(ctx, a.Step)
	if err == nil {
		p.commands, p.rules, p.close, err = env.Worktrees.Commands(dir)
	}
	return p, err
}
