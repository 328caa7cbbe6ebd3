package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/spec"
)

// checked is what a file turned out to be.
type checked struct {
	File     string         `json:"file"`
	OK       bool           `json:"ok"`
	Errors   []spec.Problem `json:"errors"`
	Warnings []spec.Problem `json:"warnings"`
}

func (a *app) checkCommand() *cobra.Command {
	var asJSON bool
	var explain, workspace string
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "Validate agent files without calling a model",
		Long: "Validate agent files without calling a model: every problem of every file, with its line,\n" +
			"its column and what was expected. The exit code is 0 when all files are right, else 2.\n\n" +
			"With --explain it says of one call whether it would be allowed, denied or asked about, what is\n" +
			"known of the call, which rules spoke (the first of them decides), and in which sandbox it would\nrun on this machine. Nothing of the call is run. CALL is a tool and its arguments in JSON; where the tool\nneeds only one text, such as a command, a path or a URL, that is enough.",
		Example: "  pawl check agent.yaml\n  pawl check agents/*.yaml --json\n" +
			"  pawl check agent.yaml --explain 'shell.exec rm -rf build'\n" +
			"  pawl check agent.yaml --explain 'fs.write {\"path\": \".git/config\", \"content\": \"x\"}' --workspace project",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			config, err := a.config()
			if err != nil {
				return err
			}
			if explain != "" {
				machine, err := a.sandbox(c.Context())
				if err != nil {
					return err
				}
				return a.explain(args, explain, launch.Options{Config: config, Workspace: workspace, Journal: a.journalPath, Sandbox: machine}, asJSON)
			}
			files := make([]checked, len(args))
			for i, path := range args {
				files[i] = check(path, launch.Options{Config: config, Replay: (&replays{app: a}).open})
			}
			return a.reportChecked(files, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().StringVar(&explain, "explain", "", "say what the policy would do with `CALL`, a tool and its arguments")
	c.Flags().StringVar(&workspace, "workspace", "", "the directory that paths of the call are relative to (default: the current one)")
	return c
}

func check(path string, o launch.Options) checked {
	warnings, err := launch.Check(path, o)
	c := checked{File: path, OK: err == nil, Errors: []spec.Problem{}, Warnings: append([]spec.Problem{}, warnings...)}
	var problems spec.Errors
	switch {
	case errors.As(err, &problems):
		c.Errors = problems
	case err != nil:
		c.Errors = []spec.Problem{{File: path, Message: "cannot be read: " + unreadable(err)}}
	}
	return c
}

// unreadable is why a file cannot be read, without its name.
func unreadable(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), "spec: ")
}

// reportChecked prints what was found; the exit code tells whether all is
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
		if err := a.printf("%s: ok\n", c.File); err != nil {
			return err
		}
	}
	return nil
}
