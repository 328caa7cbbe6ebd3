// Package workflow turns workflow files into plans, with the agents of their steps. The
// rules of package spec apply to the agents, limits and hooks in them.
package workflow

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/expr"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// Workflow is a workflow file: the specification's keys, and with apiVersion those of
// this program, which have the tag "ours". Optional numbers are nil if the file does
// not contain them.
type Workflow struct {
	APIVersion  string                    `yaml:"apiVersion,omitempty" oneof:"pawl/v1"`
	Kind        string                    `yaml:"kind,omitempty" oneof:"Workflow"`
	Name        string                    `yaml:"name,omitempty"`
	Description string                    `yaml:"description,omitempty"`
	Version     *int                      `yaml:"version,omitempty"`
	Agents      map[string]*WorkflowAgent `yaml:"agents,omitempty"`
	Includes    map[string]string         `yaml:"includes,omitempty"`
	Steps       []WorkflowStep            `yaml:"steps,omitempty"`
	Options     WorkflowOptions           `yaml:"options,omitempty"`

	Budget      spec.Money        `yaml:"budget,omitempty" ours:"yes"`
	Budgets     spec.Budgets      `yaml:"budgets,omitempty" ours:"yes"`
	Permissions *spec.Permissions `yaml:"permissions,omitempty" ours:"yes"`
	MaxDepth    *int              `yaml:"max_depth,omitempty" ours:"yes"`
	Coordinator *Coordinator      `yaml:"coordinator,omitempty" ours:"yes"`
	Hooks       *spec.Hooks       `yaml:"hooks,omitempty" ours:"yes"`

	// Dir is the directory of the file, File its name there.
	Dir  string `yaml:"-"`
	File string `yaml:"-"`
	// Plan is the plan of the file.
	Plan plan.Plan `yaml:"-"`
	// Uses holds the agents that steps and judges of the plan name, each in the form of
	// an agent file.
	Uses map[string]*spec.Agent `yaml:"-"`
	// Unbuilt lists requests of a valid file that are not supported, so that it cannot
	// run.
	Unbuilt decode.Errors `yaml:"-"`
	// Warnings are problems that the owner should know and that prevent nothing.
	Warnings []decode.Problem `yaml:"-"`
	// Unseen is a warning that matters only if the run has an INPUT: later steps do not
	// receive it.
	Unseen []decode.Problem `yaml:"-"`
}

// workflowExample is the required content of an empty file.
const workflowExample = "a workflow: name, steps"

// WorkflowOptions configure how a workflow runs.
type WorkflowOptions struct {
	MaxConcurrency *int           `yaml:"maxConcurrency,omitempty"`
	OnStepFailure  string         `yaml:"onStepFailure,omitempty" oneof:"cascade skip-dependents abort"`
	Timeout        *spec.Duration `yaml:"timeout,omitempty"`
	StepTimeout    *spec.Duration `yaml:"stepTimeout,omitempty"`
	Isolation      string         `yaml:"isolation,omitempty"`
	Scheduler      string         `yaml:"scheduler,omitempty" oneof:"dependency-first round-robin least-busy"`
	MaxRetries     *int           `yaml:"maxRetries,omitempty"`
}

// WorkflowAgent is an agent of a workflow.
type WorkflowAgent struct {
	Description     string             `yaml:"description,omitempty"`
	Prompt          string             `yaml:"prompt,omitempty"`
	Model           string             `yaml:"model,omitempty"`
	Tools           spec.Names         `yaml:"tools,omitempty"`
	DisallowedTools []string           `yaml:"disallowedTools,omitempty"`
	MaxTurns        *int               `yaml:"maxTurns,omitempty"`
	Temperature     *float64           `yaml:"temperature,omitempty"`
	TopP            *float64           `yaml:"topP,omitempty"`
	ResultSchema    *spec.ResultSchema `yaml:"resultSchema,omitempty"`

	AgentFile   string            `yaml:"file,omitempty" ours:"yes"`
	ModelPolicy *spec.ModelPolicy `yaml:"model_policy,omitempty" ours:"yes"`
	Approvals   map[string]string `yaml:"approvals,omitempty" oneof:"always never protected_paths" ours:"yes"`
}

// WorkflowStep is a step of a workflow or of a loop.
type WorkflowStep struct {
	ID           string         `yaml:"id,omitempty"`
	Agent        string         `yaml:"agent,omitempty"`
	Instructions string         `yaml:"instructions,omitempty"`
	DependsOn    []string       `yaml:"dependsOn,omitempty"`
	ContextFiles []string       `yaml:"contextFiles,omitempty"`
	Model        string         `yaml:"model,omitempty"`
	Timeout      *spec.Duration `yaml:"timeout,omitempty"`
	Retries      *int           `yaml:"retries,omitempty"`
	MaxRetries   *int           `yaml:"maxRetries,omitempty"`
	Condition    string         `yaml:"condition,omitempty"`
	Include      string         `yaml:"include,omitempty"`
	Loop         *WorkflowLoop  `yaml:"loop,omitempty"`

	Workflow string   `yaml:"workflow,omitempty" ours:"yes"`
	Input    string   `yaml:"input,omitempty" ours:"yes"`
	Command  []string `yaml:"command,omitempty" ours:"yes"`

	// text holds the instructions, read from their file if they have one, and files
	// holds the contents of the context files.
	text  string
	files []plan.File
}

// Coordinator is the agent that receives messages of steps, or false for none.
type Coordinator struct {
	Off      bool   `yaml:"-"`
	Model    string `yaml:"model,omitempty"`
	Prompt   string `yaml:"prompt,omitempty"`
	MaxTurns *int   `yaml:"maxTurns,omitempty"`
}

func (c *Coordinator) DecodeNode(d *decode.Decoder, n *yaml.Node, path string) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!bool" && n.Value == "false" {
		c.Off = true
		return
	}
	d.Object(n, path, reflect.ValueOf(c).Elem())
}

func (*Coordinator) Expected() string { return "{model: …, prompt: …, maxTurns: …}, or false" }

// JSONSchema returns the short form: none.
func (*Coordinator) JSONSchema() map[string]any { return map[string]any{"const": false} }

// Parse validates a workflow file's content. The files that it names are read
// relative to path. The error is [decode.Errors].
func Parse(path string, data []byte, o spec.Options) (*Workflow, error) {
	checker, err := expr.NewChecker()
	if err != nil {
		return nil, err
	}
	shared := &workflowFiles{
		options: o, checker: checker, uses: map[string]*spec.Agent{}, root: filepath.Dir(spec.Absolute(path)), runs: map[string]*workflowFile{},
	}
	f := shared.parse(path, data)
	if len(shared.found) > 0 {
		return nil, shared.found
	}
	w := f.w
	w.Plan, w.Uses, w.Unbuilt, w.Warnings = f.whole(), shared.uses, shared.unbuilt, shared.noted
	w.Unseen = f.unseenInput(&w.Plan)
	without := slices.DeleteFunc(slices.Sorted(maps.Keys(w.Uses)), func(name string) bool { return o.Model != "" || len(w.Uses[name].Chain()) > 0 })
	if len(without) > 0 {
		w.Warnings = append(w.Warnings, decode.Problem{File: path, Message: "no model is named for " + strings.Join(without, ", ") +
			", so a run needs --model, or the class default in the config file"})
	}
	return w, nil
}

// workflowFiles holds a workflow file and the files that it includes.
type workflowFiles struct {
	options spec.Options
	checker *expr.Checker
	// open lists the absolute paths of the files being read, outermost first.
	open []string
	uses map[string]*spec.Agent
	// root is the directory of the outermost run's file. runs maps the names of runs to
	// the files that steps run. above lists the absolute paths of the files that run
	// these, and of is the suffix of the names of their agents.
	root  string
	runs  map[string]*workflowFile
	above []string
	of    string

	// found holds errors, noted holds warnings, and unbuilt holds requests of valid
	// files that are not supported.
	found, noted, unbuilt decode.Errors
}

// workflowFile is one file of [workflowFiles].
type workflowFile struct {
	*decode.Report
	*workflowFiles
	w *Workflow
	// data is the text of the file.
	data []byte
	// included maps the paths of steps to the files that they include.
	included map[string]*workflowFile
	// imported maps the names of agents from included files to the files that define
	// them.
	imported map[string]*workflowFile
}

// fail and the following methods call those of the report.
func (f *workflowFile) fail(path, expected, format string, args ...any) {
	f.At(path, expected, format, args...)
}

// parse parses one file and all files that it includes.
func (s *workflowFiles) parse(path string, data []byte) *workflowFile {
	abs := spec.Absolute(path)
	s.open = append(s.open, abs)
	defer func() { s.open = s.open[:len(s.open)-1] }()
	f := &workflowFile{
		Report: decode.New(path), workflowFiles: s, data: data,
		w: &Workflow{Dir: filepath.Dir(path)}, included: map[string]*workflowFile{}, imported: map[string]*workflowFile{},
	}
	if s.options.Sent {
		f.w.Dir = s.options.Dir
	}
	if path != "" {
		f.w.File = filepath.Base(path)
	}
	if f.Fill(f.w, data, workflowExample, maxWorkflowValues) {
		f.validate()
	}
	s.found = slices.Concat(s.found, f.Report.All())
	s.noted = slices.Concat(s.noted, f.Report.Warnings.Sorted())
	return f
}

// validateHooks checks the hooks of the workflow by the rules of an agent file.
func (f *workflowFile) validateHooks() {
	if f.w.Hooks == nil {
		return
	}
	if f.options.Sent && len(f.w.Hooks.All()) > 0 {
		f.fail("hooks", "a file without it", "starts programs of this machine, which a file that was sent may not")
		f.w.Hooks = nil
		return
	}
	f.w.Hooks.Validate(f.Report, f.w.Limits(), f.options)
}

// hook adds the hooks of the workflow to all agents of its run, before their own. A
// step that is a run has the hooks of that run's file.
func (f *workflowFile) hook() {
	if len(f.w.Hooks.All()) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.uses)) {
		if _, of, _ := strings.Cut(name, innerOf); of != f.of {
			continue
		}
		if f.uses[name].Composite != nil {
			f.notBuilt("hooks", "hooks of a workflow with a team ("+name+")")
			continue
		}
		a := *f.uses[name]
		a.Hooks = hooksBefore(f.w.Hooks, a.Hooks, spec.Absolute(f.w.Dir))
		f.uses[name] = &a
	}
}

// hooksBefore returns the hooks h, whose paths are relative to dir, followed by an agent's
// own.
func hooksBefore(h, own *spec.Hooks, dir string) *spec.Hooks {
	if own == nil {
		own = &spec.Hooks{}
	}
	both := func(own []spec.Hook, lists ...[]spec.Hook) (all []spec.Hook) {
		for _, hook := range slices.Concat(lists...) {
			if hook.Dir = hook.From(dir); slices.ContainsFunc(own, func(o spec.Hook) bool { return hook.Name != "" && o.Name == hook.Name }) {
				hook.Name += " of the workflow"
			}
			all = append(all, hook)
		}
		return append(all, own...)
	}
	return &spec.Hooks{
		BeforeRun:        both(own.BeforeRun, h.BeforeRun),
		BeforeTool:       both(slices.Concat(own.BeforeTool, own.PreToolUse), h.BeforeTool, h.PreToolUse),
		AfterTool:        both(slices.Concat(own.AfterTool, own.PostToolUse), h.AfterTool, h.PostToolUse),
		BeforeCompaction: both(own.BeforeCompaction, h.BeforeCompaction),
		AfterCompaction:  both(own.AfterCompaction, h.AfterCompaction),
		AfterRun:         both(own.AfterRun, h.AfterRun),
	}
}
