//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// linger is a program that opens a box, puts something into its directory for
// temporary files, and waits to be killed.
func linger() error {
	b, err := openTemporary()
	if err != nil {
		return err
	}
	temporary, err := filepath.Glob(filepath.Join(os.TempDir(), "pawl-box-*"))
	if err != nil || len(temporary) == 0 {
		return fmt.Errorf("no directory for temporary files: %w", err)
	}
	closed := filepath.Join(temporary[0], "cache", "module")
	if err := os.MkdirAll(closed, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(closed, "file"), nil, 0o400); err != nil {
		return err
	}
	if err := os.Chmod(closed, 0o500); err != nil {
		return err
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return b.Close()
}

// openTemporary opens a box as a new process does.
func openTemporary() (*sandbox.Box, error) {
	m := sandbox.Strongest(context.Background(), shim, "")
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return m.Open(m.Tier(), sandbox.Policy{Workspace: dir})
}

func anyTier(t *testing.T) {
	t.Helper()
	if machine().Tier() == sandbox.None {
		t.Skip("no tier works here: " + machine().Why())
	}
}

func openAndClose(t *testing.T) {
	t.Helper()
	b, err := openTemporary()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatAKilledProcessLeftIsRemovedAtTheNextStart(t *testing.T) {
	anyTier(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	c := exec.Command(os.Args[0], "linger")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 64)
	n, _ := stdout.Read(said)
	if !strings.HasPrefix(string(said[:n]), "open") {
		_ = c.Wait()
		t.Fatalf("it said %q", said[:n])
	}

	openAndClose(t)
	if left := names(t, temp); len(left) != 1 {
		t.Errorf("while its owner lives: %q", left)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if left := names(t, temp); len(left) != 1 {
		t.Errorf("a killed process left %q", left)
	}
	openAndClose(t)
	if left := names(t, temp); len(left) != 0 {
		t.Errorf("after the next start: %q", left)
	}
}

func TestOnlyOwnUnlockedDirectoriesAreRemoved(t *testing.T) {
	anyTier(t)
	temp, outside := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, dir := range []string{"pawl-box-left/sub", "pawl-other", "pawl-box-foreign"} {
		if err := os.MkdirAll(filepath.Join(temp, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{temp + "/pawl-box-left/sub/file", temp + "/pawl-box-file", outside + "/kept"} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{"pawl-box-link", "pawl-box-left/link", "pawl-box-left/sub/link"} {
		if err := os.Symlink(outside, filepath.Join(temp, link)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"pawl-box-file", "pawl-box-link", "pawl-other"}
	if os.Chown(filepath.Join(temp, "pawl-box-foreign"), os.Getuid()+1, os.Getgid()) == nil {
		want = []string{"pawl-box-file", "pawl-box-foreign", "pawl-box-link", "pawl-other"}
	}
	openAndClose(t)
	if diff := cmp.Diff(want, names(t, temp)); diff != "" {
		t.Errorf("what stays (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"kept"}, names(t, outside)); diff != "" {
		t.Errorf("behind the links (-want +got)\n%s", diff)
	}
}

// A program may put directories one into the other until no path leads to the
// last of them.
func TestADeepLeftoverIsRemoved(t *testing.T) {
	anyTier(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	const depth = 2500
	deep, err := os.OpenRoot(temp)
	if err != nil {
		t.Fatal(err)
	}
	for name := range depth {
		in := "d"
		if name == 0 {
			in = "pawl-box-left"
		}
		if err := deep.Mkdir(in, 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := deep.OpenRoot(in)
		if err != nil {
			t.Fatal(err)
		}
		deep.Close()
		deep = next
	}
	deep.Close()
	openAndClose(t)
	if got := names(t, temp); len(got) != 0 {
		t.Errorf("after the next start: %q", got)
	}
}
