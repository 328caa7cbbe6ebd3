package sandbox

import (
	"path/filepath"
	"slices"
)

// Closure is why a path is closed to the commands of a box.
type Closure string

// The reasons.
const (
	// ClosedRepository: it is of a git repository. ClosedSettings: it decides which
	// programs git runs there.
	ClosedRepository Closure = "repository"
	ClosedSettings   Closure = "settings"
	// ClosedProtected: it is protected by its owner.
	ClosedProtected Closure = "protected"
	// ClosedReadOnly: nothing of the workspace may be written.
	ClosedReadOnly Closure = "read-only"
	// ClosedOutside: it is outside the workspace.
	ClosedOutside Closure = "outside"
	// ClosedHidden: commands cannot read it either.
	ClosedHidden Closure = "hidden"
)

// Closed says why an absolute path may be closed to commands; [Box.MayWrite] says
// whether it is to one.
func (b *Box) Closed(path string) Closure {
	p := b.policy
	path = ownName(path)
	switch dir, of := repositoryOf(path); {
	case slices.ContainsFunc(existing(p.Hidden), func(hidden string) bool { return inside(path, hidden) }):
		return ClosedHidden
	case p.Filesystem == FilesystemReadOnly && inside(path, p.Workspace):
		return ClosedReadOnly
	case dir != "" && (decisive{}).Protects(of):
		return ClosedSettings
	case dir != "" || filepath.Join(p.Workspace, ".git") == path:
		return ClosedRepository
	case inside(path, p.Workspace):
		return ClosedProtected
	}
	return ClosedOutside
}

// MayRead reports whether commands can read a file that exists.
func (b *Box) MayRead(path string) bool {
	v, err := b.view(nil)
	if err != nil {
		return true
	}
	path = ownName(path)
	under := func(dirs []string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return inside(path, dir) })
	}
	return !under(v.hide) && (!under(v.hidden) || under(v.show) || inside(path, v.workspace) || under(v.grant))
}

// ownName is the one name of a path that may not be there yet.
func ownName(path string) string {
	if real, ok := resolved(path); ok {
		return real
	}
	dir, rest := filepath.Split(filepath.Clean(path))
	if dir == path || rest == "" {
		return path
	}
	return filepath.Join(ownName(filepath.Clean(dir)), rest)
}

// repositoryOf is the directory of git's that a path is in, and the path from there;
// empty where it is in none. One in another, as a submodule's is, is part of that.
func repositoryOf(path string) (dir, of string) {
	for at := path; at != "/" && at != "."; at = filepath.Dir(at) {
		if isRepository(at) {
			dir = at
		}
	}
	if dir != "" {
		of, _ = filepath.Rel(dir, path)
	}
	return dir, filepath.ToSlash(of)
}
