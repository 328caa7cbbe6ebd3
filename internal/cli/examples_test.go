package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
)

func TestTheExampleThatAsksFirstPublishesOnceApproved(t *testing.T) {
	dir, err := filepath.Abs("../../examples/ask-first")
	if err != nil {
		t.Fatal(err)
	}
	p := newProject(t, nil)
	if err := os.CopyFS(filepath.Join(p.dir, "notes"), os.DirFS(filepath.Join(dir, "project"))); err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(dir, "agent.yaml")
	published := filepath.Join(p.dir, "notes", "published", "0.2.0.md")

	events := p.events(p.exits(4, "run", agent, "Publish the release notes.", "--workspace", "notes", "--json").out)
	pending := of[event.ToolPendingApproval](events)
	if len(pending) != 1 || pending[0].Tool != "shell.exec" {
		t.Fatalf("%+v waits for a decision, want the copy alone", pending)
	}
	if _, err := os.Stat(published); err == nil {
		t.Fatal("it was published before anybody agreed")
	}
	p.exits(0, "runs", "approve", events[0].Run, pending[0].CallID, "--reason", "read them", "--resume")
	if notes, err := os.ReadFile(published); err != nil || !bytes.HasPrefix(notes, []byte("# 0.2.0")) {
		t.Errorf("published: %q, %v", notes, err)
	}
}

func TestTheExampleProgramGoesOnWhereItsProcessLeft(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "support-desk")
	if out, err := exec.Command("go", "build", "-o", bin, "../../examples/support-desk").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tmp := t.TempDir()
	answers := func(stdin string) string {
		c := exec.Command(bin)
		c.Env = append(os.Environ(), "TMPDIR="+tmp)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if out := answers(""); !strings.Contains(out, "[y/N]") || !strings.Contains(out, "Start me again") {
		t.Errorf("with nobody there it says:\n%s", out)
	}
	if out := answers("y\n"); !strings.Contains(out, "39.00 euros are on their way") || !strings.Contains(out, "sorry about the lamp") {
		t.Errorf("after a yes it says:\n%s", out)
	}
}

func TestGuardedExampleHidesPasswordsAndTokens(t *testing.T) {
	agent, err := filepath.Abs("../../examples/guarded/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := newProject(t, nil)
	if err := os.Mkdir(filepath.Join(p.dir, "deploy"), 0o755); err != nil {
		t.Fatal(err)
	}
	events := p.events(p.exits(0, "run", agent, "Set up the deployment.", "--workspace", "deploy", "--json").out)
	var said []string
	for _, h := range of[event.HookResult](events) {
		said = append(said, h.Hook+" "+string(h.Decision))
	}
	want := []string{"no-passwords block", "no-passwords continue", "no-passwords continue", "redact rewrite", "diary continue"}
	if !slices.Equal(said, want) {
		t.Errorf("the hooks said %q, want %q", said, want)
	}
	if text, err := os.ReadFile(filepath.Join(p.dir, "deploy", "app.env")); err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("app.env holds %q, %v", text, err)
	}
	told, err := os.ReadFile(filepath.Join(p.dir, "deploy", "last-run.json"))
	if err != nil || !strings.Contains(string(told), `"reason":"final_answer"`) {
		t.Errorf("the diary says %q, %v", told, err)
	}
}

// anyStep answers whatever a step of the examples asks for; a step that has no result
// to submit answers in the second turn.
const anyStep = `
- text: "Done: LGTM, healthy."
  tool_calls: [{name: submit_result, arguments: {done: true, reason: fine, services: [{name: auth}], features: [login], passed: true, files: [a.go]}}]
- text: "Done: LGTM, healthy."
`

// Every example of the workflow specification and every snippet of the page on loops
// runs by one scripted model in the place of all.
func TestTheExamplesOfWorkflowsRunByAScript(t *testing.T) {
	dir := filepath.Join("..", "files", "workflow", "testdata")
	p := newProject(t, map[string]string{"any.yaml": anyStep})
	for folder, want := range map[string]int{"examples": 15, "seed": 8} {
		if err := os.CopyFS(filepath.Join(p.dir, folder), os.DirFS(filepath.Join(dir, folder))); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(p.dir, folder, "*.*"))
		if err != nil || len(files) != want {
			t.Fatalf("%d files in %s, %v", len(files), folder, err)
		}
		for _, file := range files {
			ended := p.exits(0, "run", file, "Do it.", "--model", "scripted/any.yaml", "--approve", "all", "--no-budget", "--json")
			events := p.events(ended.out)
			last := of[event.RunCompleted](events)
			if n := last[len(last)-1].Outcome.Steps; n == nil || n.Failed+n.Cancelled > 0 {
				t.Errorf("%s ends as %+v", file, last[len(last)-1].Outcome)
			}
		}
	}
}
