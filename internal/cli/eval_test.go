package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/evaluation"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
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

// The process of an evaluation is killed during its second run, and another one during the
// third: what has ended is not repeated, and each case is a run.
func TestAKilledEvaluationGoesOn(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  shellAgent,
		"script.yaml": shellTurn("touch begun; until [ -e go ]; do sleep 0.01; done") + "- text: the answer\n",
		"suite.yaml": "kind: Eval\nname: killed\nagent: agent.yaml\nconcurrency: 1\nevaluators: [{contains: the answer}]\n" +
			"cases: [{name: a, input: one}, {name: b, input: two}, {name: c, input: three}]\n",
	})
	args := []string{"eval", "suite.yaml", "--approve", "all", "--json"}
	// works returns the workspace of the newest of n runs once its call has begun.
	works := func(n int) (dir string) {
		t.Helper()
		p.eventually("run "+string(rune('0'+n))+" works", func() bool {
			if rows := p.evaluated(); len(rows) == n {
				started, _ := p.started(rows[0].ID)
				dir = started.Workspace
				_, err := os.Stat(filepath.Join(dir, "begun"))
				return err == nil
			}
			return false
		})
		return dir
	}
	for kill := range 2 {
		process := p.start(args...)
		if kill == 0 {
			if err := os.WriteFile(filepath.Join(works(1), "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		works(kill + 2)
		_ = process.Process.Kill()
		process.wait()
	}
	f := p.exits(0, args...)
	var r evaluation.Report
	if err := json.Unmarshal([]byte(f.out), &r); err != nil || !r.OK || r.Runs != 3 || r.Passed != 3 {
		t.Fatalf("the report is %s (%v)", f.out, err)
	}
	if all := p.evaluated(); len(all) != 3 {
		t.Errorf("the journal has %d runs", len(all))
	}
	for _, c := range r.Cases {
		if calls := len(of[event.ToolStarted](p.events(p.exits(0, "runs", "events", c.Trials[0].Run, "--json").out))); calls != 1 {
			t.Errorf("the call of case %s was made %d times", c.Name, calls)
		}
	}
}

// evaluated returns the runs of the journal, the newest first; none before there is one.
func (p project) evaluated() []journal.Run {
	store, err := sqlite.Open(p.t.Context(), filepath.Join(p.dir, ".pawl", "journal.db"), sqlite.Options{ReadOnly: true})
	if err != nil {
		return nil
	}
	defer store.Close()
	rows, err := store.Runs(p.t.Context(), journal.Filter{})
	if err != nil {
		return nil
	}
	return rows
}
