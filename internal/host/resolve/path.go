// Package resolve establishes the facts about a call that policy judges: the canonical
// name of every file, the hosts, and the simple commands of a command line. It reads
// the file system and changes nothing.
package resolve

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/pawlrun/pawl/event"
)

// Workspace is the directory that the paths of a run's calls are resolved
// against. It is safe for concurrent use.
type Workspace struct {
	// real is the directory with all symbolic links resolved.
	real string
	// search are the directories in which commands find their programs.
	search []string
	// confined reports that command lines run in a sandbox.
	confined bool
	// gitLooks reports that no git setting there comes from the workspace.
	gitLooks bool
}

// At returns the workspace in an existing directory.
func At(dir string) (Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Workspace{}, fmt.Errorf("resolve: workspace %s: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return Workspace{}, fmt.Errorf("resolve: workspace %s: %w", dir, err)
	}
	return Workspace{real: real}, nil
}

// Path returns the file that a path leads to when it is opened in the workspace. It
// resolves symbolic links and ".." like the system; parts that do not exist are kept as
// written.
func (w Workspace) Path(p string) event.PathUse { return w.PathFrom(w.real, p) }

// PathFrom is [Workspace.Path] for a path that is opened in another directory, given by
// its absolute name.
func (w Workspace) PathFrom(dir, p string) event.PathUse {
	if !filepath.IsAbs(p) {
		p = dir + "/" + p
	}
	name, ok := follow(p)
	if !ok {
		return event.PathUse{Path: name, Outside: true}
	}
	return w.within(name)
}

// within returns a canonical name in the form of facts.
func (w Workspace) within(name string) event.PathUse {
	rel, err := filepath.Rel(w.real, name)
	if err != nil || !filepath.IsLocal(rel) {
		return event.PathUse{Path: filepath.ToSlash(name), Outside: true}
	}
	return event.PathUse{Path: filepath.ToSlash(rel)}
}

// Names returns the names that lead to a file, which is given by an absolute path: its
// canonical name, after those of the symbolic links on the path. Changing one of them
// changes which file the path leads to.
func (w Workspace) Names(p string) []event.PathUse {
	var names []event.PathUse
	own, _ := visit(p, func(name string) {
		if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink != 0 {
			names = append(names, w.within(name))
		}
	})
	return append(names, w.within(own))
}

// Aliases returns the names of the symbolic links in the workspace on the way from a
// path to its file, without the file's canonical name.
func (w Workspace) Aliases(p string) []event.PathUse { return w.aliasesFrom(w.real, p) }

func (w Workspace) aliasesFrom(dir, p string) []event.PathUse {
	var names []string
	own, found := walk(absolute(dir, p), func(name string, rest []string) {
		if info, err := os.Lstat(name); err == nil && info.Mode()&os.ModeSymlink != 0 {
			names = append(names, path.Join(name, path.Join(rest...)))
		}
	})
	var aliases []event.PathUse
	for _, name := range names {
		alias := w.within(name)
		alias.Alias = true
		if alias.Outside || slices.Contains(aliases, alias) {
			continue
		}
		// A ".." after a link goes up from the link's target, which a name without ".."
		// cannot express.
		if leads, _ := follow(name); !found || leads == own {
			aliases = append(aliases, alias)
		}
	}
	return aliases
}

// link returns the name of a symbolic link itself, because some commands remove or
// replace a link and others write through it.
func (w Workspace) link(abs string) (event.PathUse, bool) {
	abs = strings.TrimRight(abs, "/")
	if info, err := os.Lstat(abs); err != nil || info.Mode()&os.ModeSymlink == 0 {
		return event.PathUse{}, false
	}
	dir, name, _ := cutLast(abs, "/")
	at, ok := follow(dir)
	if !ok {
		return event.PathUse{}, false
	}
	return w.within(path.Join(at, name)), true
}

// maxLinks bounds the symbolic links on one path, maxSteps its parts after following
// all of them, and maxName the bytes of a name.
const (
	maxLinks = 40
	maxSteps = 4096
	maxName  = 255
)

// follow resolves an absolute path from the root of the file system. It returns false
// for a path that cannot be resolved.
func follow(abs string) (name string, ok bool) { return walk(abs, func(string, []string) {}) }

// visit is [follow] with a call for every name on the way, including links.
func visit(abs string, come func(name string)) (name string, ok bool) {
	return walk(abs, func(name string, _ []string) { come(name) })
}

// walk is [visit] with the parts that follow each name.
func walk(abs string, come func(name string, rest []string)) (name string, ok bool) {
	done, steps, links := "/", strings.Split(abs, "/"), 0
	for taken := 0; len(steps) > 0; taken++ {
		step := steps[0]
		steps = steps[1:]
		if step == "" || step == "." {
			continue
		}
		if taken > maxSteps || strings.ContainsRune(step, 0) {
			return path.Clean(abs), false
		}
		next := path.Join(done, step)
		if step == ".." {
			done = next
			continue
		}
		come(next, steps)
		info, err := os.Lstat(next)
		if errors.Is(err, syscall.ENAMETOOLONG) && len(step) <= maxName {
			return next, false // a later access may find a link there
		}
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			done = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return next, false
		}
		if path.IsAbs(target) {
			done = "/"
		}
		steps = append(strings.Split(target, "/"), steps...)
	}
	return done, true
}

// pattern is a regular expression that is compiled on first use. There are dozens of
// them, and most processes read no command line, including those that supervise
// commands in a sandbox.
type pattern func() *regexp.Regexp

func newPattern(expr string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// MatchString reports whether a text matches.
func (p pattern) MatchString(s string) bool { return p().MatchString(s) }

// FindStringSubmatch returns the match and its groups.
func (p pattern) FindStringSubmatch(s string) []string { return p().FindStringSubmatch(s) }

// ofProcess reports whether a path leads through a process's open files or directories.
// Such a path differs for each process, so its target for the command is unknown here.
func ofProcess(abs string) bool {
	through := false
	visit(abs, func(name string) {
		parts := strings.Split(name, "/")
		through = through || len(parts) > 3 && parts[1] == "proc" && strings.Contains(" cwd root exe fd map_files task ", " "+parts[3]+" ")
	})
	return through && abs != "/dev/stdin"
}
