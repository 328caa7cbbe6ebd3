package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// undo restores what it can; settle checks the result.
func (s *snapshot) undo(tree *os.Root, changed []delta) {
	for _, d := range changed {
		if was, ok := s.before[d.path]; s.restores(d.path) && (!ok || !was.mode.IsDir()) {
			s.clear(tree, d.path)
		}
	}
	for _, d := range changed {
		if was, ok := s.before[d.path]; ok && s.restores(d.path) {
			s.restore(tree, d.path, was)
		}
	}
}

// restores reports whether a path can be restored. Removing a new path needs no kept
// content.
func (s *snapshot) restores(path string) bool {
	r := s.rootOf(path)
	return r == nil || r.kept
}

// clear removes what is at a path.
func (s *snapshot) clear(tree *os.Root, path string) {
	name, err := filepath.Rel(s.workspace, path)
	if err != nil {
		return
	}
	info, err := tree.Lstat(name)
	if err != nil {
		return
	}
	if !(info.Mode().IsRegular() || info.IsDir()) || !s.putAside(path, name, info) {
		_ = tree.RemoveAll(name)
	}
}

// putAside moves a file or a directory to a place where its owner finds it, because
// another program may have changed it while the command ran.
func (s *snapshot) putAside(path, name string, info fs.FileInfo) bool {
	if s.aside == "" {
		cache, err := os.UserCacheDir()
		if err != nil || os.MkdirAll(filepath.Join(cache, "pawl", "undone"), 0o700) != nil {
			return false
		}
		if s.aside, err = os.MkdirTemp(filepath.Join(cache, "pawl", "undone"), time.Now().Format("20060102-150405-*")); err != nil {
			return false
		}
	}
	to := filepath.Join(s.aside, name)
	if os.MkdirAll(filepath.Dir(to), 0o700) != nil {
		return false
	}
	if os.Rename(path, to) == nil {
		return true
	}
	// It is on another file system.
	if info.Mode().IsRegular() && info.Size() <= maxKeptBytes {
		if content, err := os.ReadFile(path); err == nil {
			_ = os.WriteFile(to, content, 0o600)
		}
	}
	return false
}

// restore recreates a removed path.
func (s *snapshot) restore(tree *os.Root, path string, was entry) {
	name, err := filepath.Rel(s.workspace, path)
	if err != nil {
		return
	}
	_ = tree.MkdirAll(filepath.Dir(name), 0o755)
	mode := was.mode &^ fs.ModeType
	switch {
	case was.mode.IsDir():
		if info, err := tree.Lstat(name); err == nil && !info.IsDir() {
			s.clear(tree, path)
		}
		_ = tree.Mkdir(name, 0o700)
		_ = tree.Chmod(name, mode)
	case was.mode&fs.ModeSymlink != 0:
		_ = tree.Symlink(was.link, name)
	case was.kept:
		if tree.WriteFile(name, was.content, 0o600) == nil {
			_ = tree.Chmod(name, mode)
			_ = tree.Chtimes(name, time.Time{}, was.changed)
		}
	}
}

// maxChanges bounds the changes that are listed individually; beyond it, only the
// protected paths that contain them are listed.
const maxChanges = 100

// report marks the changed paths that are still changed. It omits paths below a
// directory that was created or removed.
func (s *snapshot) report(changed, left []delta) []Change {
	var named []string
	whole := "\x00"
	for _, d := range changed {
		if inside(d.path, whole) {
			continue
		}
		if named = append(named, d.path); d.whole {
			whole = d.path
		}
	}
	if len(named) > maxChanges {
		for i, path := range named {
			if r := s.rootOf(path); r != nil {
				named[i] = r.path
			}
		}
		named = slices.Compact(slices.Sorted(slices.Values(named)))
	}
	all := make([]Change, len(named))
	for i, path := range named {
		rel, err := filepath.Rel(s.workspace, path)
		if err != nil {
			rel = path
		}
		name, err := filepath.Rel(s.names, path)
		if err != nil || !filepath.IsLocal(name) {
			name = path
		}
		all[i] = Change{Path: filepath.ToSlash(name), Undone: !slices.ContainsFunc(left, func(l delta) bool { return inside(l.path, path) })}
		if aside := filepath.Join(s.aside, rel); s.aside != "" {
			if _, err := os.Lstat(aside); err == nil {
				all[i].Kept = aside
			}
		}
	}
	return all
}
