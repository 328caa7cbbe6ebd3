package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/worktree"
)

func TestKeptTreesAreComparedByName(t *testing.T) {
	w, dir := repository(t), filepath.Join(t.TempDir(), "kept")
	write(t, filepath.Join(w.Dir, ".gitignore"), "ignored\n")
	before := git(t, w.Dir, "count-objects")
	own := filepath.Join(w.Dir, "state [x]")
	write(t, filepath.Join(own, "secret"), "x")
	k, err := w.Keep(t.Context(), dir, own, filepath.Join(w.Dir, "journal.db"), "/elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string) {
		t.Helper()
		if err := k.Add(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	add("start")
	write(t, filepath.Join(w.Dir, "new.txt"), "1\n")
	write(t, filepath.Join(w.Dir, "ignored"), "x")
	write(t, filepath.Join(w.Dir, "journal.db"), "x")
	write(t, filepath.Join(own, "secret"), "y")
	add("abc1")
	write(t, filepath.Join(w.Dir, "new.txt"), "2\n")
	add("abc1") // a name stays that of its first tree
	add("abc2")
	if _, err := w.Keep(t.Context(), dir, w.Dir); err == nil {
		t.Error("a workspace is kept without itself")
	}
	if k, err = w.Keep(t.Context(), dir); err != nil { // another process reads them
		t.Fatal(err)
	}
	for names, want := range map[[2]string]string{{"start", "abc1"}: "+1", {"abc1", "abc2"}: "-1\n+2", {"abc2", "abc2"}: ""} {
		patch, err := k.Diff(t.Context(), names[0], names[1])
		if err != nil || !strings.HasSuffix(patch, want) || (patch == "") != (want == "") || strings.Contains(patch, "ignored") || strings.Contains(patch, "journal") || strings.Contains(patch, "secret") {
			t.Errorf("%v: %v\n%s", names, err, patch)
		}
	}
	for _, name := range []string{"none", "../index", ""} {
		if _, err := k.Diff(t.Context(), "start", name); !errors.Is(err, worktree.ErrNoTree) || k.Has(name) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := k.Add(t.Context(), "../index"); err == nil {
		t.Error("a name led out of the directory")
	}
	if now := git(t, w.Dir, "count-objects"); now != before {
		t.Errorf("the repository had %s and has %s", before, now)
	}
	if _, err := (worktree.Workspace{Dir: t.TempDir(), Env: os.Environ()}).Keep(t.Context(), filepath.Join(dir, "other")); err == nil {
		t.Error("trees are kept outside of a repository")
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); err == nil {
		t.Error("a directory was made for nothing")
	}
}
