package spec

import (
	"path/filepath"
	"reflect"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// Goal is a goal file: one objective, the evidence that it is reached, and the agent
// that works on it.
type Goal struct {
	APIVersion string    `yaml:"apiVersion,omitempty" oneof:"pawl/v1"`
	Kind       string    `yaml:"kind,omitempty" oneof:"Goal"`
	Identity   Identity  `yaml:"identity,omitempty"`
	Objective  Objective `yaml:"objective,omitempty"`
	Done       *Done     `yaml:"done,omitempty"`
	// Validation is checked after each iteration, as evidence.
	Validation []Evidence `yaml:"validation,omitempty"`
	// Agent is the path of the agent file that does the work; without it the goal
	// contains the agent's keys.
	Agent       string      `yaml:"agent,omitempty"`
	ModelPolicy ModelPolicy `yaml:"model_policy,omitempty"`
	Prompt      Prompt      `yaml:"prompt,omitempty"`
	Tools       Tools       `yaml:"tools,omitempty"`

	Plan        *GoalPlan    `yaml:"plan,omitempty"`
	Checkpoints *Checkpoints `yaml:"checkpoints,omitempty"`
	Budgets     Budgets      `yaml:"budgets,omitempty"`
	Stop        []GoalStop   `yaml:"stop,omitempty"`
	// ReviewTimeout bounds the time for a person's answer to any question of the goal.
	ReviewTimeout *Seconds `yaml:"review_timeout,omitempty"`

	// Dir is the directory of the file, File its name there.
	Dir  string `yaml:"-"`
	File string `yaml:"-"`
	// Steps is the plan, and Uses its agents, each in the form of an agent file.
	Steps plan.Plan         `yaml:"-"`
	Uses  map[string]*Agent `yaml:"-"`
	// Warnings are problems that the owner should know and that prevent nothing.
	Warnings []decode.Problem `yaml:"-"`
}

// Objective is the objective of a goal.
type Objective string

func (*Objective) Expected() string { return "one objective, as one sentence" }

// Done sets when the goal is done: all of When must hold, then the judge and then a
// person must agree.
type Done struct {
	When  []Evidence `yaml:"when,omitempty"`
	Judge *LoopJudge `yaml:"judge,omitempty"`
	Human bool       `yaml:"human,omitempty"`
}

// Evidence is a check without a person.
type Evidence struct {
	Command *EvidenceCommand `yaml:"command,omitempty"`
	CEL     string           `yaml:"cel,omitempty"`
}

// EvidenceCommand is a program whose exit code is the evidence. In a file it may be the
// list of its arguments alone.
type EvidenceCommand struct {
	Argv    []string  `yaml:"argv,omitempty" short:"yes"`
	Timeout *Duration `yaml:"timeout,omitempty"`
}

func (*EvidenceCommand) Expected() string {
	return "a list of arguments, or {argv: [...], timeout: 2m}"
}

// GoalPlan holds the steps to the objective, or auto: a model writes them first.
type GoalPlan struct {
	Auto  bool
	Steps []string
}

func (p *GoalPlan) DecodeNode(d *decode.Decoder, n *yaml.Node, path string) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "auto":
		p.Auto = true
	case n.Kind == yaml.SequenceNode:
		d.List(n, path, reflect.ValueOf(&p.Steps).Elem())
	default:
		d.Fail(n, path, p.Expected(), "is %s", decode.Describe(n))
	}
}

func (*GoalPlan) Expected() string { return "auto, or a list of steps" }

// JSONSchema allows both forms.
func (*GoalPlan) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"const": "auto"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}}
}

// Checkpoints set when a goal reviews its progress.
type Checkpoints struct {
	Every Every `yaml:"every,omitempty"`
}

// Every is a number of iterations, or a duration.
type Every struct {
	Iterations int
	Time       time.Duration
}

func (e *Every) DecodeNode(d *decode.Decoder, n *yaml.Node, path string) {
	var lasts Duration
	if i, whole := decode.WholeNumber(n); n.Kind == yaml.ScalarNode && whole {
		if i < 1 || i > mostIterations {
			d.Fail(n, path, e.Expected(), "is %s", decode.Describe(n))
			return
		}
		e.Iterations = int(i)
		return
	}
	if n.Kind != yaml.ScalarNode {
		d.Fail(n, path, e.Expected(), "is %s", decode.Describe(n))
		return
	}
	lasts.DecodeNode(d, n, path)
	if e.Time = time.Duration(lasts); e.Time == 0 && !d.Reported(path) {
		d.Fail(n, path, e.Expected(), "is no time")
	}
}

func (*Every) Expected() string { return "a number of iterations, or a time such as 15m" }

// JSONSchema allows both forms.
func (*Every) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}}
}

// GoalStop is a rule that ends a goal before it is done.
type GoalStop struct {
	MaxIterations *int `yaml:"max_iterations,omitempty"`
	Failures      *int `yaml:"failures,omitempty"`
	FinalAnswer   bool `yaml:"final_answer,omitempty"`
}

// ParseGoal validates a goal file's content. The files that it names are read relative
// to path. The error is [decode.Errors].
func ParseGoal(path string, data []byte, o Options) (*Goal, error) {
	g, r := decodeGoal(path, data)
	if g != nil {
		g.validate(r, o)
		g.Warnings = r.Warnings.Sorted()
	}
	if len(r.Problems) > 0 {
		return nil, r.All()
	}
	g.Steps = g.plan()
	return g, nil
}

// RestoreGoal parses a goal file that was validated when a run of it began; see
// [RestoreWorkflow].
func RestoreGoal(path string, data []byte) (*Goal, error) {
	g, r := decodeGoal(path, data)
	if g == nil || len(r.Problems) > 0 {
		return nil, r.Problems
	}
	return g, nil
}

// decodeGoal returns nil if the text is not a goal file at all.
func decodeGoal(path string, data []byte) (*Goal, *decode.Report) {
	r, g := decode.New(path), &Goal{Dir: filepath.Dir(path)}
	if path != "" {
		g.File = filepath.Base(path)
	}
	if !r.Fill(g, data, "a goal: objective, done, validation", 0) {
		return nil, r
	}
	return g, r
}

// Limits returns the limits of the goal with all its runs, and the permissions of its
// commands, in the form of an agent.
func (g *Goal) Limits() *Agent {
	root := &Agent{
		Identity: g.Identity, ModelPolicy: ModelPolicy{Budget: g.ModelPolicy.Budget}, Tools: (&Agent{Tools: g.Tools}).CommandTools(), Dir: g.Dir, File: g.File,
	}
	root.Budgets, _ = g.budgets()
	return root
}

// budgets separates the limits of all runs of the goal together from those of each run,
// with the actions at each.
func (g *Goal) budgets() (ofAll, ofEach Budgets) {
	ofAll.Limits, ofEach.Limits = g.Budgets.SplitSums()
	for setting, action := range g.Budgets.Actions {
		var l budget.Limits
		of := &ofEach
		if err := l.Set(setting, 1); err == nil {
			if sums, _ := l.SplitSums(); sums != (budget.Limits{}) {
				of = &ofAll
			}
		}
		if of.Actions == nil {
			of.Actions = BudgetActions{}
		}
		of.Actions[setting] = action
	}
	return ofAll, ofEach
}

// CommandTools returns the settings of an agent file for commands that no model
// requests.
func (a *Agent) CommandTools() Tools {
	return Tools{Permissions: a.Tools.Permissions, ProtectedPaths: a.Tools.ProtectedPaths}
}
