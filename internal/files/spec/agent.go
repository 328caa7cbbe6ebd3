// Package spec turns files of agents and goals, and config files, into validated values.
//
// Parsing is strict, see [decode]. A setting that is not built yet is an error if it
// guards something or changes what runs, and otherwise a warning. Nothing is ignored
// silently.
package spec

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
)

// The values of apiVersion. Keys of the second one that have no meaning here cause
// warnings.
const (
	Version     = "pawl/v1"
	VersionAldo = "aldo-ai/agent.v1"
)

// Agent is an agent file. Optional numbers are nil if the file does not contain them.
type Agent struct {
	APIVersion  string      `yaml:"apiVersion,omitempty" oneof:"pawl/v1 aldo-ai/agent.v1"`
	Kind        string      `yaml:"kind,omitempty" oneof:"Agent"`
	Identity    Identity    `yaml:"identity,omitempty"`
	ModelPolicy ModelPolicy `yaml:"model_policy,omitempty"`
	// Role selects one of ModelPolicy.Roles, which may contain it as well.
	Role   string `yaml:"role,omitempty" oneof:"architect editor subagent"`
	Prompt Prompt `yaml:"prompt,omitempty"`
	// Instructions are texts of the owner, which System contains.
	Instructions []string `yaml:"instructions,omitempty"`
	// Skills are directories with skills.
	Skills  []string `yaml:"skills,omitempty"`
	Tools   Tools    `yaml:"tools,omitempty"`
	Budgets Budgets  `yaml:"budgets,omitempty"`
	// ResultSchema is the schema of the final answer; nil means text.
	ResultSchema *ResultSchema `yaml:"resultSchema,omitempty"`
	// Settings may stand at the top level or in the iteration block.
	Settings  `yaml:",inline"`
	Iteration *Iteration `yaml:"iteration,omitempty"`

	Hooks *Hooks `yaml:"hooks,omitempty"`

	// Composite makes the agent a team of other agents.
	Composite   *Composite   `yaml:"composite,omitempty"`
	Spawn       *Spawn       `yaml:"spawn,omitempty"`
	Termination *Termination `yaml:"termination,omitempty"`

	// Loop repeats the agent. Its settings may also be at the top level.
	Loop         *Loop `yaml:"loop,omitempty"`
	LoopSettings `yaml:",inline"`

	// The following keys are parsed only to be rejected: they are not built yet, and
	// the schema does not offer them.
	Sandbox any `yaml:"sandbox,omitempty" unbuilt:"yes"`

	// Dir is the directory of the file; its paths are relative to it. File is the
	// file's name there, empty for a text that a client sent.
	Dir  string `yaml:"-"`
	File string `yaml:"-"`
	// System is the system text, read from its file if it has one.
	System string `yaml:"-"`
	// Texts are the files of Instructions as they were read.
	Texts []event.TextFile `yaml:"-"`
	// SkillFiles are the skills in the directories of Skills.
	SkillFiles []event.SkillFile `yaml:"-"`
	// Warnings are problems that the owner should know and that prevent nothing.
	Warnings []decode.Problem `yaml:"-"`

	// systemAt is the position of System, for problems inside it, and taskAt that of
	// the task.
	systemAt, taskAt decode.Problem
	// byClass holds the models of the file's capability classes, and byRole the model
	// of its role if the file names none.
	byClass map[string]string
	byRole  string
	// agents are the agents that the file defines itself, nil if there are none.
	agents []AgentTool
}

// Identity names an agent.
type Identity struct {
	Name        string `yaml:"name,omitempty"`
	Version     string `yaml:"version,omitempty"`
	Description string `yaml:"description,omitempty"`
}

// ModelPolicy selects the models.
type ModelPolicy struct {
	Primary   Model    `yaml:"primary,omitempty"`
	Fallbacks []Model  `yaml:"fallbacks,omitempty"`
	Decoding  Decoding `yaml:"decoding,omitempty"`
	Budget    Money    `yaml:"budget,omitempty"`
	Roles     Roles    `yaml:"roles,omitempty"`
	Role      string   `yaml:"role,omitempty" oneof:"architect editor subagent"`
}

// Model names one model as "provider/model". In a file it is a mapping, or the name
// alone.
type Model struct {
	Model string `yaml:"model,omitempty" short:"yes"`
	// CapabilityClass names a class of the config file.
	CapabilityClass string `yaml:"capability_class,omitempty"`
}

func (*Model) Expected() string { return "{model: provider/model}" }

// Roles are the models of Alfred's roles.
type Roles struct {
	Architect Model `yaml:"architect,omitempty"`
	Editor    Model `yaml:"editor,omitempty"`
	Subagent  Model `yaml:"subagent,omitempty"`
}

// Decoding are the sampling settings.
type Decoding struct {
	Temperature *float64 `yaml:"temperature,omitempty"`
	MaxTokens   *int     `yaml:"max_tokens,omitempty"`
}

// Money bounds the cost of a run.
type Money struct {
	USDPerRun *float64 `yaml:"usd_per_run,omitempty" none:"yes"`
}

// Prompt is the system text, inline or in a file, and the default task of a run.
type Prompt struct {
	System     string `yaml:"system,omitempty"`
	SystemFile string `yaml:"system_file,omitempty"`
	Task       string `yaml:"task,omitempty"`
}

// ReadAgent reads and validates an agent file. The error is [decode.Errors] if the file
// exists and is invalid.
func ReadAgent(path string, o Options) (*Agent, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParseAgent(path, text, o)
}

// ReadFile reads a file of any kind, of bounded size.
func ReadFile(path string) ([]byte, error) {
	text, err := decode.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return text, nil
}

// ParseAgent validates an agent file's content. The files that it names are read
// relative to path; if path ends in ".json", the text is JSON. The error is
// [decode.Errors].
func ParseAgent(path string, data []byte, o Options) (*Agent, error) {
	a, r := decodeAgent(path, data)
	if a != nil {
		if o.Sent {
			a.Dir = o.Dir
			a.refuseFiles(r)
		}
		a.validate(r, o)
		a.Warnings = r.Warnings.Sorted()
	}
	if len(r.Problems) > 0 {
		return nil, r.All()
	}
	return a, nil
}

// FirstLine returns the first problem of a file that another file names.
func FirstLine(err error) string {
	line, _, more := strings.Cut(err.Error(), "\n")
	if more {
		return line + " (and more; pawl check shows all of that file)"
	}
	return line
}

// Restore parses an agent from the text in a run's first event. It was valid when the
// run began, and the run uses what was pinned then, so Restore checks nothing again and
// reads no other file.
func Restore(path string, data []byte) (*Agent, error) {
	a, r := decodeAgent(path, data)
	if a == nil {
		return nil, r.Problems
	}
	return a, nil
}

// Validate checks an agent that was built in code, by the same rules as a file, and
// reads its prompt file. It sets System and Warnings. The error is [decode.Errors],
// without positions.
func (a *Agent) Validate(o Options) error {
	r := &decode.Report{}
	a.validate(r, o)
	a.Warnings = r.Warnings
	if len(r.Problems) > 0 {
		return r.Problems
	}
	return nil
}

// Text returns the agent as a file that [Restore] parses. It contains the system text,
// so that no other file is needed.
func (a *Agent) Text() ([]byte, error) {
	whole := *a
	whole.Prompt = Prompt{System: a.System, Task: a.Prompt.Task}
	whole.Tools.Commands = slices.Clone(a.Tools.Commands)
	whole.Tools.MCPFile, whole.Instructions = "", nil
	for i := range whole.Tools.Commands {
		whole.Tools.Commands[i].ArgsFile = ""
	}
	text, err := yaml.Marshal(&whole)
	if err != nil {
		return nil, fmt.Errorf("spec: write the agent: %w", err)
	}
	return text, nil
}

// decodeAgent returns nil if the text is not an agent file at all.
func decodeAgent(path string, data []byte) (*Agent, *decode.Report) {
	r := decode.New(path)
	root := r.Read(data, "an agent: identity, model_policy, prompt")
	if root == nil || refuseOtherKinds(r, root) {
		return nil, r
	}
	source := SourceOf(path)
	a := &Agent{Dir: filepath.Dir(source.File)}
	if source.File != "" {
		source.File = filepath.Base(source.File)
	}
	a.File = source.String()
	version, _ := scalarOf(root, "apiVersion")
	d := &decode.Decoder{Report: r, Root: reflect.TypeFor[Agent]()}
	if version == VersionAldo {
		d.Lenient = outsideIteration
		dropAldoRole(d, root)
	}
	d.Value(root, "", reflect.ValueOf(a).Elem())
	if root.Kind != yaml.MappingNode {
		return nil, r
	}
	return a, r
}

// outsideIteration reports whether a path is outside the iteration block, which is
// checked strictly in every version.
func outsideIteration(path string) bool { return !strings.HasPrefix(path, "iteration.") }

// dropAldoRole removes ALDO's role of an agent in a team, which is unrelated to the
// role that selects a model.
func dropAldoRole(d *decode.Decoder, root *yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if key := root.Content[i]; key.Value == "role" {
			d.Warnings = append(d.Warnings, d.Problem(key, "role", "", "has no meaning here and is not enforced"))
			root.Content = append(root.Content[:i:i], root.Content[i+2:]...)
			return
		}
	}
}

// refuseOtherKinds reports a file of another kind once, instead of every key that an
// agent does not have.
func refuseOtherKinds(r *decode.Report, root *yaml.Node) bool {
	kind, _ := scalarOf(root, "kind")
	if _, steps := scalarOf(root, "steps"); steps {
		kind = "Workflow"
	}
	switch kind {
	case "Eval":
		r.Fail(root, "kind", "an agent", "this is the suite of an evaluation; run it with pawl eval")
	case "Workflow", "Goal":
		r.Fail(root, "kind", "an agent", "this is a %s", strings.ToLower(kind))
	default:
		return false
	}
	return true
}

// scalarOf returns the text of a key of the file, before it is decoded.
func scalarOf(root *yaml.Node, key string) (text string, given bool) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Kind == yaml.MappingNode && root.Content[i].Value == key {
			return root.Content[i+1].Value, true
		}
	}
	return "", false
}
