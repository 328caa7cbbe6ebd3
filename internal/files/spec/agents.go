package spec

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl/internal/files/decode"
)

// AgentTool is an agent file that is offered to the model as a tool with one argument,
// task. A call starts a run of that file, and returns its final output.
type AgentTool struct {
	Name        string `yaml:"name,omitempty"`
	Description string `yaml:"description,omitempty"`
	File        string `yaml:"file,omitempty"`
	MaxDepth    *int   `yaml:"max_depth,omitempty"`
	// Concurrent reports whether calls run beside others, nil if that follows from the
	// agent's tools. Isolation selects its working directory.
	Concurrent *bool  `yaml:"concurrent,omitempty"`
	Isolation  string `yaml:"isolation,omitempty" oneof:"none worktree"`

	// Derived is the offered agent if it has no file of its own, otherwise nil.
	Derived *Agent `yaml:"-"`
}

// Isolated reports whether each run of the agent works in a separate git worktree.
func (t AgentTool) Isolated() bool { return t.Isolation == "worktree" }

// MaxLevels bounds the levels of runs below the first.
const MaxLevels = 7

// Source says where an agent is defined: in a file of its own, or within the file of a
// workflow, a team or a loop.
type Source struct {
	File string
	// Agent is the agent's name within the file, empty for an agent with a file of its
	// own. An agent within such an agent has the names of both.
	Agent string
}

// withinFile separates the parts of a source in its text.
const withinFile = "#agents."

// SourceOf parses the text of a source.
func SourceOf(text string) Source {
	file, agent, _ := strings.Cut(text, withinFile)
	return Source{file, agent}
}

// Of returns the source of an agent that the file or the agent defines.
func (s Source) Of(agent string) Source { return SourceOf(s.String() + withinFile + agent) }

// Within reports whether the agent is defined in a file that is not its own.
func (s Source) Within() bool { return s.Agent != "" }

// Nested reports whether another agent within the file defines the agent.
func (s Source) Nested() bool { return strings.Contains(s.Agent, withinFile) }

// Name returns the name that the agent has where it is defined.
func (s Source) Name() string {
	if i := strings.LastIndex(s.Agent, withinFile); i >= 0 {
		return s.Agent[i+len(withinFile):]
	}
	return s.Agent
}

// String returns the text of a source.
func (s Source) String() string {
	if s.Agent == "" {
		return s.File
	}
	return s.File + withinFile + s.Agent
}

// Source returns the absolute path of the offered file, relative to a directory.
func (t AgentTool) Source(dir string) string { return Absolute(PathIn(dir, t.File)) }

// Absolute returns the absolute form of a path.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// AgentNames returns the names of the agents that are offered.
func (t *Tools) AgentNames() []string {
	var names []string
	for _, a := range t.Agents {
		names = append(names, a.Name)
	}
	return names
}

func (a *Agent) validateAgents(r *decode.Report, o Options) {
	for i, t := range a.Tools.Agents {
		path := fmt.Sprintf("tools.agents[%d]", i)
		t.validate(r, path, o)
		if t.Name != "" && slices.ContainsFunc(a.Tools.Agents[:i], func(other AgentTool) bool { return other.Name == t.Name }) {
			r.At(path+".name", "each name once", "%q is given twice", t.Name)
		}
		if t.Concurrent != nil && *t.Concurrent && a.Effective().ToolDispatch == "serial" {
			r.Warn(path+".concurrent", "has no effect with tool_dispatch: serial")
		}
		if t.File == "" || o.CheckAgent == nil {
			continue
		}
		if err := o.CheckAgent(t.Source(a.Dir)); err != nil {
			r.At(path+".file", "an agent file, relative to this one", "%v", err)
		}
	}
}

// NotHere is a warning about a valid file that cannot run in this workspace.
const NotHere = "'pawl run' refuses this in this workspace: %s"

func (t AgentTool) validate(r *decode.Report, path string, o Options) {
	switch {
	case t.Name == "":
		decode.Missing(r, path+".name", "what the model calls the agent by")
	case strings.ContainsFunc(t.Name, unicode.IsSpace):
		r.At(path+".name", "a name without spaces", "%q has some", t.Name)
	case slices.Contains(o.Tools, t.Name):
		r.At(path+".name", "a name that no tool has", "%s is a tool", strconv.Quote(t.Name))
	}
	if strings.TrimSpace(t.Description) == "" {
		decode.Missing(r, path+".description", "what the model is to call the agent for")
	}
	if t.File == "" {
		decode.Missing(r, path+".file", "the path of an agent file, relative to this one")
	}
	decode.Within(r, path+".max_depth", t.MaxDepth, 1, MaxLevels)
	if t.Isolated() && o.CheckWorktrees != nil {
		refused, err := o.CheckWorktrees()
		if err != nil {
			r.At(path+".isolation", "none, or a workspace in a git repository", "%v", err)
		} else if refused != "" {
			r.Warn(path+".isolation", NotHere, refused)
		}
	}
}
