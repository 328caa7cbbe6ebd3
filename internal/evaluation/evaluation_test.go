package evaluation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/evaluation"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/suite"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
)

const agentFile = `
identity: {name: support}
model_policy: {primary: scripted/answers.yaml}
prompt: {system: You answer.}
tools: {allow: [fs.read]}
`

const answers = `
- text: Looking.
  tool_calls: [{name: fs.read, arguments: {path: policy.txt}}]
  usage: {input: 1000, output: 100}
- text: "You get 30 days to return it."
  usage: {input: 1000, output: 100}
`

// bench has a journal and the directory of a suite.
type bench struct {
	*testing.T
	store journal.Store
	dir   string
	// change changes each evaluation; nil changes nothing.
	change func(*evaluation.Evaluation)
	price  *llm.Price
	budget *evaluation.Budget
	done   func(*suite.Case, evaluation.Trial)
}

func newBench(t *testing.T, files map[string]string) *bench {
	b := &bench{T: t, store: memory.New(nil), dir: t.TempDir(), price: &llm.Price{}}
	for name, text := range map[string]string{"agent.yaml": agentFile, "answers.yaml": answers} {
		if files[name] == "" {
			b.write(name, text)
		}
	}
	for name, text := range files {
		b.write(name, text)
	}
	return b
}

func (b *bench) write(name, text string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// run evaluates a suite in a process of its own.
func (b *bench) run(ctx context.Context, text string) (*evaluation.Report, error) {
	b.Helper()
	s, err := suite.Parse(filepath.Join(b.dir, "suite.yaml"), []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	b.budget = evaluation.NewBudget(s.CapUSD(), func(string) *llm.Price { return b.price })
	e := &evaluation.Evaluation{
		Suite: s, Store: b.store, Engine: engine.New(b.store, versions.Make, engine.Options{Admission: b.budget}),
		Options: launch.Options{Flags: launch.Flags{Approve: agent.ApproveDeny}}, Budget: b.budget, Dir: filepath.Join(b.dir, "work"), Done: b.done,
		Find: b.store.Find,
	}
	defer e.Engine.Close()
	if b.change != nil {
		b.change(e)
	}
	targets, err := e.ReadTargets()
	if err != nil {
		return nil, err
	}
	return e.Run(ctx, targets)
}

func (b *bench) must(text string) *evaluation.Report {
	b.Helper()
	r, err := b.run(b.Context(), text)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// calls counts the requests to models in the journal.
func (b *bench) calls() (calls, runs int) {
	b.Helper()
	rows, err := b.store.Runs(b.Context(), journal.Filter{})
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range rows {
		for _, err := range drive.AsStored(b.Context(), b.store, r.ID, event.TypeModelRequested) {
			if err != nil {
				b.Fatal(err)
			}
			calls++
		}
	}
	return calls, len(rows)
}

const judged = `
kind: Eval
name: support
agent: agent.yaml
judge: scripted/judge.yaml
cases:
  - name: return
    input: How long can I return it?
    files: {policy.txt: 30 days}
    runs: 2
    evaluators:
      - contains: 30 days
      - regex: '\d+ days'
      - {contains: 30 days, of_tool: true}
      - cel: cycles == 2 && terminatedBy == "final_answer" && finalToolResult.tool == "fs.read" && cost < 0.5
      - llm_judge: The answer names the period.
      - rubric: {criteria: [It names the period., {text: It names the customer., weight: 3}], pass_at: 0.25, model: scripted/rubric.yaml}
  - name: other
    input: And this?
    evaluators: [{contains: 30 days, of_tool: true}]
`

func judges() map[string]string {
	return map[string]string{
		"judge.yaml":  `[{text: '{"verdict":"done","reason":"it names it"}'}]`,
		"rubric.yaml": `[{text: '{"criteria":[{"number":1,"met":true,"reason":"yes"},{"number":2,"met":false,"reason":"no name"}]}'}]`,
	}
}

// rows: ALDO-66, ALDO-67
func TestEveryEvaluatorJudgesTheRunsOfACase(t *testing.T) {
	b := newBench(t, judges())
	r := b.must(judged)
	if r.OK || r.Runs != 3 || r.Passed != 2 || len(r.Cases) != 2 {
		t.Fatalf("the report is %+v", r)
	}
	for _, trial := range r.Cases[0].Trials {
		if !trial.Pass || len(trial.Verdicts) != 6 || trial.Verdicts[5].Score != 0.25 || trial.Verdicts[4].Run == "" {
			t.Errorf("a run is %+v", trial)
		}
	}
	if why := r.Cases[1].Trials[0].Why(); !strings.Contains(why, "was not found") {
		t.Errorf("the other case failed with %q", why)
	}
	b.write("judge.yaml", `[{text: '{"verdict":"not_done","reason":"it names nothing"}'}]`)
	if r = b.must(judged); r.Passed != 0 || r.Cases[0].Trials[1].Why() != "it names nothing" {
		t.Errorf("with another verdict the report is %+v", r)
	}
}

func TestAnInterruptedEvaluationRepeatsNoEndedRun(t *testing.T) {
	text := strings.Replace(judged, "name: support", "name: support\nconcurrency: 1", 1)
	b := newBench(t, judges())
	for i := range 3 { // it is interrupted twice, each time after another run
		ctx, stop := context.WithCancelCause(t.Context())
		seen := 0
		b.done = func(*suite.Case, evaluation.Trial) {
			if seen++; seen > i && i < 2 {
				stop(engine.ErrInterrupted)
			}
		}
		r, err := b.run(ctx, text)
		stop(nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := i + 1; r.Runs != want || r.Left != 3-want || (r.Stopped == "interrupted") != (i < 2) {
			t.Errorf("after call %d: %d decided, %d left, stopped %q", i+1, r.Runs, r.Left, r.Stopped)
		}
	}
	b.done = nil
	// Two runs with two judges each, and one without: 3×2 requests and 4 of judges.
	if calls, runs := b.calls(); calls != 10 || runs != 7 {
		t.Errorf("%d runs made %d requests, want 7 and 10", runs, calls)
	}
	b.must(text)
	if calls, runs := b.calls(); calls != 20 || runs != 14 {
		t.Errorf("the next evaluation makes it %d runs with %d requests, want 14 and 20", runs, calls)
	}
}

func TestAChangedAgentFileStartsItsCasesAgain(t *testing.T) {
	b := newBench(t, judges())
	text := strings.Replace(judged, "name: support", "name: support\nconcurrency: 1", 1)
	ctx, stop := context.WithCancelCause(t.Context())
	b.done = func(*suite.Case, evaluation.Trial) { stop(engine.ErrInterrupted) }
	first, err := b.run(ctx, text)
	if err != nil || first.Runs != 1 {
		t.Fatalf("the report is %+v, %v", first, err)
	}
	b.done = nil
	b.write("agent.yaml", strings.Replace(agentFile, "You answer.", "You answer shortly.", 1))
	if r := b.must(text); r.Cases[0].Trials[0].Run == first.Cases[0].Trials[0].Run {
		t.Error("a run of the earlier agent counts for the changed one")
	}
}

func TestAllRunsOfAnEvaluationDrawFromOneBudget(t *testing.T) {
	b := newBench(t, nil)
	b.price = &llm.Price{Input: 1, Output: 1} // USD a million tokens
	text := `
kind: Eval
agent: agent.yaml
budget: %s
runs: 4
concurrency: 1
cases: [{name: a, input: hi, evaluators: [{contains: 30 days}]}]
`
	r := b.must(fmt.Sprintf(text, "0.0000001"))
	if r.Stopped != "budget" || r.Runs != 0 || r.OK {
		t.Fatalf("under a tiny budget: %+v", r)
	}
	if calls, _ := b.calls(); calls > 1 {
		t.Errorf("%d calls were made", calls)
	}
	if r = b.must(fmt.Sprintf(text, "none")); r.Stopped != "" || r.Passed != 4 {
		t.Errorf("without a budget: %+v", r)
	}
	if _, runs := b.calls(); runs != 4 {
		t.Errorf("there are %d runs, want 4: the parked one goes on", runs)
	}
	b.price = nil
	if r = b.must(fmt.Sprintf(text, "1")); r.Passed != 0 || !strings.Contains(r.Cases[0].Trials[0].Why(), "no known price") {
		t.Errorf("a model without a price: %+v", r.Cases[0].Trials[0])
	}
}

func TestARecordedRunIsJudgedWithoutACall(t *testing.T) {
	b := newBench(t, nil)
	live := "kind: Eval\nagent: agent.yaml\ncases: [{name: a, input: hi, files: {policy.txt: 30 days}, evaluators: [{contains: 30 days}]}]"
	run := b.must(live).Cases[0].Trials[0].Run
	calls, _ := b.calls()
	recorded := fmt.Sprintf("kind: Eval\ncases: [{name: a, recorded: %s, evaluators: [{contains: 30 days}, {cel: cycles < 2}]}]", run[:6])
	for range 2 {
		r := b.must(recorded)
		if r.OK || r.Cases[0].Trials[0].Run != run || !strings.Contains(r.Cases[0].Trials[0].Why(), "cycles < 2 is false") {
			t.Errorf("the report is %+v", r)
		}
	}
	if now, _ := b.calls(); now != calls {
		t.Errorf("%d requests were made", now-calls)
	}
}

func TestARunWhoseOutcomeIsNoSuccessDoesNotPass(t *testing.T) {
	text := "kind: Eval\nagent: agent.yaml\ncases: [{name: a, input: hi, evaluators: [{cel: cost < 1}]}]"
	b := newBench(t, map[string]string{"answers.yaml": "[{error: {status: 400, class: invalid}}]"})
	if r := b.must(text); r.Passed != 0 || r.Cases[0].Trials[0].Why() == "" {
		t.Errorf("the report is %+v", r.Cases[0])
	}
	if r := b.must(strings.Replace(text, "input: hi", "input: hi, may_fail: true", 1)); r.Passed != 1 {
		t.Errorf("with may_fail the report is %+v", r.Cases[0])
	}
}

func TestAReportIsComparedCaseByCase(t *testing.T) {
	of := func(name string, passed int, usd float64) evaluation.Result {
		return evaluation.Result{Name: name, Sum: evaluation.Sum{Runs: 4, Passed: passed, USD: usd}}
	}
	before := &evaluation.Report{Cases: []evaluation.Result{of("a", 4, 1), of("b", 2, 1), of("gone", 4, 1)}}
	for name, c := range map[string]struct {
		now   []evaluation.Result
		worse bool
	}{
		"the same":                     {[]evaluation.Result{of("a", 4, 1), of("b", 2, 1)}, false},
		"better":                       {[]evaluation.Result{of("a", 4, 1), of("b", 3, 1)}, false},
		"one worse, another better":    {[]evaluation.Result{of("a", 3, 1), of("b", 4, 1)}, true},
		"a new case that never passed": {[]evaluation.Result{of("a", 4, 1), of("b", 2, 1), of("new", 0, 1)}, false},
	} {
		if got := (&evaluation.Report{Cases: c.now}).Against(before); got.Worse != c.worse {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestJUnitHasATestForEachCase(t *testing.T) {
	r := evaluation.Report{Suite: "s", Threshold: 0.5, Cases: []evaluation.Result{
		{Name: "good <1>", Sum: evaluation.Sum{Runs: 2, Passed: 1}, Trials: []evaluation.Trial{{Run: "r1", Pass: true}, {Run: "r2", Problem: "no"}}},
		{Name: "bad", Sum: evaluation.Sum{Runs: 1}, Trials: []evaluation.Trial{{Run: "r3", Problem: "it \x1b[31mfailed"}}},
		{Name: "left"},
	}}
	var out bytes.Buffer
	if err := r.JUnit(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`tests="3" failures="1" skipped="1"`, `name="good &lt;1&gt;"`, `message="0 of 1 runs passed"`, "r3: it ", "<skipped>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %s in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a control character is written")
	}
}

func TestAReportThatIsNoneIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	for text, ok := range map[string]bool{"{}": false, "[": false, `{"evaluation":"x","cases":[]}`: true} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := evaluation.ReadReport(path); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := evaluation.ReadReport(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := json.Marshal(evaluation.Comparison{}); err != nil {
		t.Error(err)
	}
}

// The files of runs that did not pass are left for a while, and removed by a later evaluation.
func TestOldWorkspacesAreRemoved(t *testing.T) {
	b := newBench(t, nil)
	const failing = "kind: Eval\nname: x\nagent: agent.yaml\ncases: [{name: a, input: hi, evaluators: [{contains: never}]}]\n"
	left := func() map[string]bool {
		entries, err := os.ReadDir(filepath.Join(b.dir, "work"))
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), "check-") { // no run's
				names[e.Name()] = true
			}
		}
		return names
	}
	b.must(failing)
	first := left()
	if len(first) != 1 {
		t.Fatalf("%v are left", first)
	}
	for name := range first {
		long := time.Now().Add(-31 * 24 * time.Hour)
		if err := os.Chtimes(filepath.Join(b.dir, "work", name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		b.must(failing)
		now := left()
		for name := range first {
			if now[name] {
				t.Errorf("%s is still there", name)
			}
		}
		if len(now) != i+1 {
			t.Errorf("after evaluation %d, %v are left", i, now)
		}
	}
}

func TestProcessesCheckOneSuiteAtTheSameTime(t *testing.T) {
	b := newBench(t, nil)
	s, err := suite.Parse(filepath.Join(b.dir, "suite.yaml"), []byte("kind: Eval\nname: twice\nagent: agent.yaml\nevaluators: [{contains: x}]\ncases: [{name: a, input: i}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		e := &evaluation.Evaluation{Suite: s, Dir: filepath.Join(b.dir, "work")}
		all.Go(func() {
			for range 50 {
				if _, err := e.ReadTargets(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
