package policy_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// Outside a sandbox a program can decide about calls, of this run or another, so
// it does not start unseen.
func TestACommandWithoutASandboxAsks(t *testing.T) {
	const (
		asked   = policy.NoSandboxName
		allowed = "tools.allow"
	)
	program := event.Facts{Unsandboxed: true, Risk: event.RiskExecute, Commands: []event.Command{{Words: []string{"go", "test"}}}}
	with := func(change func(f *event.Facts)) *event.ToolCall {
		f := program
		change(&f)
		return &event.ToolCall{Tool: "shell.exec", Facts: &f}
	}
	run := with(func(*event.Facts) {})
	write := func(p event.PathUse) *event.ToolCall {
		p.Write = true
		return with(func(f *event.Facts) { f.Risk, f.Paths = event.RiskWrite, []event.PathUse{p} })
	}
	gated := func(change func(r *policy.Rules)) policy.Rules {
		r := policy.Rules{Declared: true, Gates: []string{"fs.write"}}
		change(&r)
		return r
	}
	rule := func(d event.Decision, tool, command string) []policy.Rule {
		return []policy.Rule{{Decision: d, Tool: tool, Command: command}}
	}
	gate := gated(func(*policy.Rules) {})
	for _, c := range []struct {
		name  string
		rules policy.Rules
		call  *event.ToolCall
		want  event.Decision
		rule  string
	}{
		{"tools.allow names the tool", policy.Rules{Declared: true}, run, event.DecisionAsk, asked},
		{"files may be edited unasked", policy.Rules{Declared: true, Mode: policy.ModeAcceptEdits}, run, event.DecisionAsk, asked},
		{"another tool is gated", gate, run, event.DecisionAsk, asked},
		{"the file names no tools, and a rule the command", policy.Rules{Rules: rule(event.DecisionAllow, "shell.exec", "go test")}, run, event.DecisionAsk, asked},
		{"a rule permits the command by name", gated(func(r *policy.Rules) { r.Rules = rule(event.DecisionAllow, "shell.exec", "go test") }), run, event.DecisionAsk, asked},

		{"in a sandbox", gate, with(func(f *event.Facts) { f.Unsandboxed = false }), event.DecisionAllow, allowed},
		{"put into the sandbox by a rule", gated(func(r *policy.Rules) { r.Rules = rule(event.DecisionSandbox, "shell.exec", "go *") }), run, event.DecisionSandbox, "tools.rules: sandbox shell.exec, command go *"},
		{"a call that starts no program", gate, &event.ToolCall{Tool: "fs.edit", Facts: &event.Facts{Risk: event.RiskExecute}}, event.DecisionAllow, allowed},
		{"a call of which nothing is known", gate, &event.ToolCall{Tool: "weather"}, event.DecisionAllow, allowed},

		{"known to look", gate, with(func(f *event.Facts) { f.Risk = event.RiskRead }), event.DecisionAllow, allowed},
		{"known to write files of the workspace", gate, write(event.PathUse{Path: "a.txt"}), event.DecisionAllow, allowed},
		{"declared to write, without the files", gate, with(func(f *event.Facts) { f.Risk = event.RiskWrite }), event.DecisionAsk, asked},
		{"writes a file that is not known", gate, write(event.PathUse{Path: "$x", Unknown: true}), event.DecisionAsk, "unclear"},

		{"the owner wants no question about the tool", gated(func(r *policy.Rules) { r.Open = []string{"shell.exec"} }), run, event.DecisionAllow, "tools.approvals.shell.exec: never"},
		{"the owner wants none about another tool", gated(func(r *policy.Rules) { r.Open = []string{"fs.edit"} }), run, event.DecisionAsk, asked},
		{"the owner wants none at all", gated(func(r *policy.Rules) { r.Mode = policy.ModeBypass }), run, event.DecisionAllow, allowed},

		{"the tool is gated itself", policy.Rules{Declared: true, Gates: []string{"shell.exec"}}, run, event.DecisionAsk, "tools.approvals.shell.exec: always"},
		{"the command is denied", gated(func(r *policy.Rules) { r.Rules = rule(event.DecisionDeny, "shell.exec", "go *") }), run, event.DecisionDeny, "tools.rules: deny shell.exec, command go *"},
		{"nothing permits the command", policy.Rules{Gates: []string{"fs.write"}}, run, event.DecisionAsk, "default: side effects ask"},
	} {
		if got := c.rules.Decide(c.call); got.Decision != c.want || got.Rule != c.rule {
			t.Errorf("%s: %s by %q, want %s by %q", c.name, got.Decision, got.Rule, c.want, c.rule)
		}
	}
}

// What asks for another reason is asked about for that one alone: a person who
// answers by giving the call other arguments is not asked again.
func TestACommandThatAsksAnywayIsAskedAboutOnce(t *testing.T) {
	r := policy.Rules{Declared: true, Gates: []string{"shell.exec"}}
	_, verdicts := r.Explain(&event.ToolCall{Tool: "shell.exec", Facts: &event.Facts{Unsandboxed: true, Risk: event.RiskExecute}})
	for _, v := range verdicts {
		if v.Rule == policy.NoSandboxName {
			t.Errorf("%s asks beside %s", v.Rule, verdicts[0].Rule)
		}
	}
}

func TestUnsandboxedCommandAsksWithReason(t *testing.T) {
	r := policy.Rules{Declared: true}
	v := r.Decide(&event.ToolCall{Tool: "shell.exec", Facts: &event.Facts{Unsandboxed: true, Risk: event.RiskExecute}})
	const want = "without a sandbox a command has all your permissions, so it could approve calls in your place"
	if v.Reason != want {
		t.Errorf("the reason is %q, want %q", v.Reason, want)
	}
}
