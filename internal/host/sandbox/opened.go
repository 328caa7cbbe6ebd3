package sandbox

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Grant is a path that one command may also write because a person allowed it.
type Grant struct {
	Path string
	// Tree says that the decision was about everything below the path, too.
	Tree bool
	// Repository says that the path is a directory of git's: what decides which programs
	// git runs stays closed in it, unless a grant names that.
	Repository bool
}

// granted is what a command with some grants may write besides.
func (b *Box) granted(grants []Grant) []Grant { return slices.Concat(b.policy.Open, grants) }

// decisive is what in a directory of git's decides which programs git runs: settings,
// hooks, and where both are looked for instead. It is so for the repository, for its
// worktrees and for its submodules.
type decisive struct{}

var decisiveNames = []string{"config", "config.worktree", "hooks", "commondir"}

// kept are the directories of a repository in which any name may stand for content.
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

// maxBeside is how many entries a directory may have that is open for one of them.
const maxBeside = 500

// allowAll adds what was decided for one command: repositories first, because other
// decisions may be about what stays closed in them.
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

// allowRepository opens a directory of git's, but for what is decisive in it. One that
// is open anyway, because the run made it, is left as it is.
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
	if v.guarded(path) { // it lies in another repository, as a submodule's does
		v.grant, v.shut = append(v.grant, path), append(v.shut, closed...)
		return nil
	}
	v.protect = append(v.protect, closed...)
	if !v.writable(path) {
		v.write = append(v.write, path)
	}
	return nil
}

// held reports whether a path is read-only although what it lies in may be written.
func (v *view) held(path string) bool {
	under := func(dirs []string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return inside(path, dir) })
	}
	return under(v.shut) || v.guarded(path) && !under(v.grant)
}

func (v *view) writable(path string) bool {
	return slices.ContainsFunc(v.write, func(dir string) bool { return inside(path, dir) })
}

// allow adds one decision. Where the path does not exist yet, the directory may be
// written in which it will be made. A path that leads elsewhere now, through a link, is
// not the one that was decided about.
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

// openFor opens a directory for those of its entries that grants name: what is mounted
// itself can neither be replaced nor removed, as most programs do with what they write.
// The others are shut. It is false where one of them cannot be.
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

// above is the nearest directory above a path that exists, false where its name leads
// elsewhere.
func above(path string) (dir string, ok bool) {
	for dir = filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil || dir == "/" {
			break
		}
	}
	real, ok := resolved(dir)
	return dir, ok && real == dir
}

// isRepository reports whether a directory is one of git's.
func isRepository(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "HEAD"))
	return err == nil && len(existingAt([]string{filepath.Join(dir, "objects"), filepath.Join(dir, "commondir")})) > 0
}

// existingAt are those of some paths where something is.
func existingAt(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil
	})
}

// inRepository reports whether a path is in a directory of git's that is open.
func (v *view) inRepository(path string) bool {
	return slices.ContainsFunc(v.repositories, func(dir string) bool { return inside(path, dir) })
}

// unheld are the places below a directory where something may be made although it may
// not be there: see absent and dirs.
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

// steady are the directories above what is shut in one that is granted: one that was
// moved would take it along.
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
