package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheProgramIsNamedAsAShellFindsIt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	at := func(name, target string) string {
		dir := t.TempDir()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	installed, renamed, older := at("pawl", self), at("pawl-next", self), at("pawl", "/bin/sh")
	for _, tt := range []struct{ name, path, called, want string }{
		{"on PATH", installed, "pawl", "pawl"},
		{"by its path, and on PATH too", installed, self, "pawl"},
		{"by its path", t.TempDir(), filepath.Join(renamed, "pawl-next"), filepath.Join(renamed, "pawl-next")},
		{"on PATH under another name", renamed, "pawl-next", "pawl-next"},
		{"another program is pawl on PATH", older, self, self},
		{"under a name that no shell finds", t.TempDir(), "pawl", self},
		{"in a test", installed, "", "pawl"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", tt.path)
			if got := program(tt.called); got != tt.want {
				t.Errorf("program(%q) = %q, want %q", tt.called, got, tt.want)
			}
		})
	}
}
