package resolve

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Searching returns the workspace for command lines with a search path, the value of
// PATH. A program that is found in the workspace may be anything, whatever its name.
func (w Workspace) Searching(searchPath string) Workspace {
	w.search = filepath.SplitList(searchPath)
	return w
}

// own reports whether a directory of the search path is in the workspace, or relative
// to a command's working directory.
func (w Workspace) own(dir string) bool {
	return !filepath.IsAbs(dir) || !w.Path(dir).Outside
}

// shadowed reports whether a program, by the name in a command, is found in the
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

// arms reports whether a command line may create a program where its later commands are
// searched for.
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
