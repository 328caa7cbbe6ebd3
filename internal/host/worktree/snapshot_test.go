package worktree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/worktree"
)

func TestASnapshotSaysWhatChangedSince(t *testing.T) {
	w := repository(t)
	write(t, filepath.Join(w.Dir, ".gitignore"), "ignored\n")
	write(t, filepath.Join(w.Dir, "a.txt"), "one\nchanged before\n")
	write(t, filepath.Join(w.Dir, "untracked.txt"), "as it is\n")
	status, objects := git(t, w.Dir, "status", "--short"), git(t, w.Dir, "count-objects")
	s, err := w.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := s.Changed(t.Context()); err != nil || stat != "" {
		t.Errorf("nothing changed: %q %v", stat, err)
	}
	write(t, filepath.Join(w.Dir, "a.txt"), "one\nchanged before\nand since\n")
	write(t, filepath.Join(w.Dir, "new.txt"), "1\n2\n")
	write(t, filepath.Join(w.Dir, "ignored"), "x")
	write(t, filepath.Join(w.Dir, ".pawl", "journal.db"), "x")
	write(t, filepath.Join(w.Dir, "sub", ".pawl", "journal.db"), "x")
	if err := os.Remove(filepath.Join(w.Dir, "sub", "b.txt")); err != nil {
		t.Fatal(err)
	}
	stat, err := s.Changed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a.txt     | 1 +", "new.txt   | 2 ++", "sub/b.txt | 1 -", "3 files changed"} {
		if !strings.Contains(stat, want) {
			t.Errorf("no %q in\n%s", want, stat)
		}
	}
	for _, name := range []string{"a.txt", "new.txt", "sub", ".pawl"} {
		_ = os.RemoveAll(filepath.Join(w.Dir, name))
	}
	git(t, w.Dir, "checkout", "-q", "--", "sub")
	write(t, filepath.Join(w.Dir, "a.txt"), "one\nchanged before\n")
	if now := git(t, w.Dir, "status", "--short"); now != status || git(t, w.Dir, "count-objects") != objects {
		t.Errorf("the repository was\n%s, %s\nand is\n%s, %s", status, objects, now, git(t, w.Dir, "count-objects"))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestThereIsNoSnapshotOutsideOfARepository(t *testing.T) {
	if s, err := (worktree.Workspace{Dir: t.TempDir(), Env: os.Environ()}).Take(t.Context()); err == nil {
		t.Errorf("%v", s)
	}
}
