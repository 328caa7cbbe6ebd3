package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// ErrNoTree is returned for a name under which no tree is kept.
var ErrNoTree = errors.New("worktree: no tree of that name is kept")

// treeName is the name of a kept tree.
var treeName = regexp.MustCompile(`^[0-9a-z]{1,64}$`)

// Kept holds trees of a workspace in a directory outside of it, by names. As in a
// [Snapshot], nothing of it is in the repository, and what git ignores is in no tree.
type Kept struct {
	w   Workspace
	dir string
	// without are pathspecs.
	without []string
}

// Keep opens a directory for the trees of the workspace, and creates it if necessary. No
// tree has the files and directories at the absolute paths of without, such as Pawl's
// own in a workspace that contains them.
func (w Workspace) Keep(ctx context.Context, dir string, without ...string) (*Kept, error) {
	if _, err := w.git(ctx, w.Dir, "rev-parse", "--git-dir"); err != nil { // before anything is created
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "trees"), 0o700); err != nil {
		return nil, fmt.Errorf("worktree: %w", err)
	}
	apart, err := w.apart(ctx, dir)
	if err != nil {
		return nil, err
	}
	k := &Kept{w: apart, dir: dir}
	for _, path := range without {
		within, err := filepath.Rel(real(w.Dir), real(path))
		if err != nil || !filepath.IsLocal(within) {
			continue
		}
		if within == "." {
			return nil, fmt.Errorf("worktree: %s is the workspace", path)
		}
		k.without = append(k.without, ":(exclude,literal)"+filepath.ToSlash(within))
	}
	return k, nil
}

// real returns a path with its links resolved, also if its end does not exist.
func real(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(real(parent), filepath.Base(path))
	}
	return path
}

// Add keeps the current files under a name, unless it is taken.
func (k *Kept) Add(ctx context.Context, name string) error {
	if !treeName.MatchString(name) {
		return fmt.Errorf("worktree: %q cannot be the name of a tree", name)
	}
	if _, err := k.tree(name); err == nil {
		return nil
	}
	tree, err := k.w.tree(ctx, k.without...)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(k.dir, "trees", name), []byte(tree), 0o600); err != nil {
		return fmt.Errorf("worktree: %w", err)
	}
	return nil
}

// tree returns the kept tree with a name.
func (k *Kept) tree(name string) (string, error) {
	if !treeName.MatchString(name) {
		return "", ErrNoTree
	}
	tree, err := os.ReadFile(filepath.Join(k.dir, "trees", name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNoTree
	}
	return string(tree), err
}

// Has reports whether a tree is kept under a name.
func (k *Kept) Has(name string) bool {
	_, err := k.tree(name)
	return err == nil
}

// Diff returns the difference of two kept trees as git prints it, empty if they are
// equal.
func (k *Kept) Diff(ctx context.Context, from, to string) (string, error) {
	before, err := k.tree(from)
	if err != nil {
		return "", err
	}
	after, err := k.tree(to)
	if err != nil {
		return "", err
	}
	return k.w.git(ctx, k.w.Dir, "diff-tree", "-r", "--patch", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--relative", before, after, "--", ".")
}

// Keeper keeps the trees of one run. Where they cannot be kept, it keeps none and
// reports no error. It is safe for concurrent use.
type Keeper struct {
	Workspace
	// Without is as in [Workspace.Keep].
	Without []string

	mu   sync.Mutex
	kept *Kept
}

// Begin opens the directory for the run's trees, and keeps the first one under a name,
// unless the run is resumed.
func (k *Keeper) Begin(dir, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	kept, err := k.Keep(ctx, dir, k.Without...)
	if err != nil {
		return
	}
	k.mu.Lock()
	k.kept = kept
	k.mu.Unlock()
	k.Add(ctx, name)
}

// Add keeps the current files under a name, see [Kept.Add].
func (k *Keeper) Add(ctx context.Context, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept != nil {
		_ = k.kept.Add(ctx, name) // the tree is then missing, and a comparison says so
	}
}
