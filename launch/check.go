package launch

import (
	"errors"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/spec"
)

// Check validates an agent file as a run would, without a workspace, a key or
// a call. The error is [spec.Errors] when the file is there and wrong.
func Check(path string, o Options) (warnings []spec.Problem, err error) {
	rules := o.checks()
	rules.Unpriced = func(dir, name string) bool { return o.resolver(dir).Price(name) == nil }
	a, _, err := spec.ReadAgent(path, rules)
	if err != nil {
		return nil, err
	}
	warnings = a.Warnings
	if names := a.Variables(); len(names) > 0 {
		warnings = append(warnings, a.OfPrompt("a run needs --var "+strings.Join(names, "=… and --var ")+"=…"))
	}
	return warnings, nil
}

// checks are what a file is held to: the tools and models of this
// version. That a key is not set is no fault of the file's.
func (o Options) checks() spec.Options {
	return spec.Options{
		Tools: toolNames(), Model: o.Model, Classes: o.Config.Classes, Roles: o.Config.Roles,
		CheckCommand: checkCommand, Unmet: unmet,
		CheckHosted: func(dir, model, tool string) (ignored string, err error) {
			return hosted(tool, model, o.keyless().resolver(dir))
		},
		CheckModel: func(dir, name string) error {
			if err := o.resolver(dir).Check(name); err != nil && !errors.Is(err, models.ErrNoKey) {
				return plain(err)
			}
			return nil
		},
	}
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
