package suite

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/expr"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/internal/rules/fence"
)

// Evaluator judges a run in one of several ways.
type Evaluator struct {
	Contains string  `yaml:"contains,omitempty"`
	Regex    string  `yaml:"regex,omitempty"`
	Rubric   *Rubric `yaml:"rubric,omitempty"`
	LLMJudge *Judge  `yaml:"llm_judge,omitempty"`
	CEL      string  `yaml:"cel,omitempty"`
	// OfTool applies Contains and Regex to the last result of a tool.
	OfTool bool `yaml:"of_tool,omitempty"`
}

// Rubric is a list of criteria. In a file it may be the list alone.
type Rubric struct {
	Criteria []spec.RubricCriterion `yaml:"criteria,omitempty" short:"yes"`
	PassAt   float64                `yaml:"pass_at,omitempty"`
	Model    string                 `yaml:"model,omitempty"`
}

func (*Rubric) Expected() string { return "a list of criteria, or {criteria: […], pass_at: 0.8}" }

// Judge is a goal for a model to look for. In a file it may be the text alone.
type Judge struct {
	Prompt string `yaml:"prompt,omitempty" short:"yes"`
	Model  string `yaml:"model,omitempty"`
}

func (*Judge) Expected() string {
	return "what the run should have reached, or {prompt: …, model: …}"
}

// way is a kind of evaluator: its key in a file, and the function that reads it.
type way struct {
	kind eval.Kind
	// of returns the evaluator and its model, false if the file does not use this way.
	of func(*Evaluator) (e eval.Evaluator, model string, used bool)
}

// ways is the table of the ways.
func ways() []way {
	text := func(value func(*Evaluator) string) func(*Evaluator) (eval.Evaluator, string, bool) {
		return func(e *Evaluator) (eval.Evaluator, string, bool) {
			return eval.Evaluator{Value: value(e), OfTool: e.OfTool}, "", value(e) != ""
		}
	}
	return []way{
		{eval.Contains, text(func(e *Evaluator) string { return e.Contains })},
		{eval.Regex, text(func(e *Evaluator) string { return e.Regex })},
		{eval.CEL, text(func(e *Evaluator) string { return e.CEL })},
		{eval.Rubric, func(e *Evaluator) (eval.Evaluator, string, bool) {
			if e.Rubric == nil {
				return eval.Evaluator{}, "", false
			}
			rubric := eval.Evaluator{PassAt: e.Rubric.PassAt}
			for _, c := range e.Rubric.Criteria {
				rubric.Criteria = append(rubric.Criteria, eval.Criterion{Text: c.Text, Weight: c.Weight})
			}
			return rubric, e.Rubric.Model, true
		}},
		{eval.LLMJudge, func(e *Evaluator) (eval.Evaluator, string, bool) {
			if e.LLMJudge == nil {
				return eval.Evaluator{}, "", false
			}
			return eval.Evaluator{Value: e.LLMJudge.Prompt}, e.LLMJudge.Model, true
		}},
	}
}

// Rule returns the evaluator as a rule, and the model that it asks, "" for the judge of
// the suite.
func (e *Evaluator) Rule() (rule eval.Evaluator, model string) {
	for _, w := range ways() {
		if rule, model, used := w.of(e); used {
			rule.Kind = w.kind
			return rule, model
		}
	}
	return eval.Evaluator{}, ""
}

// validate checks an evaluator. judged reports whether the suite names a judge.
func (e *Evaluator) validate(r *decode.Report, path string, judged bool) {
	var used []bool
	var names []string
	for _, w := range ways() {
		_, _, is := w.of(e)
		used, names = append(used, is || r.Reported(decode.Join(path, string(w.kind)))), append(names, string(w.kind))
	}
	decode.Single(r, path, "one of "+strings.Join(names, ", "), used...)
	if r.Reported(path) {
		return
	}
	rule, model := e.Rule()
	if rule.Kind == "" {
		return // its value is reported
	}
	at := decode.Join(path, string(rule.Kind))
	if err := rule.Check(); err != nil && !r.Reported(at) {
		r.At(at, "", "%s", strings.TrimPrefix(err.Error(), fmt.Sprintf("eval: %s: ", rule.Kind)))
	}
	switch _, asks := rule.Ask(eval.Extract{}, fence.Fence{}); {
	case asks && model == "" && !judged:
		decode.Missing(r, at+".model", "a model as provider/name, here or as judge of the suite")
	case model != "":
		named(r, at+".model", model)
	}
	if e.OfTool && rule.Kind != eval.Contains && rule.Kind != eval.Regex {
		r.At(path+".of_tool", "no such key", "a %s has no text to look in", rule.Kind)
	}
	if rule.Kind == eval.CEL {
		spec.CheckExpression(r, at, rule.Value, expr.Scope{Place: expr.Score})
	}
}

// Files are the content of the directory that a case works in: a copy of a directory,
// or texts by their names.
type Files struct {
	Dir   string
	Texts map[string]string
}

// DecodeNode reads both forms.
func (f *Files) DecodeNode(d *decode.Decoder, n *yaml.Node, path string) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value != "":
		f.Dir = n.Value
	case n.Kind == yaml.MappingNode:
		d.Value(n, path, reflect.ValueOf(&f.Texts).Elem())
	default:
		d.Fail(n, path, f.Expected(), "is %s", decode.Describe(n))
	}
}

func (*Files) Expected() string { return "a directory to copy, or a mapping from names to texts" }

// JSONSchema allows both forms.
func (*Files) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "string"},
		map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
	}}
}
