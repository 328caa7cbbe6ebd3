package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/fence"
)

// Kind is the method of an evaluator.
type Kind string

// The kinds.
const (
	// Contains passes if the text contains Value.
	Contains Kind = "contains"
	// Regex passes if the text matches the pattern Value, in RE2 syntax.
	Regex Kind = "regex"
	// Rubric asks a model which of the Criteria are met.
	Rubric Kind = "rubric"
	// LLMJudge asks a model whether the goal in Value is reached.
	LLMJudge Kind = "llm_judge"
)

// Evaluator judges the extract of a run. It is a value that a file can contain. It
// consists of two halves, so that callers with access to models need not know the
// kinds: Ask returns the question for a model, and Read interprets the answer. If Ask
// returns no question, Read judges the text alone. [Evaluator.Evaluate] combines both.
// A loop's stop_when uses the halves for an iteration: its machine starts a child with
// the question's task and schema, and the child's result tool returns the answer. This
// package never calls a model.
type Evaluator struct {
	Kind  Kind   `json:"kind"`
	Value string `json:"value,omitempty"`
	// Criteria are the criteria of a rubric. The run passes if the criteria that it
	// meets have at least the share PassAt of the total weight; 0 means all.
	Criteria []Criterion `json:"criteria,omitempty"`
	PassAt   float64     `json:"passAt,omitempty"`
	// OfTool applies Contains and Regex to the last tool result instead of the text.
	OfTool bool `json:"ofTool,omitempty"`
}

// Criterion is one criterion of a rubric.
type Criterion struct {
	Text string `json:"text"`
	// Weight is the relative weight; 0 means 1.
	Weight float64 `json:"weight,omitempty"`
}

func (c Criterion) weight() float64 {
	if c.Weight == 0 {
		return 1
	}
	return c.Weight
}

// Question is a model's task for judging a run, with the schema of the answer.
type Question struct {
	Task   string
	Schema json.RawMessage
}

// Judge answers questions with a model. The answer is JSON that matches the schema.
type Judge interface {
	Answer(ctx context.Context, q Question) (json.RawMessage, error)
}

// Result is the judgement of an evaluator.
type Result struct {
	Pass bool `json:"pass"`
	// Score is between 0 and 1. Without a rubric it is exactly 0 or 1.
	Score  float64 `json:"score"`
	Reason string  `json:"reason"`
	// Verdict is the judge's verdict.
	Verdict event.Verdict `json:"verdict,omitempty"`
}

// Evaluate judges an extract. It calls j only for evaluators that need a model. The
// fence marks the run's text in the judge's task.
func (e Evaluator) Evaluate(ctx context.Context, x Extract, j Judge, f fence.Fence) (Result, error) {
	if err := e.Check(); err != nil {
		return Result{}, err
	}
	q, asks := e.Ask(x, f)
	if !asks {
		return e.Read(x, nil)
	}
	if j == nil {
		return Result{}, fmt.Errorf("eval: %s needs a judge", e.Kind)
	}
	answer, err := j.Answer(ctx, q)
	if err != nil {
		return Result{}, fmt.Errorf("eval: ask the judge of %s: %w", e.Kind, err)
	}
	return e.Read(x, answer)
}

// Check validates an evaluator.
func (e Evaluator) Check() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("eval: %s: %s", e.Kind, fmt.Sprintf(format, args...))
	}
	switch e.Kind {
	case Contains, LLMJudge:
		if strings.TrimSpace(e.Value) == "" {
			return wrong("it has no value")
		}
	case Regex:
		if _, err := regexp.Compile(e.Value); err != nil || e.Value == "" {
			return wrong("%q is no pattern: %v", e.Value, err)
		}
	case Rubric:
		if len(e.Criteria) == 0 {
			return wrong("it has no criteria")
		}
		for i, c := range e.Criteria {
			if strings.TrimSpace(c.Text) == "" || !(c.Weight >= 0) {
				return wrong("criterion %d needs a text, and a weight that is not negative", i+1)
			}
		}
		if !(e.PassAt >= 0 && e.PassAt <= 1) {
			return wrong("it passes at %v, which is no share of 1", e.PassAt)
		}
	default:
		return fmt.Errorf("eval: %q is no kind of evaluator: contains, regex, rubric, llm_judge", e.Kind)
	}
	return nil
}

// Read interprets an answer. answer is nil if Ask returned no question.
func (e Evaluator) Read(x Extract, answer json.RawMessage) (Result, error) {
	switch e.Kind {
	case Contains:
		return passed(strings.Contains(e.subject(x), e.Value), fmt.Sprintf("%q", e.Value)), nil
	case Regex:
		re, err := regexp.Compile(e.Value)
		if err != nil {
			return Result{}, fmt.Errorf("eval: %w", err)
		}
		return passed(re.MatchString(e.subject(x)), "/"+e.Value+"/"), nil
	case Rubric:
		return e.readRubric(answer)
	}
	return readVerdict(answer)
}

func (e Evaluator) subject(x Extract) string {
	switch {
	case !e.OfTool:
		return x.Text
	case x.FinalToolResult == nil:
		return ""
	}
	return x.FinalToolResult.Output
}

func passed(pass bool, what string) Result {
	if pass {
		return Result{Pass: true, Score: 1, Reason: what + " was found"}
	}
	return Result{Reason: what + " was not found"}
}

// String returns what the evaluator checks, in one line.
func (e Evaluator) String() string {
	if e.Kind == Rubric {
		return fmt.Sprintf("%s of %d criteria", e.Kind, len(e.Criteria))
	}
	return fmt.Sprintf("%s %q", e.Kind, e.Value)
}
