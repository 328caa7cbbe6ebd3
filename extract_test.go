package pawl_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/llm/scripted"
)

// rows: ALDO-66, ALDO-67
func TestAnEndedRunIsEvaluated(t *testing.T) {
	run := start(t, echoing(), "say hi")
	if s := final(t, run); s.Err() != nil {
		t.Fatal(s.Err())
	}
	x, err := pawl.ExtractOf(t.Context(), run.Journal(), run.ID())
	if err != nil {
		t.Fatal(err)
	}
	want := pawl.Extract{Text: "done", FinalToolResult: &eval.ToolResult{CallID: x.FinalToolResult.CallID, Tool: "echo", Output: "hi"}, Cycles: 2, TerminatedBy: "final_answer"}
	if d := cmp.Diff(want, x); d != "" {
		t.Error(d)
	}
	judge := eval.Evaluator{Kind: eval.LLMJudge, Value: "it said hi"}
	by := pawl.Agent{Model: says(scripted.Turn{
		Text:   `{"verdict":"done","reason":"the echo is there"}`,
		Expect: &scripted.Expectation{Last: []string{"it said hi", "final_answer after 2 cycles"}},
	})}
	r, err := judge.Evaluate(t.Context(), x, by, fence.New("n"))
	if err != nil || !r.Pass || r.Reason != "the echo is there" {
		t.Errorf("%+v %v", r, err)
	}
	by.Model = says(scripted.Turn{Text: "yes"}, scripted.Turn{Text: "yes"}, scripted.Turn{Text: "yes"})
	if r, err := judge.Evaluate(t.Context(), x, by, fence.New("n")); !errors.Is(err, pawl.ErrNoAnswer) {
		t.Errorf("a judge without a verdict: %+v %v", r, err)
	}
	if _, err := pawl.ExtractOf(t.Context(), run.Journal(), "none"); err == nil {
		t.Error("there is an extract of no run")
	}
}
