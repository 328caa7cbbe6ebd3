package launch

import (
	"context"
	"errors"
	"strings"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

// Check validates an agent file as a run would, without a workspace, a key or
// a call. The error is [spec.Errors] when the file is there and wrong.
func Check(f File, o Options) (warnings []spec.Problem, err error) {
	o.checking = true
	rules := o.checksOf(f)
	rules.Unpriced = func(dir, name string) bool { return o.resolver(dir).Price(name) == nil }
	a, err := spec.ParseAgent(f.Path, f.Text, rules)
	if err != nil {
		return nil, err
	}
	warnings = a.Warnings
	if names := a.Variables(); len(names) > 0 {
		warnings = append(warnings, a.OfPrompt("a run needs --var "+strings.Join(names, "=… and --var ")+"=…"))
	}
	if names := a.TaskVariables(); len(names) > 0 {
		warnings = append(warnings, a.OfTask("a run without INPUT needs --var "+strings.Join(names, "=… and --var ")+"=…"))
	}
	o.tree = newTree(nil)
	if o.gather(a) == nil { // what keeps a file from being read is said of it already
		root := a
		if a.Loops() {
			root = a.LoopRoot()
		}
		warnings = append(warnings, ofFile(f.Path, o.tooDeep(root, plan.Plan{}))...)
	}
	return append(warnings, o.refusals(f.Path, a)...), nil
}

// ofFile are warnings about a file as a whole.
func ofFile(path string, texts []string) []spec.Problem {
	var all []spec.Problem
	for _, text := range texts {
		all = append(all, spec.Problem{File: path, Message: text})
	}
	return all
}

// refusals say why this machine would not run the file. They are no fault of the
// file's, which may be meant for another machine.
func (o Options) refusals(path string, a *spec.Agent) []spec.Problem {
	if o.Sandbox == nil || a.Composite != nil {
		return nil
	}
	_, err := o.confinement(a, "")
	if err == nil {
		return nil
	}
	return []spec.Problem{{File: path, Message: "'pawl run' refuses this on this machine: " + strings.TrimPrefix(err.Error(), ErrSandbox.Error()+": ")}}
}

// checksOf are the checks of one file, which reads and starts nothing of this machine
// where it was sent as a text.
func (o Options) checksOf(f File) spec.Options {
	rules := o.checks()
	if f.Sent {
		rules.Sent, rules.Dir = true, o.Dir
		rules.ConfineModel = func(model string) error { return ConfineScript(o.Dir, model) }
	}
	return rules
}

// checks are what a file is held to: the tools and models of this
// version. That a key is not set is no fault of the file's.
func (o Options) checks() spec.Options {
	return spec.Options{
		Tools: toolNames(), Aliases: aliases(), Model: o.Model, Classes: o.Config.Classes, Roles: o.Config.Roles,
		CheckWorktrees: o.checkWorktrees, Offers: offeredBy, CheckCommand: checkCommand, CheckProgram: o.checkProgram, CheckAgent: o.checkOffered(map[string]bool{}), Unmet: unmet,
		CheckHosted: func(dir, model, tool string) (ignored string, err error) {
			return hosted(tool, model, o.keyless().resolver(dir))
		},
		CheckModel: func(dir, name string) error {
			resolver := o.resolver(dir)
			if err := resolver.Check(name); err != nil && !errors.Is(err, models.ErrNoKey) {
				return plain(err)
			}
			if err := checkName(name, resolver); err != nil {
				return plain(err)
			}
			return nil
		},
	}
}

// checkWorktrees says what stands against worktrees of the workspace. A file that is
// only checked may be meant for another one.
func (o Options) checkWorktrees() (refused string, err error) {
	if err = o.worktrees().Check(context.Background()); err != nil && o.checking {
		return err.Error(), nil
	}
	return "", err
}

// plain leaves out what a place in a file says already, and through which
// packages a mistake in a script came.
func plain(err error) error {
	text := err.Error()
	for _, known := range []string{llm.ErrUnknownModel.Error(), "models", "scripted"} {
		text = strings.TrimPrefix(text, known+": ")
	}
	return errors.New(text)
}
