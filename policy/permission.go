package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// personal adds what a person allowed for the rest of the run. It answers the
// questions that are asked of every call of a tool, and no other: a denial, a
// protected path, a declared risk, the rule of two and the owner's own rules hold.
func (r Rules) personal(c *event.ToolCall, said []Verdict) []Verdict {
	at := slices.IndexFunc(r.Permissions, func(p event.Permission) bool { return permissionRule(p).permits(c) })
	if at < 0 {
		return said
	}
	var left []Verdict
	for _, v := range said {
		switch {
		case v.Decision == event.DecisionDeny, v.Decision == event.DecisionAsk && !routine(c.Tool, v):
			return said
		case v.Decision != event.DecisionAsk:
			left = append(left, v)
		}
	}
	return append(left, Verdict{Decision: event.DecisionAllow, Rule: "allowed for this run: " + r.Permissions[at].String()})
}

// routine reports whether a question is asked of every call of a tool, whatever the
// call does.
func routine(tool string, v Verdict) bool {
	return v.Rule == alwaysAsks(tool) || v.Rule == NoSandboxName || v.Rule == defaultAsks
}

// permissionRule is a permission as a rule.
func permissionRule(p event.Permission) Rule {
	return Rule{Decision: event.DecisionAllow, Tool: p.Tool, Command: p.Command, Path: Pattern(p.Path)}
}

// permits reports whether the rule is about the whole of a call. One without a
// pattern would be about the tool, which nobody is offered.
func (r Rule) permits(c *event.ToolCall) bool {
	return r.Tool == c.Tool && (r.Command != "" || r.Path != "") && r.permitsAll(c)
}

// Permission is what a person may allow for the rest of the run beside a call that
// is asked about: the command's first two words, or the directory of its files. It is
// nil where that would not answer the question, or not be about this call alone.
func (r Rules) Permission(c *event.ToolCall) *event.Permission {
	if c.Facts == nil || len(c.Facts.Unclear) > 0 {
		return nil
	}
	p := event.Permission{Tool: c.Tool}
	if len(c.Facts.Commands) > 0 {
		p.Command = beginning(c.Facts.Commands)
	} else {
		p.Path = directory(c.Facts.Paths)
	}
	if p.Command == "" && p.Path == "" {
		return nil
	}
	r.Permissions = []event.Permission{p}
	if v := r.Decide(c); v.Decision != event.DecisionAllow && v.Decision != event.DecisionSandbox {
		return nil
	}
	return &p
}

// beginning is the pattern of the commands that do more than look, "" where they do
// not begin alike.
func beginning(commands []event.Command) string {
	pattern := ""
	for _, c := range commands {
		if c.ReadOnly {
			continue
		}
		words := slices.Clone(c.Words[:min(2, len(c.Words))])
		if c.Program != "" {
			words[0] = calledBy(c.Program)
		}
		if c.Computed || len(words) == 0 || slices.ContainsFunc(words, special) {
			return ""
		}
		p := strings.Join(words, " ")
		if len(words) == 2 {
			p += " *"
		}
		if pattern != "" && p != pattern {
			return ""
		}
		pattern = p
	}
	return pattern
}

// calledBy is how a command calls a program by the path of its file.
func calledBy(program string) string {
	if path.IsAbs(program) {
		return program
	}
	return "./" + program
}

// special reports whether a word would mean something else in a pattern.
func special(word string) bool {
	return word == "" || strings.ContainsAny(word, "* \t\n") || strings.HasSuffix(word, event.WordCut)
}

// directory is the pattern of the files right in the directory of a call's files, ""
// where they are in several.
func directory(paths []event.PathUse) string {
	pattern := ""
	for _, p := range paths {
		if p.Alias {
			continue
		}
		dir := path.Dir(p.Path)
		if strings.ContainsAny(dir, `*?[\`) {
			return ""
		}
		in := path.Join(dir, "*")
		if pattern != "" && in != pattern {
			return ""
		}
		pattern = in
	}
	return pattern
}
