package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// maxLinkEntries bounds the search for other names of closed files, which is made once
// for a box. It searches the whole workspace only if a closed file has a name that is
// not closed, which is rare.
const maxLinkEntries = 1_000_000

// links holds the names in a workspace under which commands could reach closed files:
// hard links that existed before. Commands cannot create such names, because no tier
// lets them link closed files, so one search is enough.
type links struct {
	mu            sync.Mutex
	known         bool
	protect, hide []string
}

// find returns the other names of protected and of hidden files.
func (l *links) find(workspace string, protected, hidden []string) (protect, hide []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known {
		return l.protect, l.hide, nil
	}
	if l.protect, err = otherNames(workspace, protected, maxLinkEntries); err != nil {
		return nil, nil, err
	}
	if l.hide, err = otherNames(workspace, hidden, maxLinkEntries); err != nil {
		return nil, nil, err
	}
	l.known = true
	return l.protect, l.hide, nil
}

// fileID identifies a file, whatever its names.
type fileID struct{ device, inode uint64 }

// namesOf returns the identity of a file and its number of names; ok is false for what
// can have only one name.
func namesOf(info fs.FileInfo) (id fileID, names int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || st.Nlink < 2 {
		return fileID{}, 0, false
	}
	return fileID{uint64(st.Dev), st.Ino}, int(st.Nlink), true
}

// otherNames returns the names in a tree of files that are also in closed, which holds
// canonical names of files and directories. It examines at most most entries.
func otherNames(tree string, closed []string, most int) ([]string, error) {
	w := linkWalk{left: most}
	// missing counts the names of each closed file that are not found yet.
	missing, known := map[fileID]int{}, map[string]bool{}
	found := func(path string, id fileID, names int) {
		if known[path] {
			return
		}
		known[path] = true
		if _, ok := missing[id]; !ok {
			missing[id] = names
		}
		if missing[id]--; missing[id] == 0 {
			delete(missing, id)
		}
	}
	for _, path := range closed {
		if err := w.walk(path, found); err != nil {
			return nil, err
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	var others []string
	err := w.walk(tree, func(path string, id fileID, _ int) {
		if _, ok := missing[id]; ok && !known[path] {
			others = append(others, path)
		}
	})
	return others, err
}

// linkWalk visits the files below a path that have several names.
type linkWalk struct{ left int }

func (w *linkWalk) walk(root string, visit func(path string, id fileID, names int)) error {
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("sandbox: look for other names of protected files: %w", err)
		}
		if w.left--; w.left < 0 {
			return fmt.Errorf("sandbox: there are too many files to look through for other names (hard links) of protected ones, such as below %s", root)
		}
		if !e.Type().IsRegular() {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil // the file is gone
		}
		if id, names, ok := namesOf(info); ok {
			visit(path, id, names)
		}
		return nil
	})
}

// OtherNames finds the protected names of files of a workspace in addition to the names
// by which they are used (hard links): writing one writes the other, and reading one
// reads the other. It is valid only for a moment. It searches the protected paths once,
// and only if a file in question has more than one name.
type OtherNames struct {
	workspace string
	protected Protection

	looked bool
	names  map[fileID][]string
	err    error
}

// NewOtherNames returns a search in a workspace. If p is nil, nothing is protected.
func NewOtherNames(workspace string, p Protection) *OtherNames {
	return &OtherNames{workspace: workspace, protected: p}
}

// Of returns the protected names of the file at a path of the workspace or, if below is
// set, of all files below a directory, except names within it. They are relative to the
// workspace and separated by "/".
func (o *OtherNames) Of(path string, below bool) ([]string, error) {
	workspace, ok := resolved(o.workspace)
	if o.protected == nil || !ok {
		return nil, nil
	}
	at := filepath.Join(workspace, path)
	if info, err := os.Lstat(at); err != nil || info.IsDir() && !below {
		return nil, nil
	}
	of := map[fileID]bool{}
	w := linkWalk{left: maxEntries}
	if err := w.walk(at, func(_ string, id fileID, _ int) { of[id] = true }); err != nil || len(of) == 0 {
		return nil, err
	}
	if !o.looked {
		o.looked, o.err = true, o.search(workspace)
	}
	var found []string
	for id := range of {
		for _, name := range o.names[id] {
			if rel, err := filepath.Rel(workspace, name); err == nil && !inside(name, at) {
				found = append(found, filepath.ToSlash(rel))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), o.err
}

// search finds every protected file with several names.
func (o *OtherNames) search(workspace string) error {
	closed, _, err := protected(workspace, o.protected)
	o.names = map[fileID][]string{}
	w := linkWalk{left: maxEntries}
	for _, root := range closed {
		err = errors.Join(err, w.walk(root, func(name string, id fileID, _ int) { o.names[id] = append(o.names[id], name) }))
	}
	return err
}
