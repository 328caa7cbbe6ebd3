package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
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
	// held is the placeholder itself, locked together with all who use it: the
	// last of them takes it away, also where a process that was killed left it.
	held *os.File
}

// placeholderTime, in seconds, is the time of every placeholder, by which one
// is told from an empty file of the user's. A directory that something was put
// into has another one.
const placeholderTime = 1_000_000_007

// missing finds where placeholders are needed: at the first name on the way to
// something protected that does not exist, or that is a placeholder.
func missing(workspace string, p Protection) []placeholder {
	if p == nil {
		return nil
	}
	var found []placeholder
	for _, name := range p.Named() {
		at, parts := workspace, strings.Split(strings.TrimSuffix(name, "/"), "/")
		for i, part := range parts {
			at = filepath.Join(at, part)
			if info, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) || err == nil && isPlaceholder(info) {
				found = append(found, placeholder{path: at, dir: i+1 < len(parts) || strings.HasSuffix(name, "/")})
				break
			}
		}
	}
	return found
}

func isPlaceholder(info fs.FileInfo) bool {
	empty := info.IsDir() || info.Mode().IsRegular() && info.Size() == 0
	return empty && ownedByMe(info) && info.ModTime().Equal(time.Unix(placeholderTime, 0))
}

// put makes the placeholder, or shares one that is there. What somebody else has
// made meanwhile is not ours.
func (p *placeholder) put() bool {
	const tries = 100 // one that is taken away at this moment is made again
	for range tries {
		made := p.make()
		info, err := os.Lstat(p.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !made && !isPlaceholder(info) {
			return made
		}
		held, err := os.OpenFile(p.path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return made
		}
		err = syscall.Flock(int(held.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if err == nil && isAt(held, p.path) {
			p.held = held
			_ = os.Chtimes(p.path, time.Unix(placeholderTime, 0), time.Unix(placeholderTime, 0))
			return true
		}
		held.Close()
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			return made // there are no locks here
		}
	}
	return false
}

// make makes it so that it is in nobody's way when it is left.
func (p *placeholder) make() bool {
	if p.dir {
		return os.Mkdir(p.path, 0o755) == nil
	}
	f, err := os.OpenFile(p.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// remove takes the placeholder away again, unless it is one no more or lies
// under another command's mount, which would go with it.
func (p *placeholder) remove() {
	if p.held != nil {
		defer p.held.Close()
		if syscall.Flock(int(p.held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			return
		}
	}
	if info, err := os.Lstat(p.path); err == nil && (info.IsDir() || info.Mode().IsRegular() && info.Size() == 0) {
		_ = os.Remove(p.path)
	}
}
