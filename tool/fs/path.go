package fs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// maxPath is the system's limit on the bytes of a path: policy cannot resolve a longer
// one.
const maxPath = 4095

// resolve converts a model's path to the unique name of the file inside the workspace,
// with all symbolic links resolved, so that two names of one file are one resource and
// an edit changes the file and not the link.
func (w *Workspace) resolve(p string) (string, error) {
	switch {
	case strings.ContainsRune(p, 0):
		return "", invalid("the path has a NUL byte in it")
	case len(w.real)+len("/")+len(p) > maxPath:
		return "", invalid("%s is longer than a path may be", quote(p))
	}
	clean := filepath.Clean(p)
	own := w.paths.Path(clean)
	if !own.Outside {
		return own.Path, nil
	}
	if _, err := w.root.Stat(clean); errors.Is(err, syscall.ELOOP) {
		return "", explain(p, err)
	}
	return "", outside(p)
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

// explain converts a file system error to one that a model can act on.
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

// quote returns a model's path for a message, quoted only if necessary.
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
