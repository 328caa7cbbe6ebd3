package launch_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

func TestInstructionsFollowTheSystemTextAndAreDigested(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const file = "identity: {name: x}\nmodel_policy: {primary: scripted/a.yaml}\nprompt: {system: 'You are ${who}.'}\ninstructions: [AGENTS.md, more.md]\ntools: {allow: []}\n"
	write("a.yaml", "[{text: hi}]")
	write("more.md", "Be brief.")
	digests := map[string]bool{}
	for _, text := range []string{"Run `echo ${HOME}` first.\n", "Run nothing.\n"} {
		write("AGENTS.md", text)
		o := launch.Options{Flags: launch.Flags{Workspace: dir, Dir: dir, Vars: map[string]string{"who": "helpful"}}}
		started, env, err := launch.Agent(launch.File{Path: filepath.Join(dir, "agent.yaml"), Text: []byte(file)}, "hi", o)
		if err != nil {
			t.Fatal(err)
		}
		if env.Close != nil {
			_ = env.Close()
		}
		var cfg agent.Config
		if err := json.Unmarshal(started.Config, &cfg); err != nil {
			t.Fatal(err)
		}
		if want := "You are helpful.\n\n## AGENTS.md\n\n" + strings.TrimSpace(text) + "\n\n## more.md\n\nBe brief."; cfg.System != want {
			t.Errorf("the system text is %q, want %q", cfg.System, want)
		}
		if len(started.Instructions) != 2 || started.Instructions[0].Path != "AGENTS.md" {
			t.Fatalf("the first event has %+v", started.Instructions)
		}
		digests[started.Instructions[0].Digest] = true
	}
	if len(digests) != 2 {
		t.Errorf("another text has the same digest: %v", digests)
	}
	if _, err := spec.ParseAgent("sent", []byte(file), spec.Options{Sent: true, Dir: dir}); err == nil || !strings.Contains(err.Error(), "instructions: names a file of this machine") {
		t.Errorf("a file that was sent: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "more.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := spec.ParseAgent(filepath.Join(dir, "agent.yaml"), []byte(file), spec.Options{}); err == nil || !strings.Contains(err.Error(), "4:27: instructions[1]: cannot be read") {
		t.Errorf("a missing file: %v", err)
	}
}
