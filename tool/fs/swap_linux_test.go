package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestASwapBetweenCheckAndUseStaysInside exchanges a directory of the path
// with a link to the outside, and back, while tools work on it.
func TestASwapBetweenCheckAndUseStaysInside(t *testing.T) {
	p := newPlace(t, map[string]string{"d/f.txt": "inside\n"})
	outside := filepath.Join(filepath.Dir(p.dir), "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(outside, "f.txt")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	symlink(t, "../outside", p.path("evil"))

	if err := unix.Renameat2(unix.AT_FDCWD, p.path("d"), unix.AT_FDCWD, p.path("evil"), unix.RENAME_EXCHANGE); err != nil {
		t.Skipf("names cannot be exchanged here: %v", err)
	}
	var swapper sync.WaitGroup
	stop := make(chan struct{})
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = unix.Renameat2(unix.AT_FDCWD, p.path("d"), unix.AT_FDCWD, p.path("evil"), unix.RENAME_EXCHANGE)
		}
	})
	for i := range 1500 {
		for name, a := range map[string]args{
			"fs.read":  {"path": "d/f.txt"},
			"fs.grep":  {"path": "d", "pattern": "secret"},
			"fs.write": {"path": "d/new.txt", "content": "owned"},
			"fs.edit":  {"path": "d/f.txt", "old_string": "e", "new_string": "E", "replace_all": true},
		} {
			if r, err := p.call(name, a); err == nil && strings.Contains(r.Output, "secret") {
				t.Fatalf("round %d: %s read what is outside: %s", i, name, r.Output)
			}
		}
	}
	close(stop)
	swapper.Wait()
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside there is %v, %v", entries, err)
	}
	if b, _ := os.ReadFile(secret); string(b) != "secret\n" {
		t.Errorf("the file outside has %q", b)
	}
}
