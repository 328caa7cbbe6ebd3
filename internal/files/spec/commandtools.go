package spec

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/host/secret"
)

// CommandTool is a program that is offered to the model as a tool. It reads the
// arguments of a call as JSON from its stdin; its output is the result.
type CommandTool struct {
	Name        string `yaml:"name,omitempty"`
	Description string `yaml:"description,omitempty"`
	// Args is the JSON Schema of the arguments, read from ArgsFile if that is set.
	Args     *ResultSchema `yaml:"args,omitempty"`
	ArgsFile string        `yaml:"args_file,omitempty"`
	// Command is the program and its arguments, without a shell. Words that begin with
	// "./" or "../" are relative to the agent file, others to the workspace.
	Command []string `yaml:"command,omitempty"`
	Effect  string   `yaml:"effect,omitempty" oneof:"pure idempotent reconcilable at_most_once"`
	Risk    string   `yaml:"risk,omitempty" oneof:"read_only write execute delete send permission_change financial"`
	// Labels is nil if the file contains none; an empty list means no label.
	Labels  Names    `yaml:"labels,omitempty" oneof:"untrusted private outgoing"`
	Timeout *Seconds `yaml:"timeout,omitempty"`
	// Secrets are names of tools.secrets that the program gets as variables.
	Secrets []string `yaml:"secrets,omitempty"`
	// Network replaces tools.permissions.network for this program.
	Network string `yaml:"network,omitempty" oneof:"none allowlist host"`
}

// Declared returns the labels in the file.
func (c CommandTool) Declared() *event.Labels {
	if c.Labels == nil {
		return nil
	}
	labels, _ := Labels{c.Name: c.Labels}.Of(c.Name)
	return &labels
}

// CommandNames returns the names of the programs that are offered.
func (t *Tools) CommandNames() []string {
	var names []string
	for _, c := range t.Commands {
		names = append(names, c.Name)
	}
	return names
}

// offered returns the names of the tools that the file itself defines.
func (t *Tools) offered() []string { return slices.Concat(t.AgentNames(), t.CommandNames()) }

// validateCommands reads the schemas of the offered programs and checks the programs.
// o.Tools are the tools without those of the file.
func (a *Agent) validateCommands(r *decode.Report, o Options) {
	t := &a.Tools
	for i := range t.Commands {
		c, path := &t.Commands[i], fmt.Sprintf("tools.commands[%d]", i)
		if c.Name != "" && (slices.Contains(t.CommandNames()[:i], c.Name) || slices.Contains(t.AgentNames(), c.Name)) {
			r.At(path+".name", "each name once", "%q is given twice", c.Name)
		}
		c.validateName(r, path, o)
		if strings.TrimSpace(c.Description) == "" {
			decode.Missing(r, path+".description", "what the model is to call the program for")
		}
		c.readSchema(r, a, path)
		c.validateProgram(r, path, a, o)
		if c.Timeout != nil {
			seconds := float64(*c.Timeout)
			decode.Within(r, path+".timeout", &seconds, 0.001, 86_400)
		}
		c.validateSecrets(r, path, t)
	}
}

func (c *CommandTool) validateName(r *decode.Report, path string, o Options) {
	switch {
	case c.Name == "":
		decode.Missing(r, path+".name", "what the model calls the program by")
	case strings.ContainsFunc(c.Name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		r.At(path+".name", "a name without spaces", "%q has some", c.Name)
	case slices.Contains(o.Tools, c.Name), o.Aliases[c.Name] != "":
		r.At(path+".name", "a name that no built-in tool has", "%q is a built-in tool", c.Name)
	}
}

func (c *CommandTool) readSchema(r *decode.Report, a *Agent, path string) {
	switch {
	case c.Args != nil && c.ArgsFile != "":
		r.At(path+".args_file", "args or args_file, one of the two", "both are given")
	case c.Args != nil && c.Args.File != "":
		r.At(path+".args", "a JSON Schema of an object", "is a text; the path of a file stands in args_file")
	case c.Args != nil:
		c.Args.check(r, a, path+".args")
	case c.ArgsFile != "":
		c.Args = &ResultSchema{File: c.ArgsFile}
		c.Args.check(r, a, path+".args_file")
	default:
		decode.NotEmpty(r, path+".args_file", c.ArgsFile)
	}
}

func (c *CommandTool) validateProgram(r *decode.Report, path string, a *Agent, o Options) {
	path += ".command"
	switch {
	case r.Reported(path):
	case len(c.Command) == 0 || strings.TrimSpace(c.Command[0]) == "":
		decode.Missing(r, path, "a list of a program and its arguments")
	case o.CheckProgram != nil:
		if err := o.CheckProgram(a.Dir, c.Command); err != nil {
			r.At(path, "a program that can be run; ./FILE is relative to the agent file, other paths to the workspace", "%v", err)
		}
	}
}

func (c *CommandTool) validateSecrets(r *decode.Report, path string, t *Tools) {
	for i, name := range c.Secrets {
		at := fmt.Sprintf("%s.secrets[%d]", path, i)
		s, declared := t.Secrets[name]
		switch {
		case !secret.ValidName(name) || !declared:
			r.At(at, "a name of tools.secrets", "%q is not one", name)
		case len(s.Hosts) > 0:
			r.At(at, "a secret without hosts", "the hosts of %s would not hold, because a program may send it anywhere", name)
		}
	}
}

// hasSecret reports whether one of the programs has a secret.
func (t *Tools) hasSecret(name string) bool {
	return slices.ContainsFunc(t.Commands, func(c CommandTool) bool { return slices.Contains(c.Secrets, name) })
}
