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

// maxLinkEntries bounds the search for other names of closed files, which is
// made once for a box. Only where such a file has a name that is not closed
// itself is the whole workspace looked through; most have none.
const maxLinkEntries = 1_000_000

// links are the names in a workspace under which what is closed to commands
// would be open to them: hard links that were there before. Commands cannot
// make such names, because no tier lets them link what is closed to them, and
// so they are looked for once.
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

// fileID tells files apart, whatever their names.
type fileID struct{ device, inode uint64 }

// namesOf says which file this is and how many names it has; ok is false for
// what can have one name only.
func namesOf(info fs.FileInfo) (id fileID, names int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || st.Nlink < 2 {
		return fileID{}, 0, false
	}
	return fileID{uint64(st.Dev), st.Ino}, int(st.Nlink), true
}

// otherNames finds names in a tree of files that are also in closed, which are
// files and directories by their own names. It looks at no more than most
// entries.
func otherNames(tree string, closed []string, most int) ([]string, error) {
	w := linkWalk{left: most}
	// missing are how many names of each closed file were not found yet.
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
			return nil // it is gone
		}
		if id, names, ok := namesOf(info); ok {
			visit(path, id, names)
		}
		return nil
	})
}

// OtherNames looks for the protected names that files of a workspace have besides
// the ones that they are called by (hard links): who writes to the one writes to the
// other, and who reads the one has read the other. It is for one moment, in which
// what is protected is looked through once, and not at all where every file that is
// asked about has one name only.
type OtherNames struct {
	workspace string
	protected Protection

	looked bool
	names  map[fileID][]string
	err    error
}

// NewOtherNames looks in a workspace. Nothing is protected where p is nil.
func NewOtherNames(workspace string, p Protection) *OtherNames {
	return &OtherNames{workspace: workspace, protected: p}
}

// Of are the protected names of the file at a path of the workspace, and of the
// files below a directory if below says so, but for those that lie there themselves.
// They are relative to the workspace and separated by "/".
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
