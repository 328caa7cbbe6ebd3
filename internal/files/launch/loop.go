package launch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/worktree"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/fs"
	"github.com/pawlrun/pawl/tool/shell"
)

// ErrLoopHeld is returned for a refinement loop whose workspace is in use by
// another loop.
var ErrLoopHeld = errors.New("launch: another refinement loop is at work in this workspace")

// forLoop adds what a refinement loop needs to an environment: a way to detect
// whether iterations change anything and, for a root run, exclusive use of the
// workspace.
func (o Options) forLoop(env *perform.Env, source string) error {
	closes := []func() error{env.Close}
	if env.Close == nil {
		closes = nil
	}
	if !o.started {
		h, err := lockWorkspace(o.Workspace, source)
		if err != nil {
			return err
		}
		env.Began, closes = h.name, append(closes, h.release)
	}
	ws, err := fs.Open(o.Workspace, fs.Options{Own: o.writtenByPawl()})
	if err != nil {
		err = fmt.Errorf("launch: %w", err)
	} else {
		env.Tree, closes = ws.State, append(closes, ws.Close)
		o.keepTrees(env)
	}
	env.Close = func() (err error) {
		for _, each := range closes {
			err = errors.Join(err, each())
		}
		return err
	}
	return err
}

// writtenByPawl returns a function that reports whether Pawl itself writes a
// workspace file during a run: its journal, its state, or a file that it prints to.
// Changes to them are not progress of the run.
func (o Options) writtenByPawl() func(path string, info os.FileInfo) bool {
	journal, _ := o.journalInside()
	logs, ending := "", ""
	if o.ServerLog != nil {
		dir, name := filepath.Split(o.ServerLog(""))
		if within, ok := inside(o.Workspace, real(dir)); ok {
			logs, ending = within, name
		}
	}
	state := ""
	if dir, err := StateDir(); err == nil {
		state, _ = inside(o.Workspace, real(dir))
	}
	var printed []os.FileInfo
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			printed = append(printed, info)
		}
	}
	return func(name string, info os.FileInfo) bool {
		switch rest, ok := strings.CutPrefix(name, journal); {
		case journal != "" && ok && slices.Contains([]string{"", "-wal", "-shm"}, rest), strings.HasPrefix(name, state+"/"),
			logs != "" && path.Dir(name) == logs && strings.HasSuffix(name, ending):
			return true
		}
		return slices.ContainsFunc(printed, func(other os.FileInfo) bool { return os.SameFile(info, other) })
	}
}

// onlyAnswers records whether the agent of a refinement loop can change files.
func (o Options) onlyAnswers(p *plan.Plan, root *spec.Agent) error {
	l := p.Steps[0].Loop
	if l.StuckAfter == 0 {
		return nil
	}
	for _, t := range root.Offers() {
		if t.Name != spec.LoopBody {
			continue
		}
		writes, err := o.writes(t, root.Dir)
		if err != nil {
			return err
		}
		l.OnlyAnswers = !writes
	}
	return nil
}

// treeAtStart returns the state of a loop's workspace before the first iteration,
// or "" if it is unknown.
func treeAtStart(env perform.Env) string {
	if env.Tree == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	state, _ := env.Tree(ctx)
	return state
}

// workspaceLock gives one loop exclusive use of a workspace. It locks the
// directory, so the lock ends with the process.
type workspaceLock struct {
	dir *os.File
	// file describes the holder of the workspace. It is among Pawl's other state
	// because a directory lock cannot carry text; text is its content without the
	// run.
	file, text string
}

// lockWorkspace locks a workspace for one loop. A missing file only means that
// others cannot see which loop holds the lock.
func lockWorkspace(workspace, source string) (*workspaceLock, error) {
	dir, err := os.Open(workspace)
	if err != nil {
		return nil, fmt.Errorf("launch: the run's workspace: %w", err)
	}
	h := &workspaceLock{dir: dir, file: holderFile(workspace)}
	lock := func() error { return syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	err = lock()
	// A program that this process starts has its locks until it replaces the fork: a
	// lock without a named holder was released, and is free soon.
	for wait := time.Millisecond; errors.Is(err, syscall.EWOULDBLOCK) && holderOf(h.file) == unnamed && wait < 500*time.Millisecond; wait *= 2 {
		time.Sleep(wait)
		err = lock()
	}
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err := fmt.Errorf("%w (%s); wait for it or stop it, or give this one a workspace of its own with --workspace", ErrLoopHeld, holderOf(h.file))
		return nil, errors.Join(err, dir.Close())
	case errors.Is(err, errors.ErrUnsupported): // some network file systems have no locks
		h.file = ""
		return h, nil
	case err != nil:
		return nil, errors.Join(fmt.Errorf("launch: lock %s: %w", workspace, err), dir.Close())
	}
	h.text = fmt.Sprintf("process %d, %s, since %s", os.Getpid(), source, time.Now().UTC().Format(time.DateTime))
	h.write(h.text)
	return h, nil
}

// name adds the run to the file.
func (h *workspaceLock) name(run string) { h.write("run " + run + ", " + h.text) }

func (h *workspaceLock) write(text string) {
	if h.file == "" {
		return
	}
	_ = os.Remove(h.file) // the file of an earlier holder is stale
	if os.MkdirAll(filepath.Dir(h.file), 0o700) == nil {
		_ = os.WriteFile(h.file, []byte(text), 0o600)
	}
}

// release unlocks the workspace. It removes the file first, because after the
// unlock the file may be another loop's.
func (h *workspaceLock) release() error {
	_ = os.Remove(h.file)
	return h.dir.Close()
}

func holderFile(workspace string) string {
	state, err := StateDir()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(state, "loops", fmt.Sprintf("%x", sum[:8]))
}

// unnamed is the holder of a lock without a file.
const unnamed = "another process"

func holderOf(file string) string {
	text, err := os.ReadFile(file)
	if err != nil || len(text) == 0 {
		return unnamed
	}
	return string(text)
}

// worktrees returns the worktrees of the workspace's repository.
func (o Options) worktrees() worktree.Workspace {
	return worktree.Workspace{Dir: spec.Absolute(o.Workspace), Env: shell.Environment(os.Environ())}
}

// stepWorktrees gives the steps of a workflow worktrees. Commands run in them under
// the workflow's permissions, in no weaker sandbox than tier.
type stepWorktrees struct {
	o    Options
	root *spec.Agent
	tier string
}

var _ perform.Worktrees = stepWorktrees{}

// Make implements [perform.Worktrees].
func (a stepWorktrees) Make(ctx context.Context, name string) (dir string, err error) {
	t, err := a.o.worktrees().Make(ctx, name)
	return t.Dir, err
}

// Find implements [perform.Worktrees].
func (a stepWorktrees) Find(ctx context.Context, name string) (*event.Worktree, error) {
	t, err := a.o.worktrees().Find(ctx, name)
	if t == nil || err != nil {
		return nil, err
	}
	return &t.Worktree, nil
}

// Commands implements [perform.Worktrees].
func (a stepWorktrees) Commands(dir string) (tool.Commands, policy.Rules, func() error, error) {
	o, as := a.o, runner(a.root)
	o.Workspace, o.protected = dir, nil
	o.nested = nestedFor(as, dir, o.tree.builtin())
	var env perform.Env
	err := o.confineCommands(&env, as, o.permissions(as), a.tier)
	return env.Commands, env.Rules, env.Close, err
}

const (
	// maxNestedEntries bounds the search for nested repositories, which runs once
	// when a run starts.
	maxNestedEntries = 100_000
	// maxNested bounds the protected repositories: each costs every command two
	// mounts, and with some thousands no command could start.
	maxNested = 100
)

// nested holds the .git directories of the repositories in a workspace when a run
// begins. The run may change repositories that it creates itself.
type nested struct {
	patterns []policy.Pattern
	// missed reports that there may be more: the workspace is too large to search,
	// or contains too many.
	missed bool
}

// nestedFor returns the nested repositories of an agent's workspace. An agent whose
// tools only read, without approvals for protected paths, cannot change any, and
// searching a large workspace or a slow disk would delay its start.
func nestedFor(a *spec.Agent, workspace string, builtin []tool.Tool) nested {
	asks := slices.Contains(slices.Collect(maps.Values(a.Tools.Approvals)), "protected_paths")
	writes := slices.ContainsFunc(builtin, func(t tool.Tool) bool { return !t.ReadOnly && allowed(a, t.Name) })
	if !asks && !writes {
		return nested{}
	}
	return nestedIn(workspace)
}

// nestedIn searches a workspace breadth first.
func nestedIn(workspace string) nested {
	var found nested
	held := policy.NewGuard(".git")
	left := maxNestedEntries
	for dirs := []string{"."}; len(dirs) > 0 && !found.missed; dirs = dirs[1:] {
		entries := readEntries(filepath.Join(workspace, dirs[0]), left+1)
		if left -= len(entries); left < 0 {
			found.missed = true
			continue
		}
		for _, e := range entries {
			name := path.Join(dirs[0], e.Name())
			switch git := held.Protects(e.Name()); {
			case dirs[0] == "." && e.Name() == ".pawl": // protected as a whole
			case !git && e.IsDir():
				dirs = append(dirs, name)
			case !git, dirs[0] == ".":
			case len(found.patterns) == maxNested:
				found.missed = true
			default:
				found.patterns = append(found.patterns, literally(name)+"/**")
			}
		}
	}
	found.patterns = append(found.patterns, linkedWithin(workspace, found.patterns)...)
	slices.Sort(found.patterns)
	return found
}

// readEntries returns at most limit entries of a directory, sorted by name; a
// directory may have millions. It returns none if this process cannot read the
// directory, because then commands cannot read it either.
func readEntries(dir string, limit int) []os.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(limit)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// unsearched warns about a workspace in which repositories may have been missed.
func (n nested) unsearched(tools *tool.Set) []string {
	if !runsPrograms(tools) || !n.missed {
		return nil
	}
	return []string{fmt.Sprintf("the workspace has more than %d repositories within it, or is too large to be looked through for them, "+
		"so commands may change the .git of some; name those directories in tools.protected_paths", maxNested)}
}

// TreeAtStart is the name of a loop's tree before its first iteration. After an
// iteration, the name is that in its event.
const TreeAtStart = "start"

// ErrNoTrees is returned for a run whose trees are not kept on this machine.
var ErrNoTrees = errors.New("launch: no trees of the run are kept on this machine: it is no loop, or its workspace is in no git repository")

// treesOf returns the directory of a run's trees: in Pawl's state directory, which
// commands of a run do not see.
func treesOf(run string) (string, error) {
	dir, err := StateDir()
	if err != nil || !filepath.IsLocal(run) {
		return "", errors.Join(err, ErrNoTrees)
	}
	return filepath.Join(dir, "trees", run), nil
}

// RemoveTrees removes the trees of a removed run.
func RemoveTrees(run string) error {
	dir, err := treesOf(run)
	if err != nil {
		return nil // none were kept
	}
	return os.RemoveAll(dir)
}

// keepTrees makes a loop keep the workspace's tree at its start and after each
// iteration.
func (o Options) keepTrees(env *perform.Env) {
	k, began, state := &worktree.Keeper{Workspace: o.worktrees()}, env.Began, env.Tree
	if dir, err := StateDir(); err == nil {
		k.Without = append(k.Without, dir)
	}
	if j := o.Journal; j != "" {
		j = spec.Absolute(j)
		k.Without = append(k.Without, j, j+"-wal", j+"-shm")
	}
	env.Began = func(run string) {
		if began != nil {
			began(run)
		}
		if dir, err := treesOf(run); err == nil {
			k.Begin(dir, TreeAtStart)
		}
	}
	env.Tree = func(ctx context.Context) (string, error) {
		name, err := state(ctx)
		if err == nil {
			k.Add(ctx, name)
		}
		return name, err
	}
}

// DiffTrees returns the difference between two trees of a run as git prints it. The error
// is [ErrNoTrees], or [worktree.ErrNoTree] for an unknown name.
func DiffTrees(ctx context.Context, run string, started event.RunStarted, from, to string) (string, error) {
	dir, err := treesOf(run)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err != nil {
		return "", ErrNoTrees
	}
	kept, err := Options{Flags: Flags{Workspace: started.Workspace}}.worktrees().Keep(ctx, dir)
	if err != nil {
		return "", fmt.Errorf("launch: %w", err)
	}
	return kept.Diff(ctx, from, to)
}
