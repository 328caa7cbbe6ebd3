// Package worktree creates separate directories for the steps of a workflow, as
// worktrees of the git repository of the workspace.
package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pawlrun/pawl/event"
)

// dir is the directory of the worktrees of a workspace.
const dir = ".pawl/worktrees"

// Workspace is a directory of a repository. Env is the environment of git; it must not
// name a repository.
type Workspace struct {
	Dir string
	Env []string
}

// Tree is a worktree.
type Tree struct {
	event.Worktree
	// Dir is the directory in it that corresponds to the workspace.
	Dir string
}

// Check returns why the workspace cannot have worktrees, or nil.
func (w Workspace) Check(ctx context.Context) error {
	_, err := w.prefix(ctx)
	return err
}

// prefix is the path of the workspace in its repository.
func (w Workspace) prefix(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return "", errors.New("git is not installed")
	}
	prefix, err := w.git(ctx, w.Dir, "rev-parse", "--show-prefix")
	if err != nil {
		return "", fmt.Errorf("%s is not in the worktree of a git repository: %w", w.Dir, err)
	}
	if _, err := w.git(ctx, w.Dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		return "", fmt.Errorf("the git repository of %s has no commit yet", w.Dir)
	}
	return prefix, nil
}

// Make creates a worktree at the repository's HEAD, or returns the existing one. The
// name is its path below the others.
func (w Workspace) Make(ctx context.Context, name string) (Tree, error) {
	prefix, err := w.prefix(ctx)
	if err != nil {
		return Tree{}, err
	}
	path, err := w.path(name)
	if err != nil {
		return Tree{}, err
	}
	unlock, err := w.lock()
	if err != nil {
		return Tree{}, fmt.Errorf("worktree: %w", err)
	}
	defer unlock()
	found, err := w.find(ctx, name, prefix)
	if err != nil || found != nil {
		return value(found), err
	}
	if err := clearAway(path); err != nil {
		return Tree{}, fmt.Errorf("worktree: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return Tree{}, fmt.Errorf("worktree: %w", err)
	}
	// Two --force flags replace a worktree that is registered but missing.
	if _, err := w.git(ctx, w.Dir, "worktree", "add", "--quiet", "--force", "--force", "--detach", path, "HEAD"); err != nil {
		return Tree{}, fmt.Errorf("make the worktree %s: %w", path, err)
	}
	found, err = w.find(ctx, name, prefix)
	if err == nil && found == nil {
		err = fmt.Errorf("the worktree %s is not there although git made it", path)
	}
	if err == nil {
		err = os.MkdirAll(found.Dir, 0o755) // HEAD may not have the workspace's directory
	}
	return value(found), err
}

// clearAway removes what a crash left half-created, which contains no work yet. It
// fails if something else is there.
func clearAway(path string) error {
	gitDir, err := GitDir(path)
	if err == nil && initializing(gitDir) {
		return os.RemoveAll(path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there, and is no worktree of the repository: %w", path, err)
	}
	return nil
}

// lock waits for other processes that create worktrees: git fails if it finds one that
// is half created.
func (w Workspace) lock() (unlock func() error, err error) {
	path, err := w.path("lock")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	return f.Close, err
}

func value(t *Tree) Tree {
	if t == nil {
		return Tree{}
	}
	return *t
}

// Find returns an existing worktree, nil if there is none.
func (w Workspace) Find(ctx context.Context, name string) (*Tree, error) {
	prefix, err := w.prefix(ctx)
	if err != nil {
		return nil, err
	}
	return w.find(ctx, name, prefix)
}

func (w Workspace) find(ctx context.Context, name, prefix string) (*Tree, error) {
	path, err := w.path(name)
	if err != nil {
		return nil, err
	}
	gitDir, err := GitDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("worktree: %w", err)
	}
	if initializing(gitDir) {
		return nil, nil
	}
	head, err := w.git(ctx, path, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return nil, fmt.Errorf("the worktree %s: %w", path, err)
	}
	return &Tree{Worktree: event.Worktree{Path: path, Head: head}, Dir: filepath.Join(path, filepath.FromSlash(prefix))}, nil
}

// initializing reports whether git was interrupted while it created a worktree.
func initializing(gitDir string) bool {
	why, err := os.ReadFile(filepath.Join(gitDir, "locked"))
	return err == nil && strings.TrimSpace(string(why)) == "initializing"
}

func (w Workspace) path(name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("worktree: %q is no name", name)
	}
	top, err := filepath.EvalSymlinks(w.Dir)
	if err == nil {
		top, err = filepath.Abs(top)
	}
	if err != nil {
		return "", fmt.Errorf("worktree: %w", err)
	}
	return filepath.Join(top, dir, name), nil
}

// GitDir returns the directory in the repository that belongs to a worktree, after
// checking that it refers back to the worktree. The error is [fs.ErrNotExist] if there
// is none.
func GitDir(path string) (string, error) {
	text, err := os.ReadFile(filepath.Join(path, ".git"))
	if err != nil {
		return "", err
	}
	gitDir, is := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if !is || !filepath.IsAbs(gitDir) {
		return "", fs.ErrNotExist
	}
	back, err := os.ReadFile(filepath.Join(gitDir, "gitdir"))
	if err != nil {
		return "", err
	}
	own, err := filepath.EvalSymlinks(path)
	if err == nil && filepath.Clean(strings.TrimSpace(string(back))) != filepath.Join(own, ".git") {
		err = fs.ErrNotExist
	}
	return gitDir, err
}

// Above returns the directory of Pawl's that holds the worktree which contains a
// directory, empty if there is none.
func Above(inside string) string {
	if before, _, found := strings.Cut(inside+"/", "/"+dir+"/"); found {
		return filepath.Join(before, filepath.Dir(dir))
	}
	return ""
}

// git runs a git command without the repository's hooks and monitors.
func (w Workspace) git(ctx context.Context, dir string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}, args...)...)
	c.Env = w.Env
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if err != nil {
		if why := strings.TrimSpace(said.String()); why != "" {
			return "", errors.New(why)
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(out.String()), nil
}
