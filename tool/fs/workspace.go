// Package fs provides the file tools: fs.read, fs.write, fs.edit, fs.list, fs.glob and
// fs.grep.
//
// Every path is resolved inside one workspace and opened through [os.Root], so that
// neither "..", nor a symbolic link, nor a swap between decision and use leads out of
// it. The result of a tool is bounded, whatever the size of the files, and in the same
// order every time.
package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/resolve"
	"github.com/pawlrun/pawl/tool"
)

// Workspace is the directory that a run's file tools work in. It is safe for
// concurrent use.
type Workspace struct {
	// dir is the directory as named, real the same without symbolic links: a model may
	// know either.
	dir, real string
	root      *os.Root
	paths     resolve.Workspace

	contents contents
	state    state

	otherNames func(tool, path string, write bool) ([]string, error)
	own        func(path string, info os.FileInfo) bool
	buffers    Buffers
}

// Options configure how the tools of a workspace are judged.
type Options struct {
	// OtherNames returns the protected names that a path of the workspace, and
	// everything below it, has in addition to the one that a tool uses (hard links),
	// because a call that touches a protected file must ask. An error makes the call
	// unclear. Without the function no other names are known, and a write to a file
	// that has several is unclear.
	OtherNames func(tool, path string, write bool) ([]string, error)
	// Own reports whether this process writes a file itself, such as its journal.
	// [Workspace.State] excludes those. Nil means none.
	Own func(path string, info os.FileInfo) bool
	// Buffers have the texts that fs.read, fs.write and fs.edit use in place of those on
	// the disk. Nil means none.
	Buffers Buffers
}

// Open opens a workspace directory.
func Open(dir string, o Options) (*Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("fs: open workspace %s: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("fs: open workspace %s: %w", dir, err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("fs: open workspace %s: %w", dir, err)
	}
	paths, err := resolve.At(real)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fs: open workspace %s: %w", dir, err), root.Close())
	}
	return &Workspace{
		dir: abs, real: real, root: root, paths: paths, state: state{most: maxStateFiles},
		otherNames: o.OtherNames, own: o.Own, buffers: o.Buffers,
	}, nil
}

// Close releases the directory.
func (w *Workspace) Close() error { return w.root.Close() }

// Tools returns the workspace's file tools.
func (w *Workspace) Tools() []tool.Tool {
	return []tool.Tool{w.readTool(), w.writeTool(), w.editTool(), w.listTool(), w.globTool(), w.grepTool()}
}

// here fails if the workspace is no longer the directory that was opened, because its
// owner would not see what a tool found or wrote there.
func (w *Workspace) here() error {
	opened, err := w.root.Stat(".")
	if err == nil {
		var now os.FileInfo
		if now, err = os.Stat(w.real); err == nil && os.SameFile(opened, now) {
			return nil
		}
	}
	return &tool.Error{
		Type: event.ErrorWorkspace, Err: err,
		Message: fmt.Sprintf("the workspace %s is gone or was replaced while the run worked in it", w.dir),
	}
}

// within wraps the function of a tool so that a call fails if the workspace vanishes
// before or during it, instead of finding nothing.
func within[A any](w *Workspace, run func(context.Context, A) (tool.Result, error)) func(context.Context, A) (tool.Result, error) {
	checked := withinCall(w, func(ctx context.Context, _ tool.Call, args A) (tool.Result, error) { return run(ctx, args) })
	return func(ctx context.Context, args A) (tool.Result, error) { return checked(ctx, tool.Call{}, args) }
}

// withinCall is within for a function that cuts what it shows and so needs the redactor
// of its run.
func withinCall[A any](w *Workspace, run func(context.Context, tool.Call, A) (tool.Result, error)) func(context.Context, tool.Call, A) (tool.Result, error) {
	return func(ctx context.Context, c tool.Call, args A) (tool.Result, error) {
		if err := w.here(); err != nil {
			return tool.Result{}, err
		}
		r, err := run(ctx, c, args)
		if gone := w.here(); gone != nil {
			return tool.Result{}, gone
		}
		return r, err
	}
}
