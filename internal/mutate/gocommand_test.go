package main

import (
	"os"
	"path/filepath"
	"testing"
)

// What gremlins takes for a mutant that does not compile is 2; go test itself says 1.
func TestTheGoCommandTellsWhatDoesNotCompileFromWhatFails(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		want   int
	}{
		"passes":                   {"echo ok", 0},
		"fails":                    {"echo '--- FAIL: TestX'; exit 1", 1},
		"does not compile":         {"echo 'FAIL p [build failed]'; exit 1", 2},
		"cannot be set up":         {"echo 'FAIL p [setup failed]'; exit 1", 2},
		"says so and passes":       {"echo '[build failed]'", 0},
		"has a failure of its own": {"exit 5", 5},
	} {
		t.Run(name, func(t *testing.T) {
			tool := filepath.Join(t.TempDir(), "go")
			if err := os.WriteFile(tool, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if got := runGo(tool, []string{"test", "."}); got != tt.want {
				t.Errorf("exit %d, want %d", got, tt.want)
			}
		})
	}
}
