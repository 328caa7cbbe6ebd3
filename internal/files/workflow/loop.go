package workflow

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/expr"
	"github.com/pawlrun/pawl/internal/files/spec"
)

// WorkflowLoop repeats a step, or steps of its own.
type WorkflowLoop struct {
	MaxIterations  *int           `yaml:"maxIterations,omitempty"`
	Until          string         `yaml:"until,omitempty"`
	UntilAgent     string         `yaml:"untilAgent,omitempty"`
	ForEach        *ForEach       `yaml:"forEach,omitempty"`
	MaxConcurrency *int           `yaml:"maxConcurrency,omitempty"`
	Delay          *spec.Duration `yaml:"delay,omitempty"`
	Steps          []WorkflowStep `yaml:"steps,omitempty"`
	OutputMode     *string        `yaml:"outputMode,omitempty"`

	StopWhen         []spec.RefineStop `yaml:"stop_when,omitempty" ours:"yes"`
	Carry            *spec.Carry       `yaml:"carry,omitempty" ours:"yes"`
	OnLimit          string            `yaml:"on_limit,omitempty" oneof:"fail ok stopped ask" ours:"yes"`
	OnIterationError string            `yaml:"on_iteration_error,omitempty" oneof:"fail continue" ours:"yes"`
	OnItemError      string            `yaml:"on_item_error,omitempty" oneof:"fail_fast collect continue" ours:"yes"`
	MinSuccess       *MinSuccess       `yaml:"min_success,omitempty" ours:"yes"`
	MaxItems         *int              `yaml:"max_items,omitempty" ours:"yes"`
	JudgeFailuresMax *int              `yaml:"judge_failures_max,omitempty" ours:"yes"`
}

// maxItems bounds the items of a loop.
const maxItems = 100_000

// maxWorkflowValues bounds the expanded aliases of a workflow file.
const maxWorkflowValues = 1 << 20

// ForEach holds the items of a loop: a list, or an expression that returns one.
type ForEach struct {
	Expression string
	Items      []json.RawMessage
}

func (f *ForEach) DecodeNode(d *decode.Decoder, n *yaml.Node, path string) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		f.Expression = n.Value
	case n.Kind == yaml.SequenceNode && len(n.Content) > maxItems:
		d.Fail(n, path, fmt.Sprintf("at most %d items", maxItems), "has %d items", len(n.Content))
	case n.Kind == yaml.SequenceNode:
		f.Items = make([]json.RawMessage, len(n.Content))
		for i, item := range n.Content {
			f.Items[i] = d.JSON(nil, item, fmt.Sprintf("%s[%d]", path, i), 0)
		}
	default:
		d.Fail(n, path, f.Expected(), "is %s", decode.Describe(n))
	}
}

func (*ForEach) Expected() string { return "a list of items, or an expression that gives one" }

// JSONSchema allows a list or an expression.
func (*ForEach) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array"}}}
}

// MinSuccess is how many items must succeed: a number, or a percentage of them.
type MinSuccess struct {
	Items   int
	Percent float64
}

func (m *MinSuccess) DecodeNode(d *decode.Decoder, n *yaml.Node, path string) {
	text, percent := strings.CutSuffix(n.Value, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch i, whole := decode.WholeNumber(n); {
	case n.Kind == yaml.ScalarNode && whole && i > 0 && i <= maxItems:
		m.Items = int(i)
	case n.Kind == yaml.ScalarNode && percent && err == nil && f > 0 && f <= 100:
		m.Percent = f
	default:
		d.Fail(n, path, m.Expected(), "is %s", decode.Describe(n))
	}
}

func (*MinSuccess) Expected() string { return "a number of items, or a percentage such as 80%" }

// JSONSchema allows a number or a percentage.
func (*MinSuccess) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}}
}

// validateLoop checks a step's loop.
func (f *workflowFile) validateLoop(path string, s *WorkflowStep, above scopeOf) {
	l := s.Loop
	if reflect.DeepEqual(*l, WorkflowLoop{}) && !f.Reported(path) {
		f.fail(path, "forEach or maxIterations", "is empty")
		return
	}
	decode.Within(f.Report, path+".maxIterations", l.MaxIterations, 1, 1_000_000)
	decode.Within(f.Report, path+".maxConcurrency", l.MaxConcurrency, 0, 1_000_000)
	decode.Within(f.Report, path+".max_items", l.MaxItems, 1, maxItems)
	decode.Within(f.Report, path+".judge_failures_max", l.JudgeFailuresMax, 1, 1_000_000)
	if l.OutputMode != nil && *l.OutputMode != "" {
		decode.OneOf(f.Report, path+".outputMode", *l.OutputMode, "last", "cumulative")
	}
	if l.ForEach != nil || f.Has(path+".forEach") {
		f.validateForEach(path, l, above)
	} else {
		f.validateRepeat(path, s, l, above)
	}
	if f.Has(path+".steps") && len(l.Steps) == 0 && !f.Reported(path+".steps") {
		f.fail(path+".steps", "at least one step", "is an empty list")
	}
	if len(l.Steps) > 0 {
		for _, key := range []string{"agent", "instructions", "contextFiles", "model"} {
			if at := decode.Join(strings.TrimSuffix(path, ".loop"), key); f.Has(at) {
				f.Warn(at, "has no effect beside loop.steps, whose steps have their own")
			}
		}
		f.validateSteps(path+".steps", l.Steps, scopeOf{loop: loopKind(l), of: l, outer: &above})
	}
}

func (f *workflowFile) validateForEach(path string, l *WorkflowLoop, above scopeOf) {
	for _, key := range []string{"maxIterations", "until", "untilAgent", "delay", "stop_when", "on_limit", "on_iteration_error", "judge_failures_max", "carry"} {
		if f.Has(decode.Join(path, key)) {
			f.fail(decode.Join(path, key), "forEach, or maxIterations with what ends the loop", "a loop over items does not have it")
		}
	}
	at := path + ".forEach"
	switch {
	case l.ForEach == nil || f.Reported(at):
	case l.ForEach.Items == nil && strings.TrimSpace(l.ForEach.Expression) == "":
		f.fail(at, l.ForEach.Expected(), "is empty")
	case l.ForEach.Items == nil:
		f.check(at, l.ForEach.Expression, expr.Scope{Place: expr.Items, Steps: f.results(above.steps)}, &above)
	case len(l.ForEach.Items) == 0:
		f.fail(at, "at least one item", "is an empty list")
	case l.MaxItems != nil && len(l.ForEach.Items) > *l.MaxItems:
		f.fail(at, fmt.Sprintf("at most %d items, as max_items says", *l.MaxItems), "has %d items", len(l.ForEach.Items))
	}
}

func (f *workflowFile) validateRepeat(path string, s *WorkflowStep, l *WorkflowLoop, above scopeOf) {
	if l.MaxIterations == nil {
		decode.Missing(f.Report, path+".maxIterations", "how often the loop may go round, or forEach")
	}
	for _, key := range []string{"maxConcurrency", "on_item_error", "min_success", "max_items"} {
		if f.Has(decode.Join(path, key)) && key != "maxConcurrency" {
			f.fail(decode.Join(path, key), "forEach beside it", "is about loops over items")
		}
	}
	decode.NotEmpty(f.Report, path+".until", l.Until)
	if l.Until != "" {
		f.checkUntil(path+".until", l.Until, s)
	}
	if f.Has(path + ".untilAgent") {
		f.validateJudge(path+".untilAgent", l.UntilAgent)
	}
	l.Carry.Validate(f.Report, path+".carry")
	for i := range l.StopWhen {
		f.validateStop(fmt.Sprintf("%s.stop_when[%d]", path, i), &l.StopWhen[i], s, above)
	}
}

func (f *workflowFile) validateStop(path string, stop *spec.RefineStop, s *WorkflowStep, above scopeOf) {
	stop.Validate(f.Report, path)
	if stop.CEL != "" {
		f.checkUntil(path+".cel", stop.CEL, s)
	}
	if j := stop.Judge; j != nil && j.Agent != "" {
		if f.validateJudge(path+".judge", j.Agent); j.Model != "" || j.Prompt != "" {
			f.fail(path+".judge", "an agent, or a prompt and a model", "has both")
		}
	}
	if stop.Command != nil {
		f.validateArgv(path+".command.argv", stop.Command.Argv)
		stop.Command.Argv = f.arguments(path+".command.argv", stop.Command.Argv, above)
	}
}

// validateJudge checks an agent that ends a loop.
func (f *workflowFile) validateJudge(path, name string) {
	if !f.knownAgent(path, name) {
		return
	}
	const expected = "an agent whose resultSchema has a required property done of type boolean"
	if wrong := unfitToJudge(f.schemaOf(name)); wrong != "" {
		f.fail(path, expected, wrong, name)
	}
}

// unfitToJudge returns why an agent cannot be a judge, by the schema of its result, or
// "".
func unfitToJudge(schema json.RawMessage) string {
	var of struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	var done struct{ Type any }
	switch err := json.Unmarshal(schema, &of); {
	case len(schema) == 0:
		return "the agent %s has no resultSchema"
	case err != nil: // reported with the schema
	case json.Unmarshal(of.Properties["done"], &done) != nil || done.Type != "boolean":
		return "done of the agent %s is no boolean"
	case !slices.Contains(of.Required, "done"):
		return "done of the agent %s is not required"
	}
	return ""
}

// Judges reports whether an agent can end a loop by its result.
func Judges(a *spec.Agent) bool {
	return a.ResultSchema != nil && unfitToJudge(a.ResultSchema.JSON) == ""
}
