package launch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
)

// Only one loop at a time works in a workspace; a second one fails with an error that
// names the holder.
func TestAWorkspaceIsOneLoopsAtATime(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	path := filepath.Join(dir, "fix.yaml")
	text := []byte("identity: {name: fix}\nmodel_policy: {primary: {model: scripted/s.yaml}}\nloop: {loopEnabled: true}\n")
	for name, body := range map[string][]byte{path: text, filepath.Join(dir, "s.yaml"): []byte("- text: done\n")} {
		if err := os.WriteFile(name, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begin := func() (event.RunStarted, perform.Env, error) {
		return launch.Agent(launch.File{Path: path, Text: text}, "Try.", launch.Options{Flags: launch.Flags{Dir: dir, Workspace: dir}})
	}
	started, first, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = begin()
	if !errors.Is(err, launch.ErrLoopHeld) || !strings.Contains(err.Error(), "process ") || !strings.Contains(err.Error(), "fix.yaml") {
		t.Errorf("the second begins: %v", err)
	}
	if _, err := launch.Environment(started, launch.Options{Flags: launch.Flags{Dir: dir}}); !errors.Is(err, launch.ErrLoopHeld) {
		t.Errorf("a resumed one goes on beside it: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_, next, err := begin()
	if err != nil {
		t.Fatalf("nobody holds it any more: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
}
