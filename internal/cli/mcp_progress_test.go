package cli

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/mcptest"
)

// What a server reports of a call under way is shown at the terminal and in the stream of
// its run, for each of two calls, and no journal has it.
func TestProgressOfAServerIsShownAndNotJournalled(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": `
identity: {name: reader}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: [docs.wait, docs.echo]
  approvals: {"docs.*": never}
  may_send: ["docs.*"]
  mcp: [{server: docs, command: [./mcpledger], env: {MCPTEST_LEDGER: ledger, MCPTEST_TOOLS: tools.json}}]
`,
		"tools.json":  `[{"tools":[{"name":"wait","inputSchema":{"type":"object"}},{"name":"echo","inputSchema":{"type":"object"}}]}]`,
		"script.yaml": "- tool_calls: [{name: docs.wait, arguments: {}}]\n- text: the end\n",
	})
	serverProgram(t, p.dir)
	y, s := p.atTerminal([]string{"PAWL_SANDBOX=none"}, "run", "agent.yaml", "go")
	p.eventually("it is shown", func() bool { return strings.Contains(y.plain(), "docs.wait {} · 0 % a part") })
	p.write(mcptest.AnswerFile, "")
	if f := s.wait(); f.code != 0 {
		t.Fatalf("it ends with %d: %s", f.code, y.plain())
	}
	shown := p.newest()

	served := p.serve("PAWL_SANDBOX=none")
	runs := []string{shown}
	for where, kind := range map[string]string{"/events?deltas=true": `"type":"tool.progress"`, "/view?deltas=true": `"type":"tool.progress"`, "/events?format=ag-ui&deltas=true": `"name":"pawl.tool_call.progress"`} {
		if err := os.Remove(filepath.Join(p.dir, mcptest.AnswerFile)); err != nil {
			t.Fatal(err)
		}
		var run struct{ ID string }
		answer, err := http.DefaultClient.Do(served.request(http.MethodPost, "/v1/runs", `{"agent": "reader", "input": "go"}`))
		if err != nil {
			t.Fatal(err)
		}
		err = json.NewDecoder(answer.Body).Decode(&run)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run.ID)
		request := served.request(http.MethodGet, "/v1/runs/"+run.ID+where, "")
		request.Header.Set("Accept", "text/event-stream")
		stream, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		reports := 0
		for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), kind) {
				if reports++; reports == 2 {
					p.write(mcptest.AnswerFile, "")
				}
				for _, want := range []string{`"message":"a part"`, `"total":1000000`, `-1-1"`} {
					if !strings.Contains(lines.Text(), want) {
						t.Errorf("%s: %s is missing: %s", where, want, lines.Text())
					}
				}
			}
		}
		stream.Body.Close()
		if reports < 2 {
			t.Errorf("the stream %s has %d reports", where, reports)
		}
	}
	served.stop()
	for _, run := range runs {
		if out := p.exits(0, "runs", "export", run).out; strings.Contains(out, "a part") || !strings.Contains(out, `"type":"tool_result"`) {
			t.Errorf("the journal is %s", out)
		}
	}
}
