package launch

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/resolve"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/host/worktree"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
)

// behindLinks returns patterns for the targets of names that are symbolic links,
// and for the names in between: the same files have names there that the patterns
// do not cover.
func behindLinks(workspace string, patterns ...policy.Pattern) []policy.Pattern {
	ws, err := resolve.At(workspace)
	if err != nil {
		return nil
	}
	var behind []policy.Pattern
	for _, p := range patterns {
		name, tree, ok := spelledOut(p)
		if !ok {
			continue
		}
		for _, use := range append(ws.Aliases(name), ws.Path(name)) {
			if use.Path == "." || p.Guards(use.Path) {
				continue
			}
			found := literally(use.Path)
			if tree {
				found += "/**"
			}
			behind = append(behind, found)
		}
	}
	return behind
}

// inWorkspace converts patterns of absolute paths to paths relative to the
// workspace, which the facts of a call use.
func inWorkspace(workspace string, patterns ...policy.Pattern) []policy.Pattern {
	var within []policy.Pattern
	for _, p := range patterns {
		for _, dir := range []string{spec.Absolute(workspace), real(workspace)} {
			for _, own := range p.Within(dir) {
				if !slices.Contains(within, own) {
					within = append(within, own)
				}
			}
		}
	}
	return within
}

// linkedWithin is [behindLinks] for names that no file lists. It protects nothing
// outside the workspace, because a write there needs approval anyway.
func linkedWithin(workspace string, patterns []policy.Pattern) []policy.Pattern {
	return slices.DeleteFunc(behindLinks(workspace, patterns...), func(p policy.Pattern) bool { return strings.HasPrefix(string(p), "/") })
}

// onTheWay returns the links on the path to what patterns name: changing such a
// link changes what the name refers to.
func onTheWay(workspace string, patterns ...policy.Pattern) []policy.Pattern {
	ws, err := resolve.At(workspace)
	if err != nil {
		return nil
	}
	var names filePatterns
	root := real(workspace)
	for _, p := range patterns {
		if name, _, ok := spelledOut(p); ok {
			names.addNames(ws, root+"/"+name)
		}
	}
	return slices.DeleteFunc(names, func(name policy.Pattern) bool {
		return name == "." || slices.ContainsFunc(patterns, func(p policy.Pattern) bool { return p.Guards(string(name)) })
	})
}

// linkWarnings warns about directories in which commands can do less than the owner
// may expect because they contain a protected link.
func (c confinement) linkWarnings(tools *tool.Set) []string {
	if c.box == nil || !runsPrograms(tools) {
		return nil
	}
	links, err := c.box.ProtectedLinks()
	if err != nil || len(links) == 0 {
		return nil // every command reports a broken workspace
	}
	return []string{"in the directory of a symbolic link that is protected, commands can make, rename and remove nothing; such links are " +
		c.named(links) + "; with the file itself in its place they can"}
}

// belowHidden gives the same warning for a workspace that contains a hidden file,
// such as a home directory.
func (c confinement) belowHidden(tools *tool.Set) []string {
	if c.box == nil || !runsPrograms(tools) {
		return nil
	}
	hidden, err := c.box.HiddenWithin()
	if err != nil || len(hidden) == 0 {
		return nil
	}
	return []string{"the workspace has files that commands may not read (" + c.named(hidden) + "), so in this sandbox tier they can list, make, rename and " +
		"remove nothing in the directories above those; name a directory of the project's own with --workspace"}
}

// named describes some paths of the workspace and names a few of them.
func (c confinement) named(paths []string) string {
	const most = 5
	more := ""
	if n := len(paths) - most; n > 0 {
		paths, more = paths[:most], fmt.Sprintf(" and %d more", n)
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = path
		if rel, err := filepath.Rel(c.policy.Workspace, path); err == nil {
			names[i] = rel
		}
	}
	return strings.Join(names, ", ") + more
}

// spelledOut returns the file name or tree that a pattern stands for, and false for
// a pattern with other wildcards.
func spelledOut(p policy.Pattern) (name string, tree, ok bool) {
	name, tree = strings.CutSuffix(string(p), "/**")
	return name, tree, name != "" && !strings.ContainsAny(name, `*?[\`) && !filepath.IsAbs(name)
}

// repositories returns the directories outside the workspace that belong to the
// workspace's repository.
func (o Options) repositories() (outside []string) {
	found, _ := resolve.FindRepository(real(o.Workspace))
	for _, dir := range found.Dirs {
		if _, in := inside(o.Workspace, dir); !in {
			outside = append(outside, dir)
		}
	}
	return outside
}

// repositoryReads returns what git reads outside a workspace that is in a
// subdirectory or a worktree of its repository: the top directory with everything
// below it, unless that contains the user's home directory.
func (o Options) repositoryReads() []string {
	workspace := real(o.Workspace)
	found, ok := resolve.FindRepository(workspace)
	if !ok {
		return nil
	}
	paths := append(o.repositories(), found.Git())
	if home, err := os.UserHomeDir(); found.Top != workspace && (err != nil || !within(real(home), found.Top)) {
		paths = append(paths, found.Top)
	}
	return paths
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// repositoryGrants makes the workspace's repositories readable to every command.
func (o Options) repositoryGrants() []sandbox.Grant {
	open := func(dir string) sandbox.Grant { return sandbox.Grant{Path: dir, Tree: true, Repository: true} }
	workspace := real(o.Workspace)
	found, ok := resolve.FindRepository(workspace)
	if !ok {
		found.Dirs = []string{filepath.Join(workspace, ".git")} // these may be created
	}
	var grants []sandbox.Grant
	for _, dir := range found.Dirs {
		grants = append(grants, open(dir))
	}
	for _, pattern := range o.nested.patterns {
		name, _, ok := spelledOut(pattern)
		if info, err := os.Lstat(filepath.Join(workspace, name)); ok && err == nil && info.IsDir() {
			grants = append(grants, open(filepath.Join(workspace, name)))
		}
	}
	return grants
}

// ownFiles returns patterns for the agent file, the files that it names, and the
// config file, if they are in the workspace. A run keeps their content from its
// start; the next run reads them again.
func (o Options) ownFiles(a *spec.Agent) []policy.Pattern {
	var names filePatterns
	for _, file := range a.Files() {
		names.add(o.Workspace, file)
	}
	o.addScripts(&names, a.Dir, o.modelNames(a)...)
	o.addConfig(&names)
	return names
}

// addScripts adds the scripts of scripted models, resolved from a file's directory.
func (o Options) addScripts(names *filePatterns, dir string, models ...string) {
	resolver := o.resolver(dir)
	for _, model := range models {
		if script, ok := resolver.Script(model); ok {
			names.add(o.Workspace, script)
		}
	}
}

func (o Options) addConfig(names *filePatterns) {
	if o.Config.File != "" {
		names.add(o.Workspace, o.Config.File)
	}
}

// opensConfig reports whether tools of the file may write the config file at its
// current path, under rules that were made when it had another path.
func (o Options) opensConfig(a *spec.Agent, r policy.Rules) bool {
	if !slices.ContainsFunc(BuiltinTools(), func(t tool.Tool) bool { return t.Writing != nil && allowed(a, t.Name) }) {
		return false
	}
	var names filePatterns
	o.addConfig(&names)
	held := protect(r)
	return slices.ContainsFunc(names, func(name policy.Pattern) bool { return !held.Protects(string(name)) })
}

// modelNames returns the models that a run of the file may call. For a resumed run
// the meaning of the file's classes and role is unknown, so it includes all models
// of the config file.
func (o Options) modelNames(a *spec.Agent) []string {
	return slices.Concat([]string{o.Model}, a.Chain(),
		slices.Sorted(maps.Values(o.Config.Classes)), slices.Sorted(maps.Values(o.Config.Roles)))
}

// StateDir returns the directory where Pawl keeps a user's data outside of
// workspaces: $XDG_STATE_HOME/pawl. Sandboxed commands cannot read it.
func StateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pawl"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a place for what Pawl keeps: %w", err)
	}
	return filepath.Join(home, ".local", "state", "pawl"), nil
}

// JournalError is returned for a run whose commands could write its journal: in the
// landlock tier commands may write the whole workspace. It is an [ErrSandbox].
type JournalError struct {
	// Journal is the path of the journal, and Workspace the directory that contains
	// it.
	Journal, Workspace string
}

// Error returns the reason and the remedy.
func (e *JournalError) Error() string {
	return fmt.Sprintf("the journal %s lies in the workspace %s, and in the sandbox tier %s commands may write all of that, "+
		"so that they could approve their own calls; keep the journal outside of it", e.Journal, cmp.Or(e.Workspace, "."), sandbox.Landlock)
}

// Unwrap returns [ErrSandbox].
func (e *JournalError) Unwrap() error { return ErrSandbox }

// checkJournal returns an error if commands in a tier could write the journal.
func (o Options) checkJournal(a *spec.Agent, tier sandbox.Tier) error {
	if tier != sandbox.Landlock || !runsCommands(a) {
		return nil
	}
	if _, in := o.journalInside(); !in {
		return nil
	}
	if state, err := StateDir(); err == nil {
		// It is hidden even if the workspace is the home directory.
		if _, kept := inside(state, real(o.Journal)); kept {
			return nil
		}
	}
	return &JournalError{Journal: o.Journal, Workspace: o.Workspace}
}

// hidden returns the files and directories that commands cannot read. In the
// landlock tier a directory that contains a hidden file could not be listed, so
// nothing in the workspace is hidden there and the journal must be outside.
func (o Options) hidden(tier sandbox.Tier) []string {
	var paths []string
	if tier != sandbox.Landlock {
		paths = append(paths, filepath.Join(o.Workspace, ".pawl"))
		paths = append(paths, beside(real(o.Workspace))...)
	}
	if found, ok := resolve.FindRepository(real(o.Workspace)); ok && found.Top != real(o.Workspace) && worktree.Above(real(o.Workspace)) == "" {
		paths = append(paths, filepath.Join(found.Top, ".pawl"))
	}
	if _, in := o.journalInside(); o.Journal != "" && (tier != sandbox.Landlock || !in) {
		journal := spec.Absolute(o.Journal)
		if _, within := inside(filepath.Dir(journal), real(o.Workspace)); filepath.Base(filepath.Dir(journal)) == ".pawl" && !within {
			paths = append(paths, filepath.Dir(journal))
		}
		paths = append(paths, journal, journal+"-wal", journal+"-shm")
	}
	if dir, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(dir, "pawl"))
	}
	if dir, err := StateDir(); err == nil {
		paths = append(paths, dir)
	}
	return paths
}

// beside returns Pawl's own files beside a workspace that is a worktree, except the
// worktrees.
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

// workers returns the agents that do the work of a file.
func workers(f File, o Options) ([]*spec.Agent, error) {
	uses := map[string]*spec.Agent{}
	switch heading := spec.ParseHeading(f.Text); {
	case WorkflowFiles().Recognises(heading):
		w, err := parseWorkflow(f, o)
		if err != nil {
			return nil, err
		}
		uses = w.Uses
	case GoalFiles().Recognises(heading):
		g, err := parseGoal(f, o)
		if err != nil {
			return nil, err
		}
		uses = g.Uses
	default:
		a, err := parseWorker(f, o)
		if err != nil {
			return nil, err
		}
		uses[""] = a
	}
	var all []*spec.Agent
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		all = append(all, uses[name])
	}
	return all, nil
}
