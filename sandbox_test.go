package pawl_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
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

// payer offers a call that a person decides.
func payer() tool.Tool {
	return pawl.Tool("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "paid", nil })
}

func TestAProgramsCommandWithoutASandboxAsksWhereItsOtherCallsAsk(t *testing.T) {
	a, built := builds(t)
	s, err := a.Run(t.Context(), "Build it.")
	if err != nil || s.Status != pawl.StatusCompleted || !built() {
		t.Fatalf("where nothing asks: %+v, %v", s, err)
	}

	a, built = builds(t)
	a.Tools, a.Approvals = append(a.Tools, payer()), []string{"pay"}
	s, err = a.Run(t.Context(), "Build it.")
	if err != nil || s.Status != pawl.StatusParked || built() {
		t.Fatalf("where another call asks: %+v, %v", s, err)
	}
	if len(s.Pending) != 1 || !strings.HasPrefix(s.Pending[0].Reason, "without a sandbox a command could decide about other calls") {
		t.Errorf("%+v waits", s.Pending)
	}
}

func TestACommandOfOneRunAsksWhereAnotherRunOfItsOthersAsk(t *testing.T) {
	for _, c := range []struct {
		name string
		// tree gives the parent with its child, one of which has the shell.
		tree func(shell pawl.Agent) pawl.Agent
	}{
		{"the parent pays, the child builds", func(shell pawl.Agent) pawl.Agent {
			a := writer(shell, research, scripted.Turn{Text: "done"})
			a.Tools, a.Approvals = []tool.Tool{payer()}, []string{"pay"}
			return a
		}},
		{"the child pays, the parent builds", func(shell pawl.Agent) pawl.Agent {
			child := researcher(scripted.Turn{Text: "done"})
			child.Tools, child.Approvals = []tool.Tool{payer()}, []string{"pay"}
			shell.Agents = []pawl.AgentTool{{Name: "research", Agent: child}}
			return shell
		}},
		{"one child pays, the other builds", func(shell pawl.Agent) pawl.Agent {
			child := researcher(scripted.Turn{Text: "done"})
			child.Tools, child.Approvals = []tool.Tool{payer()}, []string{"pay"}
			a := writer(shell, research, scripted.Turn{Text: "done"})
			a.Agents = append(a.Agents, pawl.AgentTool{Name: "pay", Agent: child})
			return a
		}},
		{"a hook of the child may ask", func(shell pawl.Agent) pawl.Agent {
			child := researcher(scripted.Turn{Text: "done"})
			child.Hooks = []pawl.Hook{{Stage: event.HookBeforeTool, Run: func(context.Context, hook.Call) (hook.Answer, error) { return hook.Answer{}, nil }}}
			shell.Agents = []pawl.AgentTool{{Name: "research", Agent: child}}
			return shell
		}},
		{"a child pays by a tool that is declared to", func(shell pawl.Agent) pawl.Agent {
			child, pay := researcher(scripted.Turn{Text: "done"}), payer()
			pay.Risk = "financial"
			child.Tools = []tool.Tool{pay}
			shell.Agents = []pawl.AgentTool{{Name: "research", Agent: child}}
			return shell
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			agent, built := builds(t)
			store := memory.New(nil)
			run, err := c.tree(agent).Start(t.Context(), "go", pawl.Options{Journal: store})
			if err != nil {
				t.Fatal(err)
			}
			s, err := run.Wait()
			if err != nil || s.Status != pawl.StatusParked || built() {
				t.Fatalf("%+v, %v, built: %v", s, err, built())
			}
			rows, err := store.Runs(t.Context(), journal.Filter{Parent: run.ID()})
			if err != nil {
				t.Fatal(err)
			}
			pending := s.Pending
			for _, row := range rows {
				child, err := pawl.Inspect(t.Context(), store, row.ID)
				if err != nil {
					t.Fatal(err)
				}
				pending = append(pending, child.Pending...)
			}
			if len(pending) != 1 || pending[0].Tool != "shell.exec" {
				t.Errorf("%+v waits", pending)
			}
		})
	}

	agent, built := builds(t)
	if s, err := writer(agent, research, scripted.Turn{Text: "done"}).Run(t.Context(), "go"); err != nil || s.Text() != "done" || !built() {
		t.Errorf("where nothing of the tree asks: %+v, %v, built: %v", s, err, built())
	}
}
