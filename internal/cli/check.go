package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/files/suite"
)

// checked is the result of checking a file.
type checked struct {
	File     string           `json:"file"`
	OK       bool             `json:"ok"`
	Errors   []decode.Problem `json:"errors"`
	Warnings []decode.Problem `json:"warnings"`
	// Instructions are the files that a run would read as the owner's text.
	Instructions []string `json:"instructions,omitempty"`
}

func (a *app) checkCommand() *cobra.Command {
	var asJSON bool
	var explain, call, workspace, graph string
	var connect bool
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "Validate agent and workflow files without calling a model",
		Long: "Validate agent and workflow files without calling a model: every problem of every file, with its line,\n" +
			"its column and what was expected. The exit code is 0 when all files are right, else 2.\n" +
			"If only this machine would refuse to run a file, that is a warning.\n\n" +
			"With --explain it prints what would happen to one call: whether it is allowed, denied or asked\n" +
			"about, what is known about it, which rules match (the first of them decides), and in which\n" +
			"sandbox it would run on this machine. The call is not run. CALL is a tool and its arguments in\n" +
			"JSON; if the tool needs only one text, such as a command, a path or a URL, the text is enough.\n\n" +
			"With --call it runs one call of a program of tools.commands, in the sandbox that a run would have,\n" +
			"and prints its result. The exit code is 0 when the call succeeded, else 1.\n\n" +
			"With --connect it starts the MCP servers of a file as a run would, and prints each tool with its\n" +
			"effect, risk, labels, the hints of the server and about how many tokens it takes in each request.",
		Example: "  pawl check agent.yaml\n  pawl check agents/*.yaml --json\n  pawl check workflow.yaml --graph\n" +
			"  pawl check agent.yaml --explain 'shell.exec rm -rf build'\n" +
			"  pawl check agent.yaml --explain 'fs.write {\"path\": \".git/config\", \"content\": \"x\"}' --workspace project\n" +
			"  pawl check agent.yaml --call 'ticket.lookup {\"id\": 1}'\n" +
			"  pawl check agent.yaml --connect",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			host, _, err := a.host(c.Context())
			if err != nil {
				return err
			}
			o := launch.Options{Flags: launch.Flags{Workspace: workspace}, Host: host}
			switch {
			case explain != "":
				return a.explain(args, explain, o, asJSON)
			case call != "":
				return a.callProgram(c.Context(), args, call, o, asJSON)
			case connect:
				return a.connectServers(c.Context(), args, o, asJSON)
			case graph != "":
				return a.draw(args, graph, o)
			}
			files := make([]checked, len(args))
			for i, path := range args {
				files[i] = check(path, o)
			}
			return a.reportChecked(files, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().StringVar(&explain, "explain", "", "print what the policy would do with `CALL`, a tool and its arguments")
	c.Flags().StringVar(&call, "call", "", "run `CALL`, a program of tools.commands and its arguments, outside a run")
	c.Flags().BoolVar(&connect, "connect", false, "start the MCP servers of a file and print their tools")
	c.Flags().StringVar(&graph, "graph", "", "draw a workflow: tree, or mermaid for a Mermaid flowchart")
	c.Flags().Lookup("graph").NoOptDefVal = graphTree
	c.Flags().StringVar(&workspace, "workspace", "", "directory that the paths in the call are relative to (default: the current one)")
	return c
}

// The formats for drawing a workflow.
const (
	graphTree    = "tree"
	graphMermaid = "mermaid"
)

// draw prints the plans of files.
func (a *app) draw(paths []string, as string, o launch.Options) error {
	if as != graphTree && as != graphMermaid {
		return usagef("--graph is %q; it can be tree or mermaid", as)
	}
	for _, path := range paths {
		f, err := kinds.Read(path)
		if err != nil {
			return fileError([]string{path}, err)
		}
		p, err := f.Plan(o)
		if err != nil {
			return usageError(err)
		}
		drawn := p.Tree()
		if as == graphMermaid {
			drawn = p.Mermaid()
		}
		if err := a.printf("%s", harmless(drawn)); err != nil {
			return err
		}
	}
	return nil
}

func check(path string, o launch.Options) checked {
	var warnings []decode.Problem
	f, err := kinds.Read(path)
	switch {
	case err != nil:
	case spec.ParseHeading(f.Text).Kind == suite.Kind:
		var s *suite.Suite
		if s, err = suite.Parse(path, f.Text); err == nil {
			warnings = s.Warnings
		}
	default:
		warnings, err = f.Check(o)
	}
	c := checked{File: path, OK: err == nil, Errors: []decode.Problem{}, Warnings: append([]decode.Problem{}, warnings...)}
	if a, err := spec.Restore(path, f.Text); err == nil && c.OK {
		c.Instructions = a.Instructions
	}
	var problems decode.Errors
	switch {
	case errors.As(err, &problems):
		c.Errors = problems
	case err != nil:
		c.Errors = []decode.Problem{{File: path, Message: "cannot be read: " + unreadable(err)}}
	}
	return c
}

// unreadable returns why a file cannot be read, without its name.
func unreadable(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), "spec: ")
}

// reportChecked prints the results; the exit code reports whether all files are
// right.
func (a *app) reportChecked(files []checked, asJSON bool) error {
	ok := !slices.ContainsFunc(files, func(c checked) bool { return !c.OK })
	var err error
	if asJSON {
		err = a.printJSON(struct {
			OK    bool      `json:"ok"`
			Files []checked `json:"files"`
		}{ok, files})
	} else {
		err = a.printChecked(files)
	}
	switch {
	case err != nil:
		return err
	case !ok:
		return withCode(exitUsage)
	}
	return nil
}

func (a *app) printChecked(files []checked) error {
	for _, c := range files {
		for _, p := range c.Errors {
			fmt.Fprintln(a.err, harmless(p.String()))
		}
		for _, p := range c.Warnings {
			fmt.Fprintln(a.err, "warning:", harmless(p.String()))
		}
		if !c.OK {
			continue
		}
		with := ""
		if len(c.Instructions) > 0 {
			with = ", with the instructions of " + harmless(strings.Join(c.Instructions, ", "))
		}
		if err := a.printf("%s: ok%s\n", c.File, with); err != nil {
			return err
		}
	}
	return nil
}
