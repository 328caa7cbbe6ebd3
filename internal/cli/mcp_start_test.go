package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/mcptest"
)

// The servers of a run start at once: none of three goes on before each has begun, in a
// first run and in a second one.
func TestServersOfARunStartAtOnce(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": `
identity: {name: reader}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: [a.echo, b.echo, c.echo]
  approvals: {a.echo: never, b.echo: never, c.echo: never}
  may_send: [a.echo, b.echo, c.echo]
  mcp:
    - {server: a, command: [./mcpledger], env: {MCPTEST_LEDGER: ledger}}
    - {server: b, command: [./mcpledger], env: {MCPTEST_LEDGER: ledger}}
    - {server: c, command: [./mcpledger], env: {MCPTEST_LEDGER: ledger}}
`,
		"script.yaml": "- tool_calls: [{name: a.echo, arguments: {}}, {name: b.echo, arguments: {}}, {name: c.echo, arguments: {}}]\n- text: the end\n",
		"ledger":      "",
	})
	serverProgram(t, p.dir)
	for run := 1; run <= 2; run++ {
		p.write(mcptest.HoldFile, "")
		s := p.startWith([]string{"PAWL_SANDBOX=none"}, "run", "agent.yaml", "go")
		p.eventually("all have begun", func() bool { return strings.Count(p.read("ledger"), "held ") == 3*run })
		if n := strings.Count(p.read("ledger"), "call echo"); n != 3*(run-1) {
			t.Errorf("run %d: %d calls before the servers are there", run, n)
		}
		if err := os.Remove(filepath.Join(p.dir, mcptest.HoldFile)); err != nil {
			t.Fatal(err)
		}
		if f := s.wait(); f.code != 0 || strings.Count(p.read("ledger"), "call echo") != 3*run {
			t.Errorf("run %d ends with %d: %s%s", run, f.code, f.out, f.err)
		}
	}
}
