// Package golden compares what a test made with a file that is kept.
package golden

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// File compares a text with a file, or writes the file where update is set.
func File(t *testing.T, path, got string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}
