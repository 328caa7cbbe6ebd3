package policy

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// personal adds what a person allowed for the rest of the run. It answers the
// questions that are asked of every call of a tool, and that about the repository that a
// command of git writes. One for a whole command line also
// answers what that line is asked about for what it writes. A denial, a declared risk,
// the rule of two and the owner's own rules hold.
func (r Rules) personal(c *event.ToolCall, said []Verdict) []Verdict {
	for _, p := range r.Permissions {
		if p.Line != "" && p.Line == commandLine(c) && p.Tool == c.Tool || p.Line == "" && permissionRule(p).permits(c) {
			if left, ok := answered(p, c, said); ok {
				return left
			}
		}
	}
	return said
}

// answered is what remains of the verdicts about a call that a permission is about,
// false where one of them holds against it.
func answered(p event.Permission, c *event.ToolCall, said []Verdict) (left []Verdict, ok bool) {
	for _, v := range said {
		switch {
		case v.Decision == event.DecisionDeny, v.Decision == event.DecisionAsk && !routine(c.Tool, v) && !(p.Line != "" && ofLine(c, v)):
			return nil, false
		case v.Decision != event.DecisionAsk:
			left = append(left, v)
		}
	}
	return append(left, Verdict{Decision: event.DecisionAllow, Rule: "allowed for this run: " + p.String()}), true
}

// ofLine reports whether a question is about what a command line writes, or about what
// could not be read of one that a sandbox confines.
func ofLine(c *event.ToolCall, v Verdict) bool {
	return v.Rule == "workspace" || v.Rule == "unclear" && c.Facts.Sandboxed || strings.HasPrefix(v.Rule, "protected_paths")
}

// maxLine bounds a command line that a person is offered to allow: it is shown whole.
const maxLine = 300

// commandLine is the command line of a call, "" where it has none that can be shown in
// a line.
func commandLine(c *event.ToolCall) string {
	var args struct {
		Command string `json:"command"`
	}
	if c.Facts == nil || len(c.Facts.Commands) == 0 || json.Unmarshal(c.Args, &args) != nil || len(args.Command) > maxLine || strings.ContainsAny(args.Command, "\n\r") {
		return ""
	}
	return args.Command
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

// permits reports whether the rule covers the whole of a call. A rule without a
// pattern would cover the whole tool, which is not offered as an answer to a
// question.
func (r Rule) permits(c *event.ToolCall) bool {
	return r.Tool == c.Tool && (r.Command != "" || r.Path != "") && r.permitsAll(c)
}

// Permission is what a person may allow for the rest of the run beside a call that
// is asked about: the command's first two words, the directory of its files, or the
// whole command line. It is nil where none of them would answer the question.
func (r Rules) Permission(c *event.ToolCall) *event.Permission {
	if c.Facts == nil {
		return nil
	}
	offers := []event.Permission{{Tool: c.Tool, Command: beginning(c.Facts.Commands)}, {Tool: c.Tool, Line: commandLine(c)}}
	if len(c.Facts.Commands) == 0 {
		offers = []event.Permission{{Tool: c.Tool, Path: directory(c.Facts.Paths)}}
	}
	for _, p := range offers {
		if p == (event.Permission{Tool: c.Tool}) {
			continue
		}
		r.Permissions = []event.Permission{p}
		if v := r.Decide(c); v.Decision == event.DecisionAllow || v.Decision == event.DecisionSandbox {
			return &p
		}
	}
	return nil
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
		if c.Computed || len(words) == 0 || slices.ContainsFunc(words, special) ||
			len(words) == 2 && path.Base(words[0]) == "git" && strings.HasPrefix(words[1], "-") { // an option before git's own command
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
