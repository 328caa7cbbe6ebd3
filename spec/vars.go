package spec

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// variable is ${name}, or $${ which stands for a literal ${.
const variable = `\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`

// Variables lists the names that the system text refers to as ${name}, in
// order of appearance.
func (a *Agent) Variables() []string {
	var names []string
	for _, m := range regexp.MustCompile(variable).FindAllStringSubmatch(a.System, -1) {
		if m[1] != "" && !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// Expand returns the system text with every ${name} replaced by its value;
// $${ stands for a literal ${. A name without a value, and a value that no
// name asks for, is an error: either is a misspelling. The error is [Errors].
func (a *Agent) Expand(values map[string]string) (string, error) {
	var problems Errors
	names := a.Variables()
	for _, given := range sortedKeys(values) {
		if !slices.Contains(names, given) {
			p := a.OfPrompt("the prompt has no ${" + given + "}")
			if meant := closest(given, names); meant != "" {
				p.Message += "; did you mean " + meant + "?"
			}
			problems = append(problems, p)
		}
	}
	pattern := regexp.MustCompile(variable)
	var b strings.Builder
	done := 0
	for _, m := range pattern.FindAllStringSubmatchIndex(a.System, -1) {
		b.WriteString(a.System[done:m[0]])
		done = m[1]
		if m[2] < 0 {
			b.WriteString("${")
			continue
		}
		name := a.System[m[2]:m[3]]
		value, ok := values[name]
		if !ok {
			problems = append(problems, a.unset(name, m[0]))
			continue
		}
		b.WriteString(value)
	}
	b.WriteString(a.System[done:])
	if len(problems) > 0 {
		return "", problems
	}
	return b.String(), nil
}

// OfPrompt is a problem with the system text as a whole.
func (a *Agent) OfPrompt(message string) Problem {
	p := a.systemAt
	p.Message = message
	return p
}

// unset is the problem of a name without a value. Inside a prompt file its
// place is known exactly.
func (a *Agent) unset(name string, offset int) Problem {
	p := a.OfPrompt("${" + name + "} has no value")
	p.Expected = "--var " + name + "=…, or $${" + name + "} for the text itself"
	if p.Path == "prompt.system_file" {
		before := a.System[:offset]
		line := strings.LastIndexByte(before, '\n') + 1
		p.Line, p.Column = strings.Count(before, "\n")+1, utf8.RuneCountInString(before[line:])+1
	}
	return p
}
