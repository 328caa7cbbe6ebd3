package resolve

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Searching is the workspace for command lines that find their programs by a
// search path, the value of PATH: a program that lies in the workspace is
// whatever was put there, whatever its name.
func (w Workspace) Searching(searchPath string) Workspace {
	w.search = filepath.SplitList(searchPath)
	return w
}

// own reports whether a directory of the search path is one of the workspace,
// or one of wherever a command runs.
func (w Workspace) own(dir string) bool {
	return !filepath.IsAbs(dir) || !w.Path(dir).Outside
}

// shadowed reports whether a program, named as a command names it, is found in the
// workspace before it is found elsewhere.
func (w Workspace) shadowed(name string) bool {
	if strings.Contains(name, "/") {
		return false
	}
	for _, dir := range w.search {
		if !filepath.IsAbs(dir) {
			return true
		}
		if _, err := os.Lstat(path.Join(dir, name)); err == nil {
			return w.own(dir)
		}
	}
	return false
}

// arms reports whether a command line may put a program where later commands of it
// are looked for.
func (w Workspace) arms(p event.PathUse) bool {
	if !p.Write || p.Outside || p.Unknown {
		return false
	}
	for _, dir := range w.search {
		if !w.own(dir) || !filepath.IsAbs(dir) {
			continue
		}
		d, at := w.Path(dir).Path, p.Base()
		if at == d || at == "." || strings.HasPrefix(d, at+"/") || strings.HasPrefix(at, d+"/") {
			return true
		}
	}
	return false
}
