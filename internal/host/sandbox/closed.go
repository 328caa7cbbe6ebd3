package sandbox

import (
	"path/filepath"
	"slices"
)

// Closure is the reason why a path is closed to the commands of a box.
type Closure string

// The reasons.
const (
	// ClosedRepository: it belongs to a git repository. ClosedSettings: it decides
	// which programs git runs there.
	ClosedRepository Closure = "repository"
	ClosedSettings   Closure = "settings"
	// ClosedProtected: its owner protects it.
	ClosedProtected Closure = "protected"
	// ClosedReadOnly: the whole workspace is read-only.
	ClosedReadOnly Closure = "read-only"
	// ClosedOutside: it is outside the workspace.
	ClosedOutside Closure = "outside"
	// ClosedHidden: commands cannot read it either.
	ClosedHidden Closure = "hidden"
	// ClosedBeside: it does not exist, and its directory has something hidden.
	ClosedBeside Closure = "beside"
)

// Closed returns why an absolute path may be closed to commands; [Box.MayWrite] reports
// whether it is.
func (b *Box) Closed(path string) Closure {
	p := b.policy
	path = ownName(path)
	switch dir, of := repositoryOf(path); {
	case slices.ContainsFunc(existing(p.Hidden), func(hidden string) bool { return inside(path, hidden) }):
		return ClosedHidden
	case b.tier == Landlock && b.besideHidden(path):
		return ClosedBeside
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

// besideHidden reports whether a missing path would be created in a directory above
// something hidden, where landlock grants only the entries (see [around]).
func (b *Box) besideHidden(path string) bool {
	v, err := b.view(nil)
	dir, there := above(path)
	if _, exists := resolved(path); err != nil || exists || !there {
		return false
	}
	return slices.ContainsFunc(v.hide, func(hidden string) bool { return inside(hidden, dir) })
}

// MayRead reports whether commands can read an existing file.
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

// ownName returns the canonical name of a path that may not exist yet.
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

// repositoryOf returns the Git directory that contains a path, and the path relative to
// it; empty if there is none. A nested Git directory, such as a submodule's, belongs to
// the outer one.
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
