package fs

import (
	"os"
	"path/filepath"
	"testing"
)

// A file that others may not read is theirs to read at no moment of an edit, nor
// after one that was killed.
func TestTheNewContentOfAFileIsNeverThereForOthersToRead(t *testing.T) {
	w, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, mode := range []os.FileMode{0o600, 0o444, 0o640, 0o755} {
		like := filepath.Join(w.real, "like")
		if err := os.WriteFile(like, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(like, mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(like)
		if err != nil {
			t.Fatal(err)
		}
		f, err := w.empty("new", info)
		if err != nil {
			t.Fatal(err)
		}
		now, err := f.Stat()
		if err != nil || now.Mode() != mode {
			t.Errorf("before its content is there it has %v of %v: %v", now.Mode(), mode, err)
		}
		if _, err := f.WriteString("content"); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
		f.Close()
		for _, name := range []string{like, filepath.Join(w.real, "new")} {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}
