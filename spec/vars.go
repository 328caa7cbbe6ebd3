package spec

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// variable is ${name}, or $${ which stands for a literal ${.
const variable = `\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`

// maxExpanded bounds a system text with its values, in bytes: a short one may name
// a long value as often as it likes.
const maxExpanded = 4 << 20

// Variables lists the names that the system text refers to as ${name}, in
// order of appearance.
func (a *Agent) Variables() []string {
	var names []string
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(variable).FindAllStringSubmatch(a.System, -1) {
		if m[1] != "" && !seen[m[1]] {
			seen[m[1]] = true
			names = append(names, m[1])
		}
	}
	return names
}

// Expand returns the system text with every ${name} replaced by its value;
// $${ stands for a literal ${. A name without a value, and a value that no
// name asks for, is an error: either is a misspelling; so is a text of more than
// 4 MiB. The error is [Errors].
func (a *Agent) Expand(values map[string]string) (string, error) {
	problems := a.unasked(values)
	at := places{data: []byte(a.System), line: 1, column: 1}
	var b strings.Builder
	done := 0
	for _, m := range regexp.MustCompile(variable).FindAllStringSubmatchIndex(a.System, -1) {
		b.WriteString(a.System[done:m[0]])
		done = m[1]
		if m[2] < 0 {
			b.WriteString("${")
			continue
		}
		name := a.System[m[2]:m[3]]
		value, ok := values[name]
		switch {
		case !ok && len(problems) < maxProblems:
			problems = append(problems, a.unset(name, at.at(m[0])))
		case !ok:
			return "", append(problems, a.OfPrompt("there are more problems than can be told at once"))
		case b.Len()+len(value) > maxExpanded:
			return "", append(problems, a.OfPrompt("with its values it has more than 4 MiB"))
		}
		b.WriteString(value)
	}
	b.WriteString(a.System[done:])
	if len(problems) > 0 {
		return "", problems
	}
	return b.String(), nil
}

// unasked are the problems of values that no name asks for.
func (a *Agent) unasked(values map[string]string) Errors {
	const looked = 100 // more names are a text of another kind
	var problems Errors
	names := a.Variables()
	asked := map[string]bool{}
	for _, name := range names {
		asked[name] = true
	}
	for _, given := range sortedKeys(values) {
		if asked[given] || len(problems) == maxProblems {
			continue
		}
		p := a.OfPrompt("the prompt has no ${" + given + "}")
		if meant := closest(given, names[:min(len(names), looked)]); meant != "" {
			p.Message += "; did you mean " + meant + "?"
		}
		problems = append(problems, p)
	}
	return problems
}

// OfPrompt is a problem with the system text as a whole.
func (a *Agent) OfPrompt(message string) Problem {
	p := a.systemAt
	p.Message = message
	return p
}

// unset is the problem of a name without a value. Inside a prompt file its
// place is known exactly.
func (a *Agent) unset(name string, at *yaml.Node) Problem {
	p := a.OfPrompt("${" + name + "} has no value")
	p.Expected = "--var " + name + "=…, or $${" + name + "} for the text itself"
	if p.Path == "prompt.system_file" {
		p.Line, p.Column = at.Line, at.Column
	}
	return p
}
