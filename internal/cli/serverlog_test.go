package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a server prints as errors, and what else it prints on its output, is in the log of
// its run, without secrets, also when another process goes on with the run.
func TestServersOfARunHaveALog(t *testing.T) {
	chat := "- tool_calls: [{name: docs.chatty, arguments: {}}, {name: docs.complain, arguments: {}}]\n"
	p := newProject(t, map[string]string{
		"agent.yaml": `
identity: {name: reader}
model_policy: {primary: {model: scripted/script.yaml}}
prompt: {task: Go.}
tools:
  allow: [docs.chatty, docs.complain, docs.ask]
  approvals: {"docs.*": never}
  may_send: ["docs.*"]
  secrets: {DOCS_TOKEN: {env: DOCS_TOKEN}}
  mcp: [{server: docs, command: [./mcpledger], env: {MCPTEST_LEDGER: ledger}, secrets: [DOCS_TOKEN]}]
`,
		"script.yaml": chat + "- tool_calls: [{name: docs.ask, arguments: {text: Name?}}]\n" + chat + "- text: the end\n",
	})
	serverProgram(t, p.dir)
	const token = "sesame-sesame-sesame-42"
	env := []string{"PAWL_SANDBOX=none", "DOCS_TOKEN=" + token}
	if f := p.startWith(env, "run", "agent.yaml").wait(); f.code != 4 {
		t.Fatalf("it ends with %d: %s", f.code, f.err)
	}
	id := p.newest()
	log := filepath.Join(".pawl", id+".servers.log")
	for process := 1; process <= 2; process++ {
		text := p.read(log)
		for want, n := range map[string]int{"docs: the server is up\n": process, "Listening for requests": process, "docs: DOCS_TOKEN=": process} {
			if strings.Count(text, want) != n {
				t.Errorf("after process %d the log has %q %d times: %s", process, want, strings.Count(text, want), text)
			}
		}
		if strings.Contains(text, token) {
			t.Errorf("the log has the secret: %s", text)
		}
		if process == 1 {
			if f := p.startWith(env, "runs", "approve", id, "2-1", "--input", "name=Ann", "--resume").wait(); f.code != 0 {
				t.Fatalf("it ends with %d: %s%s", f.code, f.out, f.err)
			}
		}
	}
	if p.exits(0, "runs", "rm", id); !p.exists(".pawl")() {
		t.Fatal("the journal is gone")
	}
	if _, err := os.Stat(filepath.Join(p.dir, log)); !os.IsNotExist(err) {
		t.Errorf("the log outlives its run: %v", err)
	}
}
