package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhatWasMeasuredByHandStaysOnThePage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "benchmarks.md")
	for _, c := range []struct{ before, measured, want string }{
		{"", "one\n", pageHead + "one\n"},
		{pageHead + "one\n" + byHand + "\n| a | b |\n", "two\n", pageHead + "two\n" + byHand + "\n| a | b |\n"},
	} {
		if c.before != "" {
			if err := os.WriteFile(page, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := record(page, c.measured); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(page); err != nil || string(got) != c.want {
			t.Errorf("the page is %q, %v; want %q", got, err, c.want)
		}
	}
}
