package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/host/worktree"
)

// git runs a command of git in a directory.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// repository is one with a commit, as a workspace.
func repository(t *testing.T) worktree.Workspace {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q")
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	write(t, filepath.Join(dir, "sub", "b.txt"), "b\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-qm", "first")
	return worktree.Workspace{Dir: dir, Env: os.Environ()}
}

func TestAWorktreeStaysAsItIs(t *testing.T) {
	w := repository(t)
	first := git(t, w.Dir, "rev-parse", "HEAD")
	// Hooks are the user's, and steps are not.
	write(t, filepath.Join(w.Dir, ".git", "hooks", "post-checkout"), "#!/bin/sh\ntouch hooked\n")
	if err := os.Chmod(filepath.Join(w.Dir, ".git", "hooks", "post-checkout"), 0o700); err != nil {
		t.Fatal(err)
	}
	if found, err := w.Find(t.Context(), "run/step"); found != nil || err != nil {
		t.Fatalf("before: %+v, %v", found, err)
	}
	made, err := w.Make(t.Context(), "run/step")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(w.Dir, ".pawl/worktrees/run/step"); made.Path != want || made.Dir != want || made.Head != first {
		t.Errorf("made %+v", made)
	}
	if _, err := os.Stat(filepath.Join(made.Path, "hooked")); err == nil {
		t.Error("the repository's hooks ran")
	}
	write(t, filepath.Join(made.Path, "a.txt"), "changed\n")
	write(t, filepath.Join(w.Dir, "a.txt"), "two\n")
	git(t, w.Dir, "commit", "-qam", "second")
	again, err := w.Make(t.Context(), "run/step")
	if err != nil || again != made || read(t, filepath.Join(made.Path, "a.txt")) != "changed\n" {
		t.Errorf("again: %+v, %v", again, err)
	}
	other, err := w.Make(t.Context(), "run/other")
	if err != nil || other.Head != git(t, w.Dir, "rev-parse", "HEAD") || other.Head == first {
		t.Errorf("another: %+v, %v", other, err)
	}
	git(t, other.Path, "commit", "-qm", "third", "--allow-empty")
	if found, err := w.Find(t.Context(), "run/other"); err != nil || found.Head != git(t, other.Path, "rev-parse", "HEAD") || found.Head == other.Head {
		t.Errorf("after a commit: %+v, %v", found, err)
	}
}

func TestAWorktreeThatACrashLeftIsMadeAgain(t *testing.T) {
	w := repository(t)
	made, err := w.Make(t.Context(), "run/step")
	if err != nil {
		t.Fatal(err)
	}
	gitDir, err := worktree.GitDir(made.Path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(gitDir, "locked"), "initializing\n")
	if err := os.Remove(filepath.Join(made.Path, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if found, err := w.Find(t.Context(), "run/step"); found != nil || err != nil {
		t.Errorf("half made: %+v, %v", found, err)
	}
	if again, err := w.Make(t.Context(), "run/step"); err != nil || read(t, filepath.Join(again.Path, "a.txt")) != "one\n" {
		t.Errorf("again: %+v, %v", again, err)
	}
	// Another program removed it.
	if err := os.RemoveAll(made.Path); err != nil {
		t.Fatal(err)
	}
	if again, err := w.Make(t.Context(), "run/step"); err != nil || read(t, filepath.Join(again.Path, "a.txt")) != "one\n" {
		t.Errorf("after it was taken away: %+v, %v", again, err)
	}
	// A directory that is not known to be a worktree is not removed.
	write(t, filepath.Join(made.Path, ".git"), "gitdir: /nowhere\n")
	if _, err := w.Make(t.Context(), "run/step"); err == nil || read(t, filepath.Join(made.Path, "a.txt")) != "one\n" {
		t.Errorf("without its .git: %v", err)
	}
}

func TestWorktreesOfADirectoryOfARepository(t *testing.T) {
	w := repository(t)
	top := w.Dir
	w.Dir = filepath.Join(top, "sub")
	made, err := w.Make(t.Context(), "run/step")
	if err != nil || made.Dir != filepath.Join(w.Dir, ".pawl/worktrees/run/step/sub") || read(t, filepath.Join(made.Dir, "b.txt")) != "b\n" {
		t.Fatalf("%+v, %v", made, err)
	}
	if got := worktree.Above(made.Dir); got != filepath.Join(w.Dir, ".pawl") {
		t.Errorf("it is in %q", got)
	}
}

func TestWorktreesAreMadeAtOnce(t *testing.T) {
	w := repository(t)
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "a", "b"} {
		wg.Go(func() {
			if _, err := w.Make(t.Context(), "run/"+name); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestWithoutARepositoryThereAreNoWorktrees(t *testing.T) {
	none := worktree.Workspace{Dir: t.TempDir(), Env: append(os.Environ(), "GIT_CEILING_DIRECTORIES="+os.TempDir())}
	if err := none.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "is not in the worktree of a git repository") {
		t.Errorf("none: %v", err)
	}
	git(t, none.Dir, "init", "-q")
	if err := none.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "has no commit yet") {
		t.Errorf("empty: %v", err)
	}
	if _, err := repository(t).Make(t.Context(), "../../x"); err == nil {
		t.Error("a name leads elsewhere")
	}
}
