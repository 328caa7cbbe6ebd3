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
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/worktree"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/fs"
	"github.com/pawlrun/pawl/tool/shell"
)

// ErrLoopHeld is returned for a refinement loop in a workspace where another one is at
// work.
var ErrLoopHeld = errors.New("launch: another refinement loop is at work in this workspace")

// forLoop adds to an environment what the run of a refinement loop needs: a way to see
// whether its iterations change anything and, for one that nobody else started, the
// workspace for itself.
func (o Options) forLoop(env *engine.Env, source string) error {
	closes := []func() error{env.Close}
	if env.Close == nil {
		closes = nil
	}
	if !o.started {
		h, err := holdWorkspace(o.Workspace, source)
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
	}
	env.Close = func() (err error) {
		for _, each := range closes {
			err = errors.Join(err, each())
		}
		return err
	}
	return err
}

// writtenByPawl returns what reports whether a file of the workspace is one that Pawl
// writes while a run is at work: its journal, its state, and the files that it prints to.
// None of them is progress of the run.
func (o Options) writtenByPawl() func(path string, info os.FileInfo) bool {
	journal, _ := o.journalInside()
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
	return func(path string, info os.FileInfo) bool {
		switch rest, ok := strings.CutPrefix(path, journal); {
		case journal != "" && ok && slices.Contains([]string{"", "-wal", "-shm"}, rest), strings.HasPrefix(path, state+"/"):
			return true
		}
		return slices.ContainsFunc(printed, func(other os.FileInfo) bool { return os.SameFile(info, other) })
	}
}

// onlyAnswers notes of a refinement loop whether its agent can change no file.
func (o Options) onlyAnswers(p *plan.Plan, root *spec.Agent) error {
	l := p.Steps[0].Loop
	if l.StuckAfter == 0 {
		return nil
	}
	for _, t := range root.Offers() {
		if t.Name != spec.LoopBody {
			continue
		}
		source, err := t.Source(root.Dir)
		if err != nil {
			return fmt.Errorf("launch: %w", err)
		}
		writes, err := o.writes(source, map[string]bool{})
		if err != nil {
			return err
		}
		l.OnlyAnswers = !writes
	}
	return nil
}

// treeAtStart is what the workspace of a loop holds before its first iteration, empty
// where that cannot be said.
func treeAtStart(env engine.Env) string {
	if env.Tree == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	state, err := env.Tree(ctx)
	if err != nil {
		return ""
	}
	return state
}

// hold is a workspace that one loop has for itself, by a lock on its directory that ends
// with the process.
type hold struct {
	dir *os.File
	// file says what holds the workspace, beside Pawl's other state because a directory
	// has no place for it; text is what it says without the run.
	file, text string
}

// holdWorkspace takes a workspace for one loop. Without the file only the fact is known to
// others.
func holdWorkspace(workspace, source string) (*hold, error) {
	dir, err := os.Open(workspace)
	if err != nil {
		return nil, fmt.Errorf("launch: the run's workspace: %w", err)
	}
	h := &hold{dir: dir, file: holderFile(workspace)}
	switch err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err := fmt.Errorf("%w (%s); wait for it or stop it, or give this one a workspace of its own with --workspace", ErrLoopHeld, holder(h.file))
		return nil, errors.Join(err, dir.Close())
	case errors.Is(err, errors.ErrUnsupported): // some network file systems: there is no lock to be had
		h.file = ""
		return h, nil
	case err != nil:
		return nil, errors.Join(fmt.Errorf("launch: lock %s: %w", workspace, err), dir.Close())
	}
	h.text = fmt.Sprintf("process %d, %s, since %s", os.Getpid(), source, time.Now().UTC().Format(time.DateTime))
	h.write(h.text)
	return h, nil
}

// name adds the run to what the file says.
func (h *hold) name(run string) { h.write("run " + run + ", " + h.text) }

func (h *hold) write(text string) {
	if h.file == "" {
		return
	}
	_ = os.Remove(h.file) // what an earlier holder wrote is not true any more
	if os.MkdirAll(filepath.Dir(h.file), 0o700) == nil {
		_ = os.WriteFile(h.file, []byte(text), 0o600)
	}
}

// release gives the workspace back, the file first: behind the lock it is another's.
func (h *hold) release() error {
	if h.file != "" {
		_ = os.Remove(h.file)
	}
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

func holder(file string) string {
	text, err := os.ReadFile(file)
	if err != nil || len(text) == 0 {
		return "another process"
	}
	return string(text)
}

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

const (
	// maxNestedEntries bounds the search for nested repositories, which is made once
	// when a run begins.
	maxNestedEntries = 100_000
	// maxNested is how many of them are protected: each costs every command two
	// mounts, and with some thousands of those none could be started.
	maxNested = 100
)

// nested are the .git of the repositories within a workspace when a run begins.
// One that the run itself makes later is its own to work in.
type nested struct {
	patterns []policy.Pattern
	// missed says that there may be more: the workspace is too large to look through
	// whole, or has too many.
	missed bool
}

// nestedFor are those of an agent's workspace. One whose tools only read, and ask
// before nothing that they read, changes none: a large workspace, or one on a slow
// disk, would hold its starts up for nothing.
func nestedFor(a *spec.Agent, workspace string, builtin []tool.Tool) nested {
	asks := slices.Contains(slices.Collect(maps.Values(a.Tools.Approvals)), "protected_paths")
	writes := slices.ContainsFunc(builtin, func(t tool.Tool) bool { return !t.ReadOnly && allowed(a, t.Name) })
	if !asks && !writes {
		return nested{}
	}
	return nestedIn(workspace)
}

// nestedIn looks through a workspace, what lies near its top first.
func nestedIn(workspace string) nested {
	var found nested
	held := policy.NewGuard(".git")
	left := maxNestedEntries
	for dirs := []string{"."}; len(dirs) > 0 && !found.missed; dirs = dirs[1:] {
		entries := listed(filepath.Join(workspace, dirs[0]), left+1)
		if left -= len(entries); left < 0 {
			found.missed = true
			continue
		}
		for _, e := range entries {
			name := path.Join(dirs[0], e.Name())
			switch git := held.Protects(e.Name()); {
			case dirs[0] == "." && e.Name() == ".pawl": // is protected whole
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

// listed are so many entries of a directory at most, by name: one may hold millions.
// Of what this process cannot read there are none, because its commands cannot
// read it either.
func listed(dir string, most int) []os.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(most)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// unsearched warns of a workspace in which repositories may have been missed.
func (n nested) unsearched(tools *tool.Set) []string {
	if !runsPrograms(tools) || !n.missed {
		return nil
	}
	return []string{fmt.Sprintf("the workspace has more than %d repositories within it, or is too large to be looked through for them, "+
		"so commands may change the .git of some; name those directories in tools.protected_paths", maxNested)}
}
