package policy

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// With returns the rules with Granted, and with what a person allowed or denied for the rest
// of the run.
func (r Rules) With(added []event.PermissionAdded) Rules {
	r.Permissions, r.Rules = slices.Clip(r.Permissions), slices.Clip(r.Rules) // the backing arrays are shared
	add := func(p event.Permission) {
		if p.Deny {
			r.Rules = append(r.Rules, denial(p))
		} else {
			r.Permissions = append(r.Permissions, p)
		}
	}
	for _, p := range r.Granted {
		add(p)
	}
	for _, a := range added {
		add(a.Permission)
	}
	return r
}

// denial converts a permission that denies to a rule.
func denial(p event.Permission) Rule {
	r := permissionRule(p)
	r.Decision, r.Reason = event.DecisionDeny, "a person has rejected such calls before"
	if p.Line != "" {
		r.Args = map[string]string{"command": p.Line}
	}
	return r
}

// personal applies what a person allowed for the rest of the run. A permission answers
// the questions that every call of a tool raises, and the one about the repository that
// a git command writes. A permission for a whole command line also answers questions
// about what that line writes. Denials, declared risks, the rule of two and the owner's
// rules still apply.
func (r Rules) personal(c *event.ToolCall, verdicts []Verdict) []Verdict {
	for _, p := range r.Permissions {
		if p.Line != "" && p.Line == commandLine(c) && p.Tool == c.Tool || p.Line == "" && permissionRule(p).permits(c) {
			if left, ok := answered(p, c, verdicts); ok {
				return left
			}
		}
	}
	return verdicts
}

// answered returns the verdicts that remain after a permission for the call; it returns
// false if one of them overrides the permission.
func answered(p event.Permission, c *event.ToolCall, verdicts []Verdict) (left []Verdict, ok bool) {
	for _, v := range verdicts {
		switch {
		case v.Decision == event.DecisionDeny, v.Decision == event.DecisionAsk && !routine(c.Tool, v) && !(p.Line != "" && ofLine(c, v)):
			return nil, false
		case v.Decision != event.DecisionAsk:
			left = append(left, v)
		}
	}
	return append(left, Verdict{Decision: event.DecisionAllow, Rule: "allowed for this run: " + p.String()}), true
}

// ofLine reports whether a question concerns what a command line writes, or the
// unreadable part of a command line that a sandbox confines.
func ofLine(c *event.ToolCall, v Verdict) bool {
	return v.Rule == "workspace" || v.Rule == "unclear" && c.Facts.Sandboxed || strings.HasPrefix(v.Rule, "protected_paths")
}

// maxLine bounds the command line that a person can allow, because the question shows
// all of it.
const maxLine = 300

// commandLine returns the command line of a call, "" if it has none that fits on one
// line.
func commandLine(c *event.ToolCall) string {
	var args struct {
		Command string `json:"command"`
	}
	if c.Facts == nil || len(c.Facts.Commands) == 0 || json.Unmarshal(c.Args, &args) != nil || len(args.Command) > maxLine || strings.ContainsAny(args.Command, "\n\r") {
		return ""
	}
	return args.Command
}

// routine reports whether every call of a tool raises a question, regardless of its
// arguments.
func routine(tool string, v Verdict) bool {
	return v.Rule == alwaysAsks(tool) || v.Rule == NoSandboxName || v.Rule == defaultAsks
}

// permissionRule converts a permission to a rule.
func permissionRule(p event.Permission) Rule {
	return Rule{Decision: event.DecisionAllow, Tool: p.Tool, Command: p.Command, Path: Pattern(p.Path)}
}

// permits reports whether the rule covers the whole call. A rule without a pattern
// would cover the whole tool, which questions do not offer.
func (r Rule) permits(c *event.ToolCall) bool {
	return r.Tool == c.Tool && (r.Command != "" || r.Path != "") && r.permitsAll(c)
}

// Permission returns what a person may allow for the rest of the run when a call asks:
// the first two words of the command, the directory of its files, or the whole command
// line. It returns nil if none of them would answer the question.
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

// beginning returns the pattern of the commands that do more than read, "" if they
// begin differently.
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

// calledBy returns how a command calls a program by the path of its file.
func calledBy(program string) string {
	if path.IsAbs(program) {
		return program
	}
	return "./" + program
}

// special reports whether a word has a special meaning in a pattern.
func special(word string) bool {
	return word == "" || strings.ContainsAny(word, "* \t\n") || strings.HasSuffix(word, event.WordCut)
}

// directory returns the pattern of the files directly in the directory of a call's
// files, "" if they are in several directories.
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

// NoSandboxName is the rule name in verdicts about programs without a sandbox.
const NoSandboxName = "no sandbox"

// unsandboxed asks about a call that would start programs outside a sandbox. Such a
// program has the rights of the user: it can write the journal, kill the processes that
// drive the run, or make a service do so later. So it can approve any call of any run
// of the user, which would make every question worthless. An owner who configured that
// the tool never asks, or that nothing asks, has accepted this. An owner who listed the
// tool or allowed a command has not, because neither setting covers what the command
// may do to other calls. A call that is known to only read, or to only write files of
// the workspace, cannot approve anything.
func (r Rules) unsandboxed(c *event.ToolCall, verdicts []Verdict) []Verdict {
	if c.Facts == nil || !c.Facts.Unsandboxed || harmless(c) || edits(c) || !permitted(verdicts) || r.NeverAsks(c.Tool) {
		return nil
	}
	return []Verdict{{
		Decision: event.DecisionAsk, Rule: NoSandboxName,
		Reason: "without a sandbox a command has all your permissions, so it could approve calls in your place",
	}}
}

// permitted reports whether a call would run without a question and outside the
// sandbox.
func permitted(verdicts []Verdict) bool {
	return all(verdicts, func(v Verdict) bool { return v.Decision == event.DecisionAllow })
}

// NeverAsks reports whether the owner lets calls of a tool run without a question
// unless another rule asks.
func (r Rules) NeverAsks(tool string) bool {
	return matchesAny(r.Open, tool) || r.Mode == ModeBypass
}

// Tool is what policy knows about a tool before any call.
type Tool struct {
	Name string
	// ReadOnly reports that no call changes anything. Risk is the harm that every call
	// is declared to do; empty means that it depends on the call.
	ReadOnly bool
	Risk     event.Risk
	// Judged reports that the tool returns facts about each call.
	Judged bool
	// Outgoing reports that its calls can reach other machines.
	Outgoing bool
	// Remote reports that its calls run on another machine.
	Remote bool
}

// Hides reports whether every call of a tool would be denied, and by which rule. A run
// does not offer such a tool, because the model would spend its turns on denials. In
// plan mode only the tools that a plan may use are offered.
func (r Rules) Hides(t Tool) (rule string, hidden bool) {
	changes := !t.ReadOnly && t.Risk != "" && t.Risk != event.RiskRead
	judged := t.Judged && !t.Remote
	mayOnlyReach := t.ReadOnly && t.Outgoing
	switch {
	case r.Mode == ModePlan && changes:
		return ruleOfPlan, true
	case r.Filesystem == FilesystemNone && judged && !mayOnlyReach, r.Filesystem == FilesystemReadOnly && judged && changes:
		return r.ruleOfFiles(), true
	}
	for _, rule := range r.Rules {
		if rule.Decision == event.DecisionDeny && wild(rule.Tool, t.Name) && rule.always() {
			return rule.String(), true
		}
	}
	return "", false
}

// always reports whether a rule matches every call of its tools.
func (r Rule) always() bool {
	return len(r.Args) == 0 && r.Path == "" && r.Host == "" && r.Command == ""
}

const ruleOfPlan = "mode: plan"

func (r Rules) ruleOfFiles() string { return "tools.permissions.filesystem: " + string(r.Filesystem) }
