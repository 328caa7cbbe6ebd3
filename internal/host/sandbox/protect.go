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

// maxEntries bounds the search for protected files, which runs before each command
// because there may be new ones.
const maxEntries = 200_000

// errTooMany is returned for a workspace that is too large to search, because paths
// that are not found would not be protected.
var errTooMany = fmt.Errorf("sandbox: the workspace has more than %d files to look through for protected paths", maxEntries)

// protected returns the protected paths of a workspace, by their canonical names, and
// the links with a protected name that lead to them: replacing such a link would
// replace what is protected.
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

// missing returns the named protected paths that do not exist; for each, the first
// missing directory on the way to it.
func missing(workspace string, p Protection) []string {
	if p == nil {
		return nil
	}
	var found []string
	for _, name := range p.Named() {
		at := workspace
		for part := range strings.SplitSeq(strings.TrimSuffix(name, "/"), "/") {
			at = filepath.Join(at, part)
			if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
				found = append(found, at)
				break
			}
		}
	}
	return found
}
