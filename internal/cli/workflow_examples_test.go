package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// newExample is a project with an example of docs/workflow-file.md in it, whose agents have
// scripts in the order in which the file has them, and with files.
func newExample(t *testing.T, name string, scripts []string, files map[string]string) project {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../examples/workflow", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, file := newProject(t, nil), string(text)
	for _, script := range scripts {
		file = strings.Replace(file, "anthropic/claude-sonnet-4-5", "scripted/"+script, 1)
	}
	if strings.Contains(file, "anthropic/") {
		t.Fatal("an agent has no script")
	}
	files[name+".yaml"] = file
	for path, text := range files {
		path = filepath.Join(p.dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestTheExampleThatFansOutRunsACommandForEach(t *testing.T) {
	p := newExample(t, "fan-out", nil, map[string]string{
		"services/auth.txt": "x\nlogin here\n", "services/b; touch evil": "login\nlogin\n", "services/web.txt": "none\n",
	})
	got := p.exits(0, "run", "fan-out.yaml", "login", "--approve", "all")
	if want := `["0 auth.txt: 1","1 b; touch evil: 2","2 web.txt: 0"]` + "\n"; got.out != want {
		t.Errorf("it prints %s, want %s", got.out, want)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "evil")); err == nil {
		t.Error("a shell has read the name of a file")
	}
}

func TestTheExampleThatCollectsSeesAllResultsInOrder(t *testing.T) {
	files := map[string]string{"notes/a.txt": "alpha", "notes/b.txt": "beta", "notes/c.txt": "gamma"}
	files["reader.yaml"] = `- tool_calls: [{name: submit_result, arguments: {about: something, relevant: "yes"}}]
  expect: {contains: "what it has to do with Greek letters."}
`
	files["writer.yaml"] = "- text: A report.\n  expect: {contains: \"### Item 2: \\\"c.txt\\\"\\nResult: {\\\"about\\\":\\\"something\\\",\\\"relevant\\\":\\\"yes\\\"}\"}\n"
	p := newExample(t, "collect", []string{"reader.yaml", "writer.yaml"}, files)
	events := p.events(p.exits(0, "run", "collect.yaml", "Greek letters", "--approve", "all", "--json").out)
	done := of[event.RunCompleted](events)
	if len(done) != 5 { // three readers, the writer and the workflow
		t.Fatalf("%d runs have ended", len(done))
	}
	if o := done[4].Outcome; o.FinalOutput != "A report." || o.Steps.Completed != 3 {
		t.Errorf("%+v", o)
	}
}

func TestTheExampleThatAsksAJudgeKeepsWhatPassed(t *testing.T) {
	p := newExample(t, "judge", []string{"writer.yaml", "verdict.yaml"}, map[string]string{
		"CHANGES":      "Fixed; \"everything\" $(touch evil)\n",
		"writer.yaml":  "- text: \"Notes: `touch evil` \\\"it's\\\" better.\"\n  expect: {contains: 'Fixed; \"everything\" $(touch evil)'}\n",
		"verdict.yaml": "- tool_calls: [{name: submit_result, arguments: {done: true, reason: short}}]\n",
	})
	p.exits(0, "run", "judge.yaml", "0.2.0", "--approve", "all")
	notes, err := os.ReadFile(filepath.Join(p.dir, "NOTES.md"))
	if want := "Notes: `touch evil` \"it's\" better.\n"; err != nil || string(notes) != want {
		t.Errorf("%q, %v, want %q", notes, err, want)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "evil")); err == nil {
		t.Error("a shell has read what the writer said")
	}
}

// A condition decides about each of many items without a run or a command between them.
func TestManyItemsThatAConditionSkips(t *testing.T) {
	p := newProject(t, map[string]string{
		"many.yaml": "apiVersion: pawl/v1\nname: many\ncoordinator: false\nsteps:\n- id: each\n  loop:\n    forEach: [" + strings.Repeat("x, ", 10_000) + "]\n" +
			"    steps:\n    - {id: one, command: [touch, done], condition: index > 20000}\n    - {id: two, command: [touch, done], condition: index > 20000}\n",
	})
	for range 2 {
		if o := p.outcome(p.events(p.exits(0, "run", "many.yaml", "go", "--json").out)); o.Reason != event.ReasonFinalAnswer || p.exists("done")() {
			t.Errorf("it ends as %+v", o)
		}
	}
}
