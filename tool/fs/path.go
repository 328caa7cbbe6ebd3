package fs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// local turns a path of the model's into one relative to the workspace, by its
// text alone.
func (w *Workspace) local(p string) (string, error) {
	if strings.ContainsRune(p, 0) {
		return "", invalid("the path has a NUL byte in it")
	}
	clean := filepath.Clean(p)
	if filepath.IsAbs(p) {
		var inside bool
		for _, dir := range []string{w.dir, w.real} {
			if rel, err := filepath.Rel(dir, clean); err == nil && filepath.IsLocal(rel) {
				clean, inside = rel, true
				break
			}
		}
		if !inside {
			return "", outside(p)
		}
	}
	if !filepath.IsLocal(clean) {
		return "", outside(p)
	}
	return filepath.ToSlash(clean), nil
}

const (
	// maxLinks is how many symbolic links one path may lead through, and maxSteps
	// how many parts it may have when all of them are followed.
	maxLinks = 40
	maxSteps = 500
	// maxPath is how many bytes the system takes for one path: policy cannot say
	// where a longer one leads.
	maxPath = 4095
)

// resolve turns a path of the model's into the one name of the file inside the
// workspace: it follows symbolic links, so that two names of one file are one
// resource and an edit goes to the file and not to the link. The rest of a
// path that does not exist yet is kept as it is.
func (w *Workspace) resolve(p string) (string, error) {
	rest, err := w.local(p)
	if err != nil {
		return "", err
	}
	done, links := ".", 0
	steps := strings.Split(rest, "/")
	for taken := 0; len(steps) > 0; taken++ {
		next := path.Join(done, steps[0])
		steps = steps[1:]
		switch {
		case taken == maxSteps:
			return "", invalid("%s has more than %d parts", quote(p), maxSteps)
		case len(w.real)+len("/")+len(next) > maxPath:
			return "", invalid("%s is longer than a path may be", quote(p))
		case !filepath.IsLocal(next):
			return "", outside(p)
		}
		info, err := w.root.Lstat(next)
		if err != nil {
			return w.rest(p, next, steps)
		}
		if info.Mode()&os.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s leads through too many symbolic links", quote(p))
		}
		target, err := w.root.Readlink(next)
		if err != nil {
			return "", explain(p, err)
		}
		if path.IsAbs(target) {
			return "", outside(p)
		}
		steps = slices.Concat(strings.Split(target, "/"), steps)
	}
	return done, nil
}

// rest is the path whose first steps exist no more, or cannot be looked at;
// opening it gives the reason.
func (w *Workspace) rest(p, next string, steps []string) (string, error) {
	joined := path.Join(append([]string{next}, steps...)...)
	if !filepath.IsLocal(joined) {
		return "", outside(p)
	}
	return joined, nil
}

func outside(p string) error {
	return &tool.Error{Type: event.ErrorOutsidePaths, Message: fmt.Sprintf("%s is outside the workspace; use a path inside it", quote(p))}
}

func invalid(format string, args ...any) error {
	return &tool.Error{Type: event.ErrorInvalidArgs, Message: fmt.Sprintf(format, args...)}
}

func conflict(format string, args ...any) error {
	return &tool.Error{Type: event.ErrorConflict, Message: fmt.Sprintf(format, args...)}
}

// explain turns a file system error into one that a model can act on.
func explain(p string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &tool.Error{Type: event.ErrorNotFound, Message: quote(p) + " does not exist", Err: err}
	case errors.Is(err, syscall.ENOTDIR):
		return &tool.Error{Type: event.ErrorNotFound, Message: quote(p) + " does not exist: a part of the path is a file", Err: err}
	case strings.Contains(err.Error(), "path escapes from parent"):
		return outside(p)
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Errorf("%s: %w", quote(p), err)
		}
		err = inner
	}
}

// quote shows a path of the model's in a message: as it is when it is plain.
func quote(p string) string {
	const most = 300
	if len(p) > most {
		p = strings.ToValidUTF8(p[:most], "") + "…"
	}
	if strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }) || p == "" {
		return fmt.Sprintf("%q", p)
	}
	return p
}
