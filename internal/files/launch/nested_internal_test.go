package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A directory with millions of files is not read completely when a run begins.
func TestNoMoreOfADirectoryIsReadThanIsLookedThrough(t *testing.T) {
	dir := t.TempDir()
	for i := range 9 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for most, want := range map[int]int{1: 1, 4: 4, 9: 9, 10: 9} {
		entries := readEntries(dir, most)
		if len(entries) != want {
			t.Errorf("of at most %d there are %d", most, len(entries))
		}
		for i := range entries[1:] {
			if entries[i].Name() >= entries[i+1].Name() {
				t.Errorf("%s comes before %s", entries[i].Name(), entries[i+1].Name())
			}
		}
	}
	if entries := readEntries(filepath.Join(dir, "nowhere"), 4); len(entries) != 0 {
		t.Errorf("a directory that is not there has %v", entries)
	}
}
