package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
)

// Worktrees are directories of steps that work apart from each other. Its methods are
// called from several goroutines at once.
type Worktrees interface {
	// Make makes a step's worktree, or gives the one that is there: a crash may have
	// come since, or another attempt at the step. dir is the workspace in it. Name is
	// the path of the worktree among all.
	Make(ctx context.Context, name string) (dir string, err error)
	// Find says where a worktree is and what it is at, nil for one that is not there.
	Find(ctx context.Context, name string) (*event.Worktree, error)
	// Commands runs programs in a worktree by the rules that hold there. close releases
	// what that takes.
	Commands(dir string) (commands tool.Commands, rules policy.Rules, close func() error, err error)
}

var errNoWorktrees = errors.New("nothing here makes worktrees for steps")

// makeTree makes a step's worktree where it is not there yet.
func (env *environment) makeTree(ctx context.Context, step string) (dir string, err error) {
	if env.Worktrees == nil {
		return "", errNoWorktrees
	}
	return env.Worktrees.Make(ctx, env.run.treeName(step))
}

// apart is the name of the worktree that a child works in: that of the step, or of the
// call that it answers; empty for none.
func (env *environment) apart(a *machine.StartChild) string {
	switch {
	case a.Worktree:
		return a.Step
	case env.Children[a.Name].Apart:
		return a.ID
	}
	return ""
}

// beginApart makes the worktree of a child, and gives what begins it there.
func (env *environment) beginApart(ctx context.Context, a *machine.StartChild, offered Child) (func(json.RawMessage) (event.RunStarted, Env, error), error) {
	if offered.BeginIn == nil {
		return nil, errors.New("the agent " + a.Name + " works in no other directory than its own")
	}
	dir, err := env.makeTree(ctx, env.apart(a))
	return func(args json.RawMessage) (event.RunStarted, Env, error) { return offered.BeginIn(dir, args) }, err
}

// leftTree is a step's worktree as it was left, nil where that cannot be told: what the
// step did holds all the same.
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

// place is where a command runs, and what rules hold there.
type place struct {
	commands tool.Commands
	rules    policy.Rules
	close    func() error
}

// placeOf opens the place of a command.
func (env *environment) placeOf(ctx context.Context, a machine.RunCommand) (p place, err error) {
	if !a.Worktree {
		return place{commands: env.Commands, rules: env.Rules, close: func() error { return nil }}, nil
	}
	dir, err := env.makeTree(ctx, a.Step)
	if err == nil {
		p.commands, p.rules, p.close, err = env.Worktrees.Commands(dir)
	}
	return p, err
}
