package spec

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/decode"
)

// variable is ${name}, or $${ for a literal ${.
const variable = `\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`

// maxExpanded bounds a text of the prompt with its values, in bytes: a short text may
// refer to a long value many times.
const maxExpanded = 4 << 20

// Variables lists the names that the system text refers to as ${name}, in
// order of appearance.
func (a *Agent) Variables() []string { return variablesOf(a.System) }

// TaskVariables lists the names in the task.
func (a *Agent) TaskVariables() []string { return variablesOf(a.Prompt.Task) }

func variablesOf(text string) []string {
	var names []string
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(variable).FindAllStringSubmatch(text, -1) {
		if m[1] != "" && !seen[m[1]] {
			seen[m[1]] = true
			names = append(names, m[1])
		}
	}
	return names
}

// Expand returns the system text with every ${name} replaced by its value; $${ stands
// for a literal ${. A name without a value, and a value without a name, here or in the
// task, is an error, because either is a misspelling; so is a text of more than 4 MiB.
// The error is [decode.Errors].
func (a *Agent) Expand(values map[string]string) (string, error) {
	problems, more := a.unusedValues(values)
	return expand(a.System, a.systemAt, values, problems, more)
}

// ExpandTask is [Agent.Expand] for the task, "" if the file has none.
func (a *Agent) ExpandTask(values map[string]string) (string, error) {
	return expand(a.Prompt.Task, a.taskAt, values, nil, 0)
}

// expand expands a text at a position, or returns its problems in addition to the given
// ones; more counts problems without details.
func expand(text string, where decode.Problem, values map[string]string, problems decode.Errors, more int) (string, error) {
	at := decode.PlacesIn([]byte(text))
	var b strings.Builder
	done := 0
	for _, m := range regexp.MustCompile(variable).FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[done:m[0]])
		done = m[1]
		if m[2] < 0 {
			b.WriteString("${")
			continue
		}
		name := text[m[2]:m[3]]
		value, ok := values[name]
		switch {
		case !ok && len(problems) < decode.MaxProblems:
			problems = append(problems, unset(where, name, at.At(m[0])))
		case !ok:
			more++
		case b.Len()+len(value) > maxExpanded:
			return "", append(problems, withMessage(where, "with its values it has more than 4 MiB"))
		}
		b.WriteString(value)
	}
	b.WriteString(text[done:])
	if len(problems) > 0 {
		return "", problems.And(more)
	}
	return b.String(), nil
}

// unusedValues returns the problems of values without a variable, and the number of
// further ones.
func (a *Agent) unusedValues(values map[string]string) (problems decode.Errors, more int) {
	const looked = 100 // the names beyond this are only counted
	names := append(a.Variables(), a.TaskVariables()...)
	asked := map[string]bool{}
	for _, name := range names {
		asked[name] = true
	}
	for _, given := range slices.Sorted(maps.Keys(values)) {
		if asked[given] {
			continue
		}
		if len(problems) == decode.MaxProblems {
			more++
			continue
		}
		p := a.OfPrompt("the prompt has no ${" + given + "}")
		if meant := decode.Closest(given, names[:min(len(names), looked)]); meant != "" {
			p.Message += "; did you mean " + meant + "?"
		}
		problems = append(problems, p)
	}
	return problems, more
}

// OfPrompt returns a problem with the system text as a whole.
func (a *Agent) OfPrompt(message string) decode.Problem { return withMessage(a.systemAt, message) }

// OfTask returns a problem with the task.
func (a *Agent) OfTask(message string) decode.Problem { return withMessage(a.taskAt, message) }

func withMessage(p decode.Problem, message string) decode.Problem {
	p.Message = message
	return p
}

// unset returns the problem of a name without a value. Inside a prompt file its
// position is known exactly.
func unset(p decode.Problem, name string, at *yaml.Node) decode.Problem {
	p.Message = "${" + name + "} has no value"
	p.Expected = "--var " + name + "=…, or $${" + name + "} for the text itself"
	if p.Path == "prompt.system_file" {
		p.Line, p.Column = at.Line, at.Column
	}
	return p
}
