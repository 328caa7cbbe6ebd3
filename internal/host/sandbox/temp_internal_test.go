//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A command may put directories one into the other by the thousand. To delete them
// each held a file open, until nothing of the whole program could open one.
func TestDeepTemporaryFilesAreDeletedWithAFewOpenFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	temp, err := newTempDir()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(temp.path)
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("d/", 1500)
	if err := errors.Join(root.MkdirAll(deep, 0o700), root.WriteFile(deep+"file", nil, 0o400), root.Chmod(deep, 0o500), root.Close()); err != nil {
		t.Fatal(err)
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 500, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	err = temp.remove()
	if reset := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); reset != nil {
		t.Fatal(reset)
	}
	if err != nil {
		t.Errorf("%.200s", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}
