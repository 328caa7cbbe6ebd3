package pawl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// builds is an agent with a shell and no sandbox, whose model runs a program.
func builds(t *testing.T, then ...scripted.Turn) (a pawl.Agent, built func() bool) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "build.sh"), []byte("touch built"), 0o600); err != nil {
		t.Fatal(err)
	}
	turns := append([]scripted.Turn{{ToolCalls: calls("shell.exec", `{"command":"sh build.sh"}`)}}, then...)
	a = pawl.Agent{Model: says(append(turns, scripted.Turn{Text: "done"})...), Tools: []tool.Tool{shell.New(shell.Options{Dir: dir})}}
	return a, func() bool {
		_, err := os.Stat(filepath.Join(dir, "built"))
		return err == nil
	}
}

func TestUnsandboxedCommandOfProgramAsksUnlessNeverAsk(t *testing.T) {
	a, built := builds(t)
	s, err := a.Run(t.Context(), "Build it.")
	if err != nil || s.Status != pawl.StatusParked || built() {
		t.Fatalf("%+v, %v, built: %v", s, err, built())
	}
	if len(s.Pending) != 1 || !strings.HasPrefix(s.Pending[0].Reason, "without a sandbox a command has all your permissions") {
		t.Errorf("%+v waits", s.Pending)
	}

	a, built = builds(t)
	a.Approvals.Never = []string{"shell.exec"}
	s, err = a.Run(t.Context(), "Build it.")
	if err != nil || s.Status != pawl.StatusCompleted || !built() {
		t.Fatalf("where the tool never asks: %+v, %v, built: %v", s, err, built())
	}
}

// What an agent's tools may do unasked is nothing to the agents that it offers.
func TestACommandOfAChildAsksForItself(t *testing.T) {
	agent, built := builds(t)
	a := writer(agent, research, scripted.Turn{Text: "done"})
	a.Approvals.Never, a.Tools = []string{"shell.exec"}, agent.Tools
	store := memory.New(nil)
	run, err := a.Start(t.Context(), "go", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	s, err := run.Wait()
	if err != nil || s.Status != pawl.StatusParked || built() {
		t.Fatalf("%+v, %v, built: %v", s, err, built())
	}
	rows, err := store.Runs(t.Context(), journal.Filter{Parent: run.ID()})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%+v, %v", rows, err)
	}
	child, err := pawl.Inspect(t.Context(), store, rows[0].ID)
	if err != nil || len(child.Pending) != 1 || child.Pending[0].Tool != "shell.exec" {
		t.Errorf("%+v waits, %v", child.Pending, err)
	}
}

func TestAToolDoesNotAlwaysAndNeverAsk(t *testing.T) {
	a, _ := builds(t)
	a.Approvals.Tools, a.Approvals.Never = []string{"shell.exec"}, []string{"shell.exec", "shell.run"}
	err := a.Validate()
	for _, want := range []string{`Approvals.Never: there is no tool "shell.run"`, `Approvals.Never: Approvals.Tools has "shell.exec" as well`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
