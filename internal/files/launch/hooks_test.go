package launch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/launch"
)

// A run pins the programs of its hooks when it begins, because a command may change
// them. A process that resumes the run uses the same pins.
// rows: ALF-64
func TestARunHoldsTheProgramsOfItsHooks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	const blocks, passes = "#!/bin/sh\necho no >&2; exit 2\n", "#!/bin/sh\nexit 0\n"
	write("guard", blocks, 0o755)
	write("script.yaml", "- text: done\n", 0o600)
	write("agent.yaml", "identity: {name: guarded}\nmodel_policy: {primary: {model: scripted/script.yaml}}\nprompt: {system: Work.}\n"+
		"tools: {allow: [fs.read]}\nhooks: {before_tool: [{command: [./guard]}, {command: \"exit 2\"}]}\n", 0o600)
	o := launch.Options{Flags: launch.Flags{Workspace: dir, Dir: dir}}
	started, env, err := launch.Agent(read(t, filepath.Join(dir, "agent.yaml")), "go", o)
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	if n := len(started.HookFiles); n == 0 || started.HookFiles[0].Hook != "hooks.before_tool[0]" || started.HookFiles[0].Path != filepath.Join(dir, "guard") {
		t.Fatalf("pinned %+v", started.HookFiles)
	}
	hears := func(env perform.Env, place int) string {
		a, err := env.Hooks[place].Run(t.Context(), hook.Call{Stage: event.HookBeforeTool, Args: []byte(`{}`)})
		if err != nil {
			return err.Error()
		}
		return string(a.Decision)
	}
	if got := hears(env, 0); got != "block" {
		t.Fatalf("as it was: %s", got)
	}
	write("guard", passes, 0o755)
	resumed, err := launch.Environment(started, o)
	if err != nil {
		t.Fatal(err)
	}
	defer resumed.Close()
	for where, env := range map[string]perform.Env{"in the run": env, "when it is resumed": resumed} {
		if got := hears(env, 0); !strings.Contains(got, "is not what it was when the run began") {
			t.Errorf("%s the changed hook says %s", where, got)
		}
		if got := hears(env, 1); got != "block" {
			t.Errorf("%s another hook says %s", where, got)
		}
	}
	write("guard", blocks, 0o755)
	if got := hears(resumed, 0); got != "block" {
		t.Errorf("put back: %s", got)
	}
}
