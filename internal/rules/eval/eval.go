package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
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
	// CEL passes if the expression Value over the [Variables] of the run is true. The
	// caller evaluates it, and passes the value to Read as the answer.
	CEL Kind = "cel"
)

// method is how the evaluators of a kind work.
type method struct {
	kind Kind
	// fault returns what is wrong with an evaluator, "" for nothing.
	fault func(Evaluator) string
	// ask returns what a model is asked, nil if no model is needed.
	ask func(Evaluator) (wanted string, schema json.RawMessage)
	// read judges an extract with the answer to the question.
	read func(Evaluator, Extract, json.RawMessage) (Result, error)
}

// methods is the table of the kinds.
func methods() []method {
	return []method{
		{Contains, needsValue, nil, func(e Evaluator, x Extract, _ json.RawMessage) (Result, error) {
			return passed(strings.Contains(e.subject(x), e.Value), fmt.Sprintf("%q", e.Value)), nil
		}},
		{Regex, noPattern, nil, readPattern},
		{Rubric, badRubric, askRubric, func(e Evaluator, _ Extract, answer json.RawMessage) (Result, error) { return e.readRubric(answer) }},
		{LLMJudge, needsValue, func(e Evaluator) (string, json.RawMessage) { return e.Value, VerdictSchema() },
			func(_ Evaluator, _ Extract, answer json.RawMessage) (Result, error) { return readVerdict(answer) }},
		{CEL, needsValue, nil, readValue},
	}
}

func (e Evaluator) method() (method, bool) {
	all := methods()
	i := slices.IndexFunc(all, func(m method) bool { return m.kind == e.Kind })
	if i < 0 {
		return method{}, false
	}
	return all[i], true
}

// Kinds returns the kinds of evaluators.
func Kinds() []Kind {
	var kinds []Kind
	for _, m := range methods() {
		kinds = append(kinds, m.kind)
	}
	return kinds
}

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

// Check validates an evaluator. It does not compile the expression of [CEL].
func (e Evaluator) Check() error {
	m, known := e.method()
	if !known {
		return fmt.Errorf("eval: %q is no kind of evaluator: %v", e.Kind, Kinds())
	}
	if fault := m.fault(e); fault != "" {
		return fmt.Errorf("eval: %s: %s", e.Kind, fault)
	}
	return nil
}

func needsValue(e Evaluator) string {
	if strings.TrimSpace(e.Value) == "" {
		return "it has no value"
	}
	return ""
}

func noPattern(e Evaluator) string {
	if _, err := regexp.Compile(e.Value); err != nil || e.Value == "" {
		return fmt.Sprintf("%q is no pattern: %v", e.Value, err)
	}
	return ""
}

func badRubric(e Evaluator) string {
	if len(e.Criteria) == 0 {
		return "it has no criteria"
	}
	for i, c := range e.Criteria {
		if strings.TrimSpace(c.Text) == "" || !(c.Weight >= 0) {
			return fmt.Sprintf("criterion %d needs a text, and a weight that is not negative", i+1)
		}
	}
	if !(e.PassAt >= 0 && e.PassAt <= 1) {
		return fmt.Sprintf("it passes at %v, which is no share of 1", e.PassAt)
	}
	return ""
}

// Read interprets an answer. answer is nil if Ask returned no question; for [CEL] it is
// the value of the expression.
func (e Evaluator) Read(x Extract, answer json.RawMessage) (Result, error) {
	m, known := e.method()
	if !known {
		return Result{}, e.Check()
	}
	return m.read(e, x, answer)
}

func readPattern(e Evaluator, x Extract, _ json.RawMessage) (Result, error) {
	re, err := regexp.Compile(e.Value)
	if err != nil {
		return Result{}, fmt.Errorf("eval: %w", err)
	}
	return passed(re.MatchString(e.subject(x)), "/"+e.Value+"/"), nil
}

func readValue(e Evaluator, _ Extract, value json.RawMessage) (Result, error) {
	switch string(value) {
	case "true":
		return Result{Pass: true, Score: 1, Reason: e.Value + " is true"}, nil
	case "false":
		return Result{Reason: e.Value + " is false"}, nil
	}
	return Result{}, fmt.Errorf("eval: %s gives %s, and must give true or false", e.Value, cmp.Or(string(value), "nothing"))
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
