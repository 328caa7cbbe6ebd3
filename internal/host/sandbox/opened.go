package sandbox

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Grant is a path that one command may write because a person allowed it.
type Grant struct {
	Path string
	// Tree reports that the decision also covers everything below the path.
	Tree bool
	// Repository reports that the path is a Git directory: the files in it that decide
	// which programs git runs stay closed, unless another grant names them.
	Repository bool
}

// granted returns the owner's grants and those of a command.
func (b *Box) granted(grants []Grant) []Grant { return slices.Concat(b.policy.Open, grants) }

// decisive is the protection of the files in a Git directory that decide which programs
// git runs: settings, hooks, and files that redirect either, in the repository and in
// its worktrees and submodules.
type decisive struct{}

var decisiveNames = []string{"config", "config.worktree", "hooks", "commondir"}

// kept are the directories of a repository in which any name may be content.
var kept = []string{"objects", "refs", "logs", "info", "lfs", "rr-cache"}

// Protects implements [Protection].
func (decisive) Protects(name string) bool {
	parts := strings.Split(name, "/")
	switch parts[0] {
	case "modules":
		for i, part := range parts[1:] {
			if slices.Contains(kept, part) {
				return false
			}
			if i > 0 && slices.Contains(decisiveNames, part) {
				return true
			}
		}
		return false
	case "worktrees":
		return len(parts) > 2 && slices.Contains(decisiveNames, parts[2])
	}
	return slices.Contains(decisiveNames, parts[0])
}

// Below implements [Protection].
func (decisive) Below(dir string) bool {
	parts := strings.Split(dir, "/")
	return parts[0] == "worktrees" && len(parts) < 3 || parts[0] == "modules" && !slices.Contains(kept, path.Base(dir))
}

// Named implements [Protection].
func (decisive) Named() []string { return decisiveNames }

// maxBeside bounds the entries of a directory in which only some entries are open.
const maxBeside = 500

// allowAll adds the grants of one command: repositories first, because other grants may
// concern paths that stay closed in them.
func (v *view) allowAll(grants []Grant) error {
	for _, g := range grants {
		if g.Repository {
			if err := v.allowRepository(g); err != nil {
				return err
			}
		}
	}
	for _, g := range grants {
		v.allow(g, grants)
	}
	v.shut = outermost(v.shut)
	return nil
}

// allowRepository opens a Git directory except its decisive files. It does not change
// one that is already open because the run created it.
func (v *view) allowRepository(g Grant) error {
	path, there := resolved(g.Path)
	if !there || path != g.Path || !v.guarded(path) && v.writable(path) {
		return nil
	}
	closed, _, err := protected(path, decisive{})
	if err != nil {
		return err
	}
	v.protect = slices.DeleteFunc(v.protect, func(protected string) bool { return inside(protected, path) })
	v.absent = append(v.absent, missing(path, decisive{})...)
	v.repositories = append(v.repositories, path)
	if v.guarded(path) { // it is within another repository, like a submodule's
		v.grant, v.shut = append(v.grant, path), append(v.shut, closed...)
		return nil
	}
	v.protect = append(v.protect, closed...)
	if !v.writable(path) {
		v.write = append(v.write, path)
	}
	return nil
}

// held reports whether a path is read-only although its parent may be written.
func (v *view) held(path string) bool {
	under := func(dirs []string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return inside(path, dir) })
	}
	return under(v.shut) || v.guarded(path) && !under(v.grant)
}

func (v *view) writable(path string) bool {
	return slices.ContainsFunc(v.write, func(dir string) bool { return inside(path, dir) })
}

// allow adds one grant. If the path does not exist, the directory in which it will be
// created becomes writable. A path that now leads elsewhere, through a link, is not the
// one that was allowed.
func (v *view) allow(g Grant, all []Grant) {
	tree := g.Tree && !g.Repository
	v.links = slices.DeleteFunc(v.links, func(link string) bool { return link == g.Path || g.Tree && inside(link, g.Path) })
	path, there := resolved(g.Path)
	if there && path != g.Path {
		return
	}
	v.absent = slices.DeleteFunc(v.absent, func(absent string) bool {
		return inside(g.Path, absent) || (tree || !there) && g.Tree && inside(absent, g.Path)
	})
	if there && g.Repository {
		return
	}
	dir := filepath.Dir(path)
	held := v.held(g.Path)
	opens := v.held(dir) || isRepository(dir) && !v.inRepository(dir)
	v.shut = slices.DeleteFunc(v.shut, func(shut string) bool { return inside(g.Path, shut) || tree && inside(shut, g.Path) })
	if tree || slices.Contains(v.protect, path) {
		v.protect = slices.DeleteFunc(v.protect, func(protected string) bool { return inside(protected, g.Path) })
	}
	if !there {
		if path, there = above(g.Path); !there {
			return
		}
		if held || v.held(path) {
			v.openFor(path, all)
		}
	} else if opens && v.openFor(dir, all) {
		path = dir
	}
	if !v.writable(path) || v.held(path) {
		v.grant = append(v.grant, path)
	}
}

// openFor opens a directory for the entries that grants name and closes its other
// entries, because a mounted entry itself cannot be replaced or removed, as most
// programs do to write a file. It returns false if an entry cannot be closed.
func (v *view) openFor(dir string, grants []Grant) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > maxBeside {
		return false
	}
	var shut, names []string
	for _, e := range entries {
		names = append(names, e.Name())
		entry := filepath.Join(dir, e.Name())
		switch {
		case slices.ContainsFunc(grants, func(g Grant) bool { return inside(g.Path, entry) || g.Tree && !g.Repository && inside(entry, g.Path) }):
		case e.Type()&os.ModeSymlink != 0:
			return false
		default:
			shut = append(shut, entry)
		}
	}
	if v.dirs == nil {
		v.dirs = map[string][]string{}
	}
	v.shut, v.dirs[dir] = append(v.shut, shut...), names
	return true
}

// above returns the nearest existing directory above a path, and false if the path
// leads elsewhere.
func above(path string) (dir string, ok bool) {
	for dir = filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil || dir == "/" {
			break
		}
	}
	real, ok := resolved(dir)
	return dir, ok && real == dir
}

// isRepository reports whether a directory is a Git directory.
func isRepository(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "HEAD"))
	return err == nil && len(existingAt([]string{filepath.Join(dir, "objects"), filepath.Join(dir, "commondir")})) > 0
}

// existingAt returns the paths that exist.
func existingAt(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil
	})
}

// inRepository reports whether a path is in an open Git directory.
func (v *view) inRepository(path string) bool {
	return slices.ContainsFunc(v.repositories, func(dir string) bool { return inside(path, dir) })
}

// unheld returns the places below a directory where commands can create files although
// they must not: see absent and dirs.
func (v *view) unheld(base string) (absent []string, dirs map[string][]string) {
	own := func(path string) bool { return slices.Contains(v.repositories, base) || !v.inRepository(path) }
	for _, path := range v.absent {
		if inside(path, base) && own(path) {
			absent = append(absent, path)
		}
	}
	dirs = map[string][]string{}
	for dir, names := range v.dirs {
		if inside(dir, base) && own(dir) {
			dirs[dir] = names
		}
	}
	return absent, dirs
}

// steady returns the directories above the closed paths in a granted one, because
// moving such a directory would move the closed path.
func (v *view) steady() []string {
	var dirs []string
	for _, path := range v.shut {
		for dir := filepath.Dir(path); slices.ContainsFunc(v.grant, func(g string) bool { return dir != g && inside(dir, g) }); dir = filepath.Dir(dir) {
			if !slices.ContainsFunc(v.shut, func(shut string) bool { return inside(dir, shut) }) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}
