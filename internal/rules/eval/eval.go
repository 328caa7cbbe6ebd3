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

// Kind is what an evaluator goes by.
type Kind string

// The kinds.
const (
	// Contains passes a text in which Value stands.
	Contains Kind = "contains"
	// Regex passes a text in which the pattern Value is found, in the syntax of RE2.
	Regex Kind = "regex"
	// Rubric has a model say of each of the Criteria whether it is met.
	Rubric Kind = "rubric"
	// LLMJudge has a model say whether what Value asks for is done.
	LLMJudge Kind = "llm_judge"
)

// Evaluator judges the extract of a run. It is a value that a file can contain.
// It has two halves, so that a caller with models needs to know nothing of it:
// Ask returns the question for a model, and Read interprets the answer. If Ask
// returns no question, Read decides by the text alone. [Evaluator.Evaluate] does
// both at once. A loop's stop_when can do the same over an iteration: its
// machine starts a child with the question's task and schema, the child's result
// tool returns the answer, and nothing here calls a model or waits for one.
type Evaluator struct {
	Kind  Kind   `json:"kind"`
	Value string `json:"value,omitempty"`
	// Criteria are those of a rubric. It passes from PassAt on, which is a share of
	// their weights; all of them where it is 0.
	Criteria []Criterion `json:"criteria,omitempty"`
	PassAt   float64     `json:"passAt,omitempty"`
	// OfTool has Contains and Regex look at the last result of a tool instead of
	// the text.
	OfTool bool `json:"ofTool,omitempty"`
}

// Criterion is one thing that a rubric asks for.
type Criterion struct {
	Text string `json:"text"`
	// Weight is what it counts beside the others, 1 where it is 0.
	Weight float64 `json:"weight,omitempty"`
}

func (c Criterion) weight() float64 {
	if c.Weight == 0 {
		return 1
	}
	return c.Weight
}

// Question is what a model is asked about a run, and the schema of its answer.
type Question struct {
	Task   string
	Schema json.RawMessage
}

// Judge answers a question by a model: with JSON that its schema allows.
type Judge interface {
	Answer(ctx context.Context, q Question) (json.RawMessage, error)
}

// Result is what an evaluator says of a run.
type Result struct {
	Pass bool `json:"pass"`
	// Score is between 0 and 1; without a rubric it is one of the two.
	Score  float64 `json:"score"`
	Reason string  `json:"reason"`
	// Verdict is a judge's word.
	Verdict event.Verdict `json:"verdict,omitempty"`
}

// Evaluate judges an extract, with the judge for the evaluators that need a
// model. The fence marks the run's words in the judge's task.
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

// Check returns what is wrong with an evaluator.
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

// Read interprets an answer, which is nil if Ask had no question.
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

// String says what the evaluator looks for, in a line.
func (e Evaluator) String() string {
	if e.Kind == Rubric {
		return fmt.Sprintf("%s of %d criteria", e.Kind, len(e.Criteria))
	}
	return fmt.Sprintf("%s %q", e.Kind, e.Value)
}
