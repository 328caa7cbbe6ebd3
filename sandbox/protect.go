package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxEntries bounds the search for protected files, which is made before each
// command because there may be new ones.
const maxEntries = 200_000

// errTooMany is returned for a workspace that cannot be searched in time. What
// is not found would not be protected.
var errTooMany = fmt.Errorf("sandbox: the workspace has more than %d files to look through for protected paths", maxEntries)

// protected finds what is protected in a workspace, by its own names, and the
// links that lead there under a protected one: whoever replaced such a link
// would put something else in the place of what is protected.
func protected(workspace string, p Protection) (found, links []string, err error) {
	if p == nil {
		return nil, nil, nil
	}
	left := maxEntries
	var search func(dir string) error
	search = func(dir string) error {
		entries, err := os.ReadDir(filepath.Join(workspace, dir))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("sandbox: look for protected paths: %w", err)
		}
		if left -= len(entries); left < 0 {
			return errTooMany
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			switch {
			case p.Protects(name):
				if e.Type()&fs.ModeSymlink != 0 {
					links = append(links, filepath.Join(workspace, name))
				}
				if real, ok := resolved(filepath.Join(workspace, name)); ok && inside(real, workspace) {
					found = append(found, real)
				}
			case e.IsDir() && p.Below(name):
				if err := search(name); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err = search(".")
	return found, links, err
}

// placeholder stands where something protected does not exist yet, so that a
// command cannot make it.
type placeholder struct {
	path string
	dir  bool
}

// missing finds where placeholders are needed: at the first name on the way to
// something protected that does not exist.
func missing(workspace string, p Protection) []placeholder {
	if p == nil {
		return nil
	}
	var found []placeholder
	for _, name := range p.Named() {
		at, parts := workspace, strings.Split(strings.TrimSuffix(name, "/"), "/")
		for i, part := range parts {
			at = filepath.Join(at, part)
			if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
				found = append(found, placeholder{at, i+1 < len(parts) || strings.HasSuffix(name, "/")})
				break
			}
		}
	}
	return found
}

// put makes the placeholder. What somebody else has made meanwhile is not ours.
func (p placeholder) put() bool {
	if p.dir {
		return os.Mkdir(p.path, 0o555) == nil
	}
	f, err := os.OpenFile(p.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// remove takes the placeholder away again, unless it is one no more.
func (p placeholder) remove() {
	if info, err := os.Lstat(p.path); err == nil && (info.IsDir() || info.Mode().IsRegular() && info.Size() == 0) {
		_ = os.Remove(p.path)
	}
}
