package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// Hooks are the owner's programs that run at fixed stages of a run, in declared order.
// PreToolUse and PostToolUse are Alfred's names of before_tool and after_tool.
type Hooks struct {
	BeforeRun        []Hook `yaml:"before_run,omitempty"`
	BeforeTool       []Hook `yaml:"before_tool,omitempty"`
	PreToolUse       []Hook `yaml:"PreToolUse,omitempty"`
	AfterTool        []Hook `yaml:"after_tool,omitempty"`
	PostToolUse      []Hook `yaml:"PostToolUse,omitempty"`
	BeforeCompaction []Hook `yaml:"before_compaction,omitempty"`
	AfterCompaction  []Hook `yaml:"after_compaction,omitempty"`
	AfterRun         []Hook `yaml:"after_run,omitempty"`
}

// Hook is one program that runs as a hook.
type Hook struct {
	// Name defaults to the stage and the hook's index in it.
	Name    string  `yaml:"name,omitempty"`
	Command Command `yaml:"command,omitempty"`
	// Dir is the directory that paths of the command are relative to; it is relative to
	// the directory of the file, which is the default.
	Dir string `yaml:"dir,omitempty"`
	// Tools are the names of the tools whose calls it receives; a star matches any
	// characters; none means all. ToolPattern is Alfred's form of one.
	Tools          []string `yaml:"tools,omitempty"`
	ToolPattern    string   `yaml:"toolPattern,omitempty"`
	TimeoutSeconds *Seconds `yaml:"timeout_seconds,omitempty"`
	// Kind defaults to the kind of the stage's hooks.
	Kind string `yaml:"kind,omitempty" oneof:"gate observer"`
}

// From returns the directory that paths of the command are relative to, given the
// file's directory.
func (h Hook) From(dir string) string { return PathIn(dir, h.Dir) }

// About returns the patterns of the tools whose calls the hook receives.
func (h Hook) About() []string {
	if h.ToolPattern != "" {
		return []string{h.ToolPattern}
	}
	return h.Tools
}

// Command is a program with its arguments, without a shell, or a command line for
// /bin/sh. In a file the first is a list and the second a text.
type Command struct {
	Words []string
	Line  string
}

func (*Command) Expected() string {
	return "a list of a program and its arguments, or a command line as a text"
}

func (c *Command) DecodeNode(d *decode.Decoder, n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.SequenceNode:
		d.List(n, path, reflect.ValueOf(&c.Words).Elem())
	case yaml.ScalarNode:
		d.Scalar(n, path, reflect.ValueOf(&c.Line).Elem())
	default:
		d.Fail(n, path, c.Expected(), "is %s", decode.Describe(n))
	}
}

// JSONSchema allows a list of words or a text.
func (Command) JSONSchema() map[string]any {
	text := map[string]any{"type": "string"}
	return map[string]any{"anyOf": []any{map[string]any{"type": "array", "items": text, "minItems": 1}, text}}
}

// IsZero reports whether there is no command, for the YAML encoder.
func (c Command) IsZero() bool { return c.Line == "" && len(c.Words) == 0 }

// MarshalYAML encodes the form that was decoded.
func (c Command) MarshalYAML() (any, error) {
	if c.Line != "" {
		return c.Line, nil
	}
	return c.Words, nil
}

// HookAt is a hook with its stage and its index in the file.
type HookAt struct {
	Hook
	Stage event.HookStage
	Path  string
}

// All lists the hooks by stage, those of each stage in declared order.
func (h *Hooks) All() []HookAt {
	if h == nil {
		return nil
	}
	var all []HookAt
	for _, l := range []struct {
		stage event.HookStage
		key   string
		hooks []Hook
	}{
		{event.HookBeforeRun, "before_run", h.BeforeRun},
		{event.HookBeforeTool, "before_tool", h.BeforeTool},
		{event.HookBeforeTool, "PreToolUse", h.PreToolUse},
		{event.HookAfterTool, "after_tool", h.AfterTool},
		{event.HookAfterTool, "PostToolUse", h.PostToolUse},
		{event.HookBeforeCompaction, "before_compaction", h.BeforeCompaction},
		{event.HookAfterCompaction, "after_compaction", h.AfterCompaction},
		{event.HookAfterRun, "after_run", h.AfterRun},
	} {
		for i, hook := range l.hooks {
			all = append(all, HookAt{Hook: hook, Stage: l.stage, Path: fmt.Sprintf("hooks.%s[%d]", l.key, i)})
		}
	}
	return all
}

// hookStages returns the keys of the stages.
func hookStages() []string {
	return []string{"before_run", "before_tool", "after_tool", "before_compaction", "after_compaction", "after_run"}
}

func (h *Hooks) Validate(r *decode.Report, a *Agent, o Options) {
	for _, two := range [][2]string{{"before_tool", "PreToolUse"}, {"after_tool", "PostToolUse"}} {
		if r.Has("hooks."+two[0]) && r.Has("hooks."+two[1]) {
			r.At("hooks."+two[1], two[0]+" or "+two[1]+", one of the two", "both are given")
		}
	}
	names := map[string]bool{}
	for _, hook := range h.All() {
		hook.validate(r, a, o)
		if id := string(hook.Stage) + " " + hook.Name; hook.Name != "" {
			if names[id] {
				r.At(hook.Path+".name", "a name for each hook of "+string(hook.Stage), "%q is given twice", hook.Name)
			}
			names[id] = true
		}
	}
}

func (h HookAt) validate(r *decode.Report, a *Agent, o Options) {
	h.checkCommand(r, a, o)
	after := h.Stage == event.HookAfterRun || h.Stage == event.HookAfterCompaction
	if h.Kind == "gate" && after {
		r.At(h.Path+".kind", "observer", "is gate, and there is nothing left to decide in %s", h.Stage)
	}
	if strings.ContainsAny(h.Name, "[]\n") {
		r.At(h.Path+".name", "a name without brackets and line breaks", "is %q", h.Name)
	}
	if t := h.TimeoutSeconds; t != nil {
		seconds := float64(*t)
		decode.Within(r, h.Path+".timeout_seconds", &seconds, 0.001, 3600)
	}
	tools := h.Stage == event.HookBeforeTool || h.Stage == event.HookAfterTool
	switch {
	case len(h.Tools) > 0 && h.ToolPattern != "":
		r.At(h.Path+".toolPattern", "tools or toolPattern, one of the two", "both are given")
	case !tools && len(h.About()) > 0:
		r.At(h.Path+".tools", "no such key", "a hook of %s is about no tool", h.Stage)
	case tools && r.Has(h.Path+".tools") && len(h.Tools) == 0 && !r.Reported(h.Path+".tools"):
		r.At(h.Path+".tools", "at least one tool, or no such key", "is an empty list, so the hook would never run")
	case tools:
		for i, pattern := range h.Tools {
			a.Tools.matched(r, fmt.Sprintf("%s.tools[%d]", h.Path, i), pattern, o)
		}
		if h.ToolPattern != "" {
			a.Tools.matched(r, h.Path+".toolPattern", h.ToolPattern, o)
		}
	}
}

// checkCommand reports a missing program: as a gate it would block every call, and
// a failing observer would go unnoticed.
func (h HookAt) checkCommand(r *decode.Report, a *Agent, o Options) {
	path := h.Path + ".command"
	switch {
	case r.Reported(path):
	case h.Command.IsZero() && !r.Has(path):
		decode.Missing(r, path, h.Command.Expected())
	case strings.TrimSpace(h.Command.Line) == "" && (len(h.Command.Words) == 0 || strings.TrimSpace(h.Command.Words[0]) == ""):
		r.At(path, h.Command.Expected(), "names no program")
	case o.CheckCommand != nil:
		if err := o.CheckCommand(h.From(a.Dir), h.Command); err != nil {
			r.At(path, "a program that can be run, relative to the agent file", "%v", err)
		}
	}
}

// matched reports a pattern that matches no tool of the agent, because a guard with it
// would never run.
func (t *Tools) matched(r *decode.Report, path, pattern string, o Options) {
	fits := func(name string) bool { return policy.MatchTool(pattern, name) }
	switch {
	case o.Tools == nil || slices.ContainsFunc(o.Tools, fits):
	case len(t.MCP) > 0:
	default:
		if meant := decode.Closest(pattern, o.Tools); meant != "" {
			r.At(path, "a tool, or a pattern such as fs.*", "no tool fits %q; did you mean %s?", pattern, meant)
			return
		}
		r.At(path, "a tool, or a pattern such as fs.*", "no tool fits %q", pattern)
	}
}
