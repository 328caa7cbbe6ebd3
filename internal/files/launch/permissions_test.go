package launch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/launch"
)

// decides compares the decision of policy about a call with the expected one.
func decides(t *testing.T, about, file, call string, o launch.Options, want event.Decision) {
	t.Helper()
	e, err := launch.Explain(read(t, file), call, o)
	switch {
	case err != nil:
		t.Errorf("%s: %s: %v", about, call, err)
	case e.Decision.Decision != want:
		t.Errorf("%s: %s is %s by %s", about, call, e.Decision.Decision, e.Decision.Rule)
	}
}

// A writer of the journal's inbox can decide about calls, so no tool may write it,
// wherever it is in the workspace.
func TestNoToolWritesToTheJournal(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("state", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "agent.yaml")
	text := "identity: {name: x}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\ntools: {allow: [fs.write, shell.exec]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		journal, call string
		want          event.Decision
	}{
		{".pawl/journal.db", `fs.write {"path":".pawl/journal.db","content":""}`, event.DecisionAsk},
		{".pawl/journal.db", `shell.exec sqlite3 .pawl/journal.db "insert into inbox values (1)"`, event.DecisionAsk},
		{"state/runs.db", `fs.write {"path":"state/runs.db","content":""}`, event.DecisionAsk},
		{"state/runs.db", `fs.write {"path":"link/runs.db-wal","content":""}`, event.DecisionAsk},
		{"link/runs.db", `fs.write {"path":"state/runs.db","content":""}`, event.DecisionAsk},
		{"state/runs.db", `shell.exec cd state && sqlite3 runs.db "insert into inbox values (1)"`, event.DecisionAsk},
		{"state/[1].db", `fs.write {"path":"state/[1].db","content":""}`, event.DecisionAsk},
		{"link/runs.db", `shell.exec ln -sfn elsewhere link`, event.DecisionAsk},
		{"out/runs.db", `shell.exec ln -sfn state out`, event.DecisionAsk},
		{"state/runs.db", `fs.write {"path":"state/notes.md","content":""}`, event.DecisionAllow},
		{"state/runs.db", `shell.exec ln -sfn elsewhere link`, event.DecisionAllow},
		{"../elsewhere.db", `fs.write {"path":"a.txt","content":""}`, event.DecisionAllow},
	} {
		decides(t, "with the journal "+c.journal, path, c.call, launch.Options{Flags: launch.Flags{Workspace: dir}, Host: launch.Host{Journal: filepath.Join(dir, c.journal)}}, c.want)
	}
}

// A run that rewrites its own file could permit the next run what it was denied, and
// change the next run's task.
func TestNoToolWritesToTheFileThatTheRunBeganWith(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"agents/a.yaml": "identity: {name: x}\nmodel_policy: {primary: anthropic/claude-sonnet-4-5}\nprompt: {system_file: prompt.md}\n" +
			"tools: {allow: [fs.write, shell.exec, fs.read]}\n",
		"agents/prompt.md": "You are careful.", "agents/b.yaml": "", "a.yaml": "", "prompt.md": "You are careless.",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("agents/a.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	const began = "agents/a.yaml"
	for _, c := range []struct {
		file, call string
		want       event.Decision
	}{
		{began, `fs.write {"path":"agents/a.yaml","content":""}`, event.DecisionAsk},
		{began, `fs.write {"path":"Agents/A.YAML","content":""}`, event.DecisionAsk},
		{began, `fs.write {"path":"link.yaml","content":""}`, event.DecisionAsk},
		{began, `fs.write {"path":"agents/prompt.md","content":""}`, event.DecisionAsk},
		{began, `shell.exec cd agents && echo x >> a.yaml`, event.DecisionAsk},
		{began, `shell.exec rm -r agents`, event.DecisionAsk},
		{"link.yaml", `fs.write {"path":"agents/a.yaml","content":""}`, event.DecisionAsk},
		{"link.yaml", `shell.exec ln -sf agents/b.yaml link.yaml`, event.DecisionAsk},
		{began, `fs.write {"path":"agents/b.yaml","content":""}`, event.DecisionAllow},
		{began, `fs.write {"path":"a.yaml","content":""}`, event.DecisionAllow},
		{began, `fs.read {"path":"agents/a.yaml"}`, event.DecisionAllow},
		{began, `shell.exec cat agents/a.yaml`, event.DecisionAllow},
	} {
		decides(t, "of a run of "+c.file, filepath.Join(dir, c.file), c.call, launch.Options{Flags: launch.Flags{Workspace: dir}}, c.want)
	}
}
