package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/evaluation"
)

func TestEvalComparesAndExitsByTheResult(t *testing.T) {
	p := newProject(t, nil)
	p.exits(0, "init", ".", "--template", "eval", "--name", "shop")
	if f := p.exits(0, "check", "suite.yaml"); f.err != "" {
		t.Errorf("check warns: %s", f.err)
	}
	first := p.exits(0, "eval", "suite.yaml", "--json", "--junit", "report.xml")
	var r evaluation.Report
	if err := json.Unmarshal([]byte(first.out), &r); err != nil || !r.OK || r.Runs != 2 || r.Passed != 2 {
		t.Fatalf("the report is %s (%v)", first.out, err)
	}
	if junit, err := os.ReadFile(filepath.Join(p.dir, "report.xml")); err != nil || !strings.Contains(string(junit), `failures="0"`) {
		t.Errorf("JUnit: %s (%v)", junit, err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before.json", first.out)
	if f := p.exits(0, "eval", "suite.yaml", "--against", "before.json"); !strings.Contains(f.out, "1 case the same") {
		t.Errorf("the same again: %s", f.out)
	}

	run := r.Cases[0].Trials[0].Run
	p.exits(0, "runs", "export", run, "--eval", "--out", "recorded.yaml")
	write("answers.yaml", "[{text: I do not know.}]")
	if f := p.exits(1, "eval", "suite.yaml", "--against", "before.json"); !strings.Contains(f.out, "WORSE") || !strings.Contains(f.out, "2/2 → 0/2") {
		t.Errorf("a worse agent: %s", f.out)
	}
	p.exits(0, "eval", "recorded.yaml")
	p.exits(1, "eval", "recorded.yaml", "--live")
	p.exits(2, "eval", "agent.yaml")
	p.exits(2, "run", "suite.yaml", "hi")
}
