package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// stands puts what stands for .git in a workspace.
func stands(t *testing.T, workspace string) *placeholder {
	t.Helper()
	found := missing(workspace, dotGit{})
	if len(found) != 1 || !found[0].put() {
		t.Fatalf("found %+v, and nothing was put there", found)
	}
	return &found[0]
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestAPlaceholderThatAKilledProcessLeftIsInNobodysWayAndGoesWithTheNext(t *testing.T) {
	workspace := t.TempDir()
	killed := stands(t, workspace)
	killed.held.Close()
	git := filepath.Join(workspace, ".git")
	if info, err := os.Stat(git); err != nil || info.Mode().Perm()&0o200 == 0 {
		t.Errorf("it cannot be written: %v, %v", info, err)
	}
	next := stands(t, workspace)
	if next.remove(); isThere(git) {
		t.Error("it is still there")
	}
}

func TestAPlaceholderStaysUntilTheLastCommandThatNeedsItEnds(t *testing.T) {
	workspace := t.TempDir()
	one, other := stands(t, workspace), stands(t, workspace)
	git := filepath.Join(workspace, ".git")
	if one.remove(); !isThere(git) {
		t.Error("it was taken from under the other command")
	}
	if other.remove(); isThere(git) {
		t.Error("it is still there")
	}
}

func TestWhatTheUserMadeIsNoPlaceholder(t *testing.T) {
	workspace := t.TempDir()
	git := filepath.Join(workspace, ".git")
	if err := os.Mkdir(git, 0o755); err != nil {
		t.Fatal(err)
	}
	if found := missing(workspace, dotGit{}); len(found) != 0 {
		t.Errorf("an empty directory is taken for a placeholder: %+v", found)
	}
	if err := os.Remove(git); err != nil {
		t.Fatal(err)
	}
	p := stands(t, workspace)
	if err := os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := missing(workspace, dotGit{}); len(found) != 0 {
		t.Errorf("a repository is taken for a placeholder: %+v", found)
	}
	if p.remove(); !isThere(filepath.Join(git, "HEAD")) {
		t.Error("a repository was taken away")
	}
}
