package eval_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/tool"
)

func events(all ...event.Data) iter.Seq2[*event.Event, error] {
	return func(yield func(*event.Event, error) bool) {
		for _, d := range all {
			if !yield(&event.Event{Data: d}, nil) {
				return
			}
		}
	}
}

// rows: ALDO-66
func TestTheExtractOfARun(t *testing.T) {
	zero, two := 0, 2
	ended := func(o event.Outcome) event.Data { return event.RunCompleted{Outcome: o} }
	for name, c := range map[string]struct {
		events []event.Data
		want   eval.Extract
	}{
		"a final answer, no tool": {
			[]event.Data{event.RunStarted{}, ended(event.Outcome{Reason: event.ReasonFinalAnswer, FinalOutput: "hi", Cycles: 1})},
			eval.Extract{Text: "hi", Cycles: 1, TerminatedBy: "final_answer"},
		},
		"a condition is named by its kind, and the last result counts": {
			[]event.Data{
				event.ToolResult{CallID: "a", Tool: "fs.read", Output: "old"},
				event.ToolResult{CallID: "b", Tool: "shell.exec", Output: "ok", ExitCode: &zero},
				ended(event.Outcome{Reason: event.ReasonConditionMet, Kind: "tool-result", Cycles: 7}),
			},
			eval.Extract{FinalToolResult: &eval.ToolResult{CallID: "b", Tool: "shell.exec", Output: "ok", ExitCode: &zero}, Cycles: 7, TerminatedBy: "tool-result"},
		},
		"a limit": {
			[]event.Data{event.ToolResult{CallID: "a", Tool: "fs.read", Output: "no such file", IsError: true}, ended(event.Outcome{Reason: event.BudgetReason("max_tool_calls")})},
			eval.Extract{FinalToolResult: &eval.ToolResult{CallID: "a", Tool: "fs.read", Output: "no such file", IsError: true}, TerminatedBy: "budget:max_tool_calls"},
		},
		"a command of a loop": {
			[]event.Data{event.CommandFinished{ID: "fix.0/0", ExitCode: &two, Output: "FAIL"}, ended(event.Outcome{Reason: event.ReasonMaxIterations})},
			eval.Extract{FinalToolResult: &eval.ToolResult{CallID: "fix.0/0", Tool: "command", Output: "FAIL", ExitCode: &two}, TerminatedBy: "maxIterations"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := eval.Of(events(c.events...))
			if d := cmp.Diff(c.want, got); d != "" || err != nil {
				t.Errorf("%v %s", err, d)
			}
		})
	}
	if _, err := eval.Of(events(event.RunStarted{})); !errors.Is(err, eval.ErrNotEnded) {
		t.Errorf("a run without an end: %v", err)
	}
}

// answers is a judge that gives a fixed answer and records its question.
type answers struct {
	answer string
	asked  eval.Question
}

func (a *answers) Answer(_ context.Context, q eval.Question) (json.RawMessage, error) {
	a.asked = q
	if a.answer == "" {
		return nil, errors.New("no model")
	}
	return json.RawMessage(a.answer), nil
}

// rows: ALDO-67
func TestEachEvaluatorReadsTheExtract(t *testing.T) {
	x := eval.Extract{Text: "The build is Green.", FinalToolResult: &eval.ToolResult{Tool: "shell.exec", Output: "3 passed"}, Cycles: 4, TerminatedBy: "final_answer"}
	criteria := []eval.Criterion{{Text: "names the cause"}, {Text: "adds a test", Weight: 3}}
	rubric := func(passAt float64) eval.Evaluator {
		return eval.Evaluator{Kind: eval.Rubric, Criteria: criteria, PassAt: passAt}
	}
	judge := eval.Evaluator{Kind: eval.LLMJudge, Value: "the tests pass"}
	const second = `{"criteria":[{"number":2,"met":true,"reason":"x_test.go"},{"number":1,"met":false,"reason":"no word of it"}]}`
	for name, c := range map[string]struct {
		e      eval.Evaluator
		answer string
		pass   bool
		score  float64
		reason string
	}{
		"a text that is there":     {eval.Evaluator{Kind: eval.Contains, Value: "Green"}, "", true, 1, "was found"},
		"in another case":          {eval.Evaluator{Kind: eval.Contains, Value: "green"}, "", false, 0, "was not found"},
		"of the tool":              {eval.Evaluator{Kind: eval.Contains, Value: "3 passed", OfTool: true}, "", true, 1, "was found"},
		"a pattern":                {eval.Evaluator{Kind: eval.Regex, Value: `(?i)\bgreen\b`}, "", true, 1, "was found"},
		"a pattern of the tool":    {eval.Evaluator{Kind: eval.Regex, Value: `^4`, OfTool: true}, "", false, 0, "was not found"},
		"a rubric, all of it":      {rubric(0), second, false, 0.75, "1. names the cause: not met (no word of it)"},
		"a rubric, most of it":     {rubric(0.75), second, true, 0.75, "2. adds a test: met (x_test.go)"},
		"a rubric, nothing of one": {rubric(0.1), `{"criteria":[{"number":1,"met":true,"reason":"r"}]}`, true, 0.25, "2. adds a test: not met"},
		"a rubric, two words":      {rubric(0.1), `{"criteria":[{"number":1,"met":false,"reason":"r"},{"number":1,"met":true,"reason":"r"}]}`, false, 0, "not met"},
		"a rubric, exactly":        {rubric(1), `{"criteria":[{"number":1,"met":true,"reason":"r"},{"number":2,"met":true,"reason":"r"}]}`, true, 1, "1. names the cause: met (r)\n2. adds a test: met (r)"},
		"a judge":                  {judge, `{"verdict":"done","reason":"3 passed"}`, true, 1, "3 passed"},
		"a judge that denies":      {judge, `{"verdict":"blocked_on_human","reason":"no key"}`, false, 0, "no key"},
	} {
		t.Run(name, func(t *testing.T) {
			j := &answers{answer: c.answer}
			got, err := c.e.Evaluate(t.Context(), x, j, fence.New("n0nce"))
			if err != nil || got.Pass != c.pass || got.Score != c.score || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("%+v %v", got, err)
			}
			if c.answer == "" {
				return
			}
			for _, part := range []string{"final_answer after 4 cycles", "\">\n3 passed\n</untrusted", "\">\nThe build is Green.\n</untrusted"} {
				if !strings.Contains(j.asked.Task, part) {
					t.Errorf("%q is not in what the judge was told:\n%s", part, j.asked.Task)
				}
			}
			schema, err := tool.CompileSchema(j.asked.Schema)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate([]byte(`{}`)); err == nil {
				t.Error("the schema lets an answer pass that says nothing")
			}
		})
	}
}

func TestWhereNoToolWasCalledNothingIsFoundInItsResult(t *testing.T) {
	for value, want := range map[string]bool{"done": false, "": true} {
		e := eval.Evaluator{Kind: eval.Contains, Value: value, OfTool: true}
		if got, err := e.Read(eval.Extract{Text: "done"}, nil); err != nil || got.Pass != want {
			t.Errorf("%q: %+v, %v", value, got, err)
		}
	}
}

// Criteria are numbered from 1 in the question, in the answer and in errors.
func TestCriteriaCountFromOne(t *testing.T) {
	rubric := eval.Evaluator{Kind: eval.Rubric, Criteria: []eval.Criterion{{Text: "names the cause"}, {Text: " "}}}
	if q, asks := rubric.Ask(eval.Extract{}, fence.Fence{}); !asks || !strings.Contains(q.Task, "\n1. names the cause\n2.  \n") {
		t.Errorf("asks %t\n%s", asks, q.Task)
	}
	if err := rubric.Check(); err == nil || !strings.Contains(err.Error(), "criterion 2 needs a text") {
		t.Errorf("%v", err)
	}
}

func TestAnEvaluatorIsShownInALine(t *testing.T) {
	for want, e := range map[string]eval.Evaluator{
		`contains "x y"`:       {Kind: eval.Contains, Value: "x y"},
		"rubric of 2 criteria": {Kind: eval.Rubric, Criteria: make([]eval.Criterion, 2)},
	} {
		if got := e.String(); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
}

func TestAnEvaluatorThatIsNoneIsRefused(t *testing.T) {
	for name, e := range map[string]eval.Evaluator{
		"no kind":              {},
		"an unknown kind":      {Kind: "guess", Value: "x"},
		"nothing to look for":  {Kind: eval.Contains},
		"no pattern":           {Kind: eval.Regex, Value: "("},
		"an empty rubric":      {Kind: eval.Rubric},
		"an empty criterion":   {Kind: eval.Rubric, Criteria: []eval.Criterion{{}}},
		"more than everything": {Kind: eval.Rubric, Criteria: []eval.Criterion{{Text: "x"}}, PassAt: 2},
		"a judge of nothing":   {Kind: eval.LLMJudge},
	} {
		if _, err := e.Evaluate(t.Context(), eval.Extract{}, &answers{answer: "{}"}, fence.Fence{}); err == nil {
			t.Errorf("%s: it was evaluated", name)
		}
	}
	judge := eval.Evaluator{Kind: eval.LLMJudge, Value: "x"}
	for name, j := range map[string]eval.Judge{"no judge": nil, "a judge without a word": &answers{}, "another word": &answers{answer: `{"verdict":"perhaps","reason":""}`}} {
		if r, err := judge.Evaluate(t.Context(), eval.Extract{}, j, fence.Fence{}); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
