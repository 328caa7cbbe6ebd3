package workflow

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/files/expr"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// valuesThere lists the values that a text of a step may name.
const valuesThere = "{{input}}, {{item}} and {{index}} within forEach, {{steps.ID.content}}, .status, .result or .result.KEY, and .results of a forEach"

// valuesIn checks that the values named in a text of a step are visible to the step. In
// a plain workflow file, an unknown name stays as it is.
func (f *workflowFile) valuesIn(at, text string, in scopeOf) string {
	if f.Reported(at) {
		return text
	}
	ours := f.w.APIVersion != ""
	if ours {
		for _, name := range plan.Unknown(text) {
			f.Warn(at, "{{%s}} names no value and stays as it is; there are %s; a backslash before it, \\{{%s}}, says that it is meant", name, valuesThere, name)
		}
	}
	return plan.Keep(text, func(path []string) bool {
		wrong := f.unseen(path, in)
		switch name := strings.Join(path, "."); {
		case wrong == "":
			return false
		case ours:
			f.fail(at, valuesThere, "{{%s}} %s; a backslash before it, \\{{%s}}, leaves it as it is", name, wrong, name)
		default:
			f.Warn(at, "{{%s}} %s, and stays as it is", name, wrong)
		}
		return true
	})
}

// unseen returns why a step cannot see a value, or "".
func (f *workflowFile) unseen(path []string, in scopeOf) string {
	switch root := path[0]; {
	case root == "input" && len(path) == 1:
	case root == "index" && len(path) == 1, root == "item":
		if !in.forEach() {
			return "is known within forEach alone"
		}
	case root == "steps" && len(path) > 2:
		return f.unseenStep(path[1], path[2:], in)
	default:
		return "names no value"
	}
	return ""
}

func (f *workflowFile) unseenStep(id string, path []string, in scopeOf) string {
	known := false
	for at := &in; at != nil; at = at.outer {
		i := slices.IndexFunc(at.steps, func(s WorkflowStep) bool { return s.ID == id })
		if known = known || i >= 0; i < 0 || !at.above[i] {
			continue
		}
		of := f.known(&at.steps[i])
		switch field := path[0]; {
		case (field == "content" || field == "status") && len(path) == 1, field == "result":
			return ""
		case field == "results" && of.ForEach:
			return ""
		case field == "results":
			return "names the results of " + id + ", which is no forEach"
		}
		return "names no value of a step"
	}
	if known {
		return "names the step " + id + ", on which this step does not depend"
	}
	return "names the step " + id + ", which there is not here"
}

// forEach reports whether steps are in a loop over items.
func (in *scopeOf) forEach() bool {
	for at := in; at != nil; at = at.outer {
		if at.loop == expr.ForEach {
			return true
		}
	}
	return false
}

// items returns the items of the enclosing loop, nil if they are not known before the
// run.
func (in *scopeOf) items() []json.RawMessage {
	if in.of == nil || in.of.ForEach == nil {
		return nil
	}
	return in.of.ForEach.Items
}

// texts checks the texts of a step.
func (f *workflowFile) texts(path string, s *WorkflowStep, in scopeOf) {
	if s.Loop != nil && len(s.Loop.Steps) == 0 { // the loop repeats the step itself
		outer := in
		in = scopeOf{loop: loopKind(s.Loop), of: s.Loop, outer: &outer}
	}
	at := path + ".instructions"
	if s.Workflow != "" {
		at = path + ".input"
	}
	s.text = f.valuesIn(at, s.text, in)
	s.Command = f.arguments(path+".command", s.Command, in)
}

// arguments checks the arguments of a command: their values must be visible, and must
// not be part of a script.
func (f *workflowFile) arguments(path string, argv []string, in scopeOf) []string {
	filled := slices.Clone(argv)
	for i, arg := range argv {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch names := len(plan.Named(arg)) > 0; {
		case names && i == 0:
			f.fail(at, "the program itself", "is the program, which no value may name")
		case names && isScript(argv[:i]):
			f.fail(at, `the value as an argument of its own, as in [sh, -c, 'echo "$1"', sh, "{{item}}"], or $PAWL_ITEM and $PAWL_INPUT in the script`,
				"is a script, which would run what the value holds")
		default:
			filled[i] = f.valuesIn(at, arg, in)
		}
	}
	return filled
}

// interpreters are the programs that run an argument as a script, with the option
// before it.
var interpreters = []struct{ program, option *regexp.Regexp }{
	{regexp.MustCompile(`^(ba|da|z|k|a|fi|c|tc)?sh$`), regexp.MustCompile(`^-[a-zA-Z]*c$`)},
	{regexp.MustCompile(`^(python|pypy)[0-9.]*$`), regexp.MustCompile(`^-[a-zA-Z]*c$`)},
	{regexp.MustCompile(`^(perl|ruby|lua|osascript)[0-9.]*$`), regexp.MustCompile(`^-[a-zA-Z]*[eE]$`)},
	{regexp.MustCompile(`^(node|bun|deno)$`), regexp.MustCompile(`^(-[a-z]*[ep]|--eval|--print|eval)$`)},
	{regexp.MustCompile(`^php$`), regexp.MustCompile(`^-[rBRE]$`)},
	{regexp.MustCompile(`^(pwsh|powershell)(\.exe)?$`), regexp.MustCompile(`(?i)^-c(ommand)?$`)},
	{regexp.MustCompile(`^(su|runuser|script)$`), regexp.MustCompile(`^(-[a-zA-Z]*c|--command)$`)},
}

// isScript reports whether the word after the beginning of a command line is a script.
func isScript(before []string) bool {
	last := before[len(before)-1]
	return slices.ContainsFunc(before[:len(before)-1], func(word string) bool {
		for _, known := range interpreters {
			if known.program.MatchString(filepath.Base(word)) && known.option.MatchString(last) {
				return true
			}
		}
		return false
	})
}

// unseenInput returns a warning about a workflow whose later steps do not receive its
// INPUT, although no step refers to it.
func (f *workflowFile) unseenInput(p *plan.Plan) []decode.Problem {
	var told, blind []string
	first := 0
	for i := range p.Steps {
		switch s := &p.Steps[i]; {
		case !s.Tells():
		case len(s.DependsOn) == 0:
			told = append(told, s.ID)
		default:
			if len(blind) == 0 {
				first = i
			}
			blind = append(blind, s.ID)
		}
	}
	if len(blind) == 0 || p.AsksForInput() {
		return nil
	}
	const most = 3
	if more := len(blind) - most; more > 1 {
		blind = append(blind[:most:most], fmt.Sprintf("%d more", more))
	}
	who := "INPUT is told to no step, because the first ones run programs"
	if len(told) > 0 {
		who = "INPUT is told only to the steps without dependsOn (" + strings.Join(told, ", ") + ")"
	}
	at := fmt.Sprintf("steps[%d]", first)
	return []decode.Problem{f.Problem(f.NodeAt(at), at, "", "%s; %s would see it where instructions say {{input}}", who, strings.Join(blind, ", "))}
}

// checkUntil checks the condition that ends the loop of a step.
func (f *workflowFile) checkUntil(path, text string, s *WorkflowStep) {
	scope := expr.Scope{Place: expr.Until, Single: len(s.Loop.Steps) == 0, Steps: f.results(s.Loop.Steps)}
	if scope.Single {
		scope.Self = f.known(&WorkflowStep{Agent: s.Agent, Command: s.Command})
	}
	f.check(path, text, scope, nil)
}

// check reports the errors in an expression. If it is evaluated before all steps are
// done, it may name only the dependencies of its step.
func (f *workflowFile) check(path, text string, scope expr.Scope, in *scopeOf) {
	err := f.checker.Check(text, scope)
	if spec.WrongExpression(f.Report, path, text, err); err != nil {
		return
	}
	spec.Never(f.Report, path, f.checker.Never(text, scope))
	if in == nil {
		return
	}
	for _, id := range f.checker.Steps(text) {
		if f.waitsFor(*in, id) {
			continue
		}
		const message = "names the step %s, which may not be done by then, because this step does not depend on it"
		if f.w.APIVersion == "" {
			f.Warn(path, message, id)
		} else {
			f.fail(path, "a step that this one depends on", message, id)
		}
	}
}

func (f *workflowFile) waitsFor(in scopeOf, id string) bool {
	for at := range in.above {
		if in.steps[at].ID == id {
			return true
		}
	}
	return false
}

// results returns what is known in advance about the results of steps, by their ids.
func (f *workflowFile) results(steps []WorkflowStep) map[string]expr.Step {
	all := map[string]expr.Step{}
	for i := range steps {
		all[steps[i].ID] = f.known(&steps[i])
	}
	return all
}

// known returns what is known about a step before it runs.
func (f *workflowFile) known(s *WorkflowStep) (of expr.Step) {
	switch {
	case s.Loop != nil:
		of.ForEach = s.Loop.ForEach != nil
	case len(s.Command) > 0:
		of.Command = true
	case s.Include == "" && s.Workflow == "":
		of.Result = f.schemaOf(s.Agent)
	}
	return of
}
