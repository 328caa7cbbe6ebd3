package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Snapshot records the files of a workspace at one time, except those that git ignores
// and Pawl's own. Its objects are stored separately, so that nothing of it stays in the
// repository.
type Snapshot struct {
	w    Workspace
	dir  string
	tree string
}

// Take takes a snapshot. The caller must Close it to remove its files.
func (w Workspace) Take(ctx context.Context) (_ *Snapshot, err error) {
	dir, err := os.MkdirTemp("", "pawl-snapshot-")
	if err != nil {
		return nil, fmt.Errorf("worktree: %w", err)
	}
	s := &Snapshot{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.w, err = w.apart(ctx, dir); err != nil {
		return nil, err
	}
	s.tree, err = s.now(ctx)
	return s, err
}

// now returns the tree of the current files.
func (s *Snapshot) now(ctx context.Context) (tree string, err error) { return s.w.tree(ctx) }

// tree returns the tree of the current files, without those that further pathspecs exclude.
func (w Workspace) tree(ctx context.Context, without ...string) (tree string, err error) {
	if _, err := w.git(ctx, w.Dir, append([]string{"add", "--all", ".", ":(exclude,glob)**/.pawl/**"}, without...)...); err != nil {
		return "", err
	}
	return w.git(ctx, w.Dir, "write-tree")
}

// apart returns the workspace with an index and new objects in a directory, so that
// nothing is written to the repository.
func (w Workspace) apart(ctx context.Context, dir string) (Workspace, error) {
	paths, err := w.git(ctx, w.Dir, "rev-parse", "--path-format=absolute", "--git-path", "index", "--git-path", "objects")
	if err != nil {
		return w, err
	}
	index, objects, _ := strings.Cut(paths, "\n")
	own := filepath.Join(dir, "index")
	// The index tells git which files have not changed since it last read them.
	if err := copyFile(index, own); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return w, fmt.Errorf("worktree: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "objects"), 0o700); err != nil {
		return w, fmt.Errorf("worktree: %w", err)
	}
	return Workspace{Dir: w.Dir, Env: append(w.Env[:len(w.Env):len(w.Env)],
		"GIT_INDEX_FILE="+own, "GIT_OBJECT_DIRECTORY="+filepath.Join(dir, "objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES="+objects)}, nil
}

// Changed lists the files that have changed with their numbers of changed lines, and
// the total at the end; it is empty if there are none.
func (s *Snapshot) Changed(ctx context.Context) (stat string, err error) {
	tree, err := s.now(ctx)
	if err != nil {
		return "", err
	}
	return s.w.git(ctx, s.w.Dir, "diff-tree", "-r", "--stat=80", "--no-ext-diff", "--no-textconv", "--find-renames", "--relative", s.tree, tree, "--", ".")
}

// Close removes the snapshot's files from the disk.
func (s *Snapshot) Close() error {
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("worktree: %w", err)
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
