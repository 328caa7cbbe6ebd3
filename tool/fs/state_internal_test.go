package fs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestATreeOfTooManyFilesHasNoState(t *testing.T) {
	w, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.state.most = 2
	for _, name := range []string{"a", "b", "c"} {
		if _, err := w.State(t.Context()); err != nil {
			t.Errorf("before %s: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(w.real, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.State(t.Context()); !errors.Is(err, ErrTooManyFiles) {
		t.Errorf("got %v", err)
	}
}
