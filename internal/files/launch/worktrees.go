package launch

import (
	"context"
	"os"
	"path/filepath"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/worktree"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// worktrees are those of the repository that the workspace is in.
func (o Options) worktrees() worktree.Workspace {
	return worktree.Workspace{Dir: absolute(o.Workspace), Env: shell.Environment(os.Environ())}
}

// apart gives the steps of a workflow worktrees, with its commands in them under its
// permissions, in no weaker sandbox than the tier.
type apart struct {
	o    Options
	root *spec.Agent
	tier string
}

var _ engine.Worktrees = apart{}

// Make implements [engine.Worktrees].
func (a apart) Make(ctx context.Context, name string) (dir string, err error) {
	t, err := a.o.worktrees().Make(ctx, name)
	return t.Dir, err
}

// Find implements [engine.Worktrees].
func (a apart) Find(ctx context.Context, name string) (*event.Worktree, error) {
	t, err := a.o.worktrees().Find(ctx, name)
	if t == nil || err != nil {
		return nil, err
	}
	return &t.Worktree, nil
}

// Commands implements [engine.Worktrees].
func (a apart) Commands(dir string) (tool.Commands, policy.Rules, func() error, error) {
	o, as := a.o, runner(a.root)
	o.Workspace, o.protected = dir, nil
	o.nested = nestedFor(as, dir, o.tree.builtin())
	var env engine.Env
	err := o.confineCommands(&env, as, o.permissions(as), a.tier)
	return env.Commands, env.Rules, env.Close, err
}

// beside are what is Pawl's of the workspace that has a worktree which a run works in,
// but for the worktrees.
func beside(workspace string) []string {
	above := worktree.Above(workspace)
	if above == "" {
		return nil
	}
	entries, _ := os.ReadDir(above)
	var paths []string
	for _, e := range entries {
		path := filepath.Join(above, e.Name())
		if _, way := inside(path, real(workspace)); !way {
			paths = append(paths, path)
		}
	}
	return paths
}
