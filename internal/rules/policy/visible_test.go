package policy_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// A tool is out of view only where no call of it could run, so that hiding one
// never takes anything away but the denials.
func TestAToolIsHiddenWhereEveryCallOfItIsDenied(t *testing.T) {
	var (
		fetch   = policy.Tool{Name: "web.fetch", ReadOnly: true, Risk: event.RiskSend, Judged: true, Outgoing: true}
		read    = policy.Tool{Name: "fs.read", ReadOnly: true, Judged: true}
		write   = policy.Tool{Name: "fs.write", Risk: event.RiskWrite, Judged: true}
		shell   = policy.Tool{Name: "shell.exec", Judged: true, Outgoing: true}
		unknown = policy.Tool{Name: "crm.update"}
		record  = policy.Tool{Name: "crm.record", Risk: event.RiskWrite}
		look    = policy.Tool{Name: "crm.look", Risk: event.RiskRead}
		remote  = policy.Tool{Name: "web.mcp", Risk: event.RiskUnknown, Judged: true, Outgoing: true, Remote: true}
	)
	calls := map[string][]*event.ToolCall{
		"web.fetch":  {fetches("example.org")},
		"fs.read":    {reads("fs.read", event.PathUse{Path: "a"}), reads("fs.read", event.PathUse{Path: "/x", Outside: true})},
		"fs.write":   {writes("fs.write", event.PathUse{Path: "a"}), writes("fs.write", event.PathUse{Path: "docs/a"})},
		"shell.exec": {runs("ls"), runs("rm", "x")},
		"crm.update": {{Tool: "crm.update"}},
		"crm.record": {{Tool: "crm.record"}},
	}
	for _, c := range calls["fs.write"] {
		c.Facts.Risk = event.RiskWrite
	}
	deny := func(r policy.Rule) policy.Rules {
		r.Decision = event.DecisionDeny
		return policy.Rules{Declared: true, Rules: []policy.Rule{r}}
	}
	for _, c := range []struct {
		name   string
		rules  policy.Rules
		hidden map[string]string
	}{
		{"nothing is denied", policy.Rules{Declared: true}, nil},
		{"a question hides nothing", policy.Rules{Gates: []string{"fs.write"}}, nil},
		{"a rule by name", deny(policy.Rule{Tool: "fs.write"}), map[string]string{"fs.write": "tools.rules: deny fs.write"}},
		{"a rule by star", deny(policy.Rule{Tool: "fs.*"}), map[string]string{"fs.write": "tools.rules: deny fs.*", "fs.read": "tools.rules: deny fs.*"}},
		{"a rule about some paths", deny(policy.Rule{Tool: "fs.write", Path: "docs/**"}), nil},
		{"a rule about some commands", deny(policy.Rule{Tool: "shell.exec", Command: "rm *"}), nil},
		{"a rule about some hosts", deny(policy.Rule{Tool: "web.fetch", Host: "example.com"}), nil},
		{"a rule about some arguments", deny(policy.Rule{Tool: "*", Args: map[string]string{"x": "y"}}), nil},
		{"an allow beside the denial", policy.Rules{Rules: []policy.Rule{
			{Decision: event.DecisionAllow, Tool: "fs.write"}, {Decision: event.DecisionDeny, Tool: "fs.write"},
		}}, map[string]string{"fs.write": "tools.rules: deny fs.write"}},
		{"a plan", policy.Rules{Declared: true, Mode: policy.ModePlan}, map[string]string{
			"fs.write": "mode: plan", "crm.record": "mode: plan", "web.mcp": "mode: plan",
		}},
		{"no files", policy.Rules{Declared: true, Filesystem: policy.FilesystemNone}, map[string]string{
			"fs.read": "tools.permissions.filesystem: none", "fs.write": "tools.permissions.filesystem: none", "shell.exec": "tools.permissions.filesystem: none",
		}},
		{"files to read", policy.Rules{Declared: true, Filesystem: policy.FilesystemReadOnly}, map[string]string{
			"fs.write": "tools.permissions.filesystem: repo-readonly",
		}},
	} {
		for _, tool := range []policy.Tool{fetch, read, write, shell, unknown, record, look, remote} {
			rule, hidden := c.rules.Hides(tool)
			if rule != c.hidden[tool.Name] || hidden != (rule != "") {
				t.Errorf("%s: %s is hidden by %q, want %q", c.name, tool.Name, rule, c.hidden[tool.Name])
			}
			for _, call := range calls[tool.Name] {
				if v := c.rules.Decide(call); hidden && v.Decision != event.DecisionDeny {
					t.Errorf("%s: %s is hidden, and a call of it is %s by %s", c.name, tool.Name, v.Decision, v.Rule)
				}
			}
		}
	}
}

func runs(words ...string) *event.ToolCall {
	readOnly := words[0] == "ls"
	f := &event.Facts{Commands: []event.Command{{Words: words, ReadOnly: readOnly}}, Risk: event.RiskExecute}
	if readOnly {
		f.Risk = event.RiskRead
	}
	return &event.ToolCall{Tool: "shell.exec", Facts: f}
}

// A call that is known to change nothing and to stay inside runs, whatever the policy
// for the rest.
//
// rows: ALF-79
func TestUnnamedToolAsksOnlyBeforeSideEffects(t *testing.T) {
	outside := runs("ls")
	outside.Facts.Paths = []event.PathUse{{Path: "/etc", Outside: true}}
	unclear := runs("ls")
	unclear.Facts.Unclear = []string{"what $x is"}
	for _, c := range []struct {
		name string
		call *event.ToolCall
		want event.Decision
	}{
		{"a command that only looks", runs("ls"), event.DecisionAllow},
		{"a command that changes something", runs("rm", "x"), event.DecisionAsk},
		{"a command that looks elsewhere", outside, event.DecisionAsk},
		{"a command that is not clear", unclear, event.DecisionAsk},
		{"a look whose risk nobody states", reads("fs.read", event.PathUse{Path: "a"}), event.DecisionAllow},
		{"a look at who knows what", reads("fs.read", event.PathUse{Path: "$x", Unknown: true}), event.DecisionAsk},
		{"a tool that says nothing", &event.ToolCall{Tool: "x"}, event.DecisionAsk},
	} {
		if v := (policy.Rules{}).Decide(c.call); v.Decision != c.want {
			t.Errorf("%s: %s by %s", c.name, v.Decision, v.Rule)
		}
	}
}

// rows: HAR-61
func TestAToolOfHighRiskAsksUnlessItsOwnerSaidNever(t *testing.T) {
	for _, risk := range []event.Risk{event.RiskFinancial, event.RiskSend, event.RiskDelete, event.RiskPermission} {
		if !policy.High(risk) {
			t.Errorf("%s is no high risk", risk)
		}
		r := policy.Rules{Declared: true, Mode: policy.ModeBypass, HighRisk: map[string]event.Risk{"pay": risk}}
		if v := r.Decide(&event.ToolCall{Tool: "pay"}); v.Decision != event.DecisionAsk || v.Rule != "risk: "+string(risk) {
			t.Errorf("%s: %s by %s", risk, v.Decision, v.Rule)
		}
	}
	for _, risk := range []event.Risk{"", event.RiskRead, event.RiskWrite, event.RiskExecute, event.RiskUnknown} {
		if policy.High(risk) {
			t.Errorf("%q is a high risk", risk)
		}
	}
}

// rows: HAR-33
func TestRulesSpeakByToolArgumentPathHostAndCommand(t *testing.T) {
	file := func(p string) *event.ToolCall { return writes("fs.write", event.PathUse{Path: p}) }
	args := func(text string) *event.ToolCall { return &event.ToolCall{Tool: "crm.update", Args: []byte(text)} }
	host := func(hosts ...string) *event.ToolCall {
		return &event.ToolCall{Tool: "web.fetch", Facts: &event.Facts{Hosts: hosts}}
	}
	for _, c := range []struct {
		name string
		rule policy.Rule
		call *event.ToolCall
		want bool
	}{
		{"a tool by name", policy.Rule{Tool: "fs.write"}, file("a"), true},
		{"another tool", policy.Rule{Tool: "fs.edit"}, file("a"), false},
		{"tools by star", policy.Rule{Tool: "fs.*"}, file("a"), true},
		{"a part of a name", policy.Rule{Tool: "fs.wri"}, file("a"), false},
		{"a path", policy.Rule{Tool: "*", Path: "docs/**"}, file("docs/a/b"), true},
		{"a nested path of that name", policy.Rule{Tool: "*", Path: "docs/*.md"}, file("src/docs/a.md"), false},
		{"an argument", policy.Rule{Tool: "*", Args: map[string]string{"id": "7"}}, args(`{"id":"7"}`), true},
		{"an argument that is a number", policy.Rule{Tool: "*", Args: map[string]string{"id": "7"}}, args(`{"id":7}`), true},
		{"an argument by star", policy.Rule{Tool: "*", Args: map[string]string{"to": "*@example.com"}}, args(`{"to":"a@example.com"}`), true},
		{"the end of an argument", policy.Rule{Tool: "*", Args: map[string]string{"to": "*@example.com"}}, args(`{"to":"a@example.com.evil.test"}`), false},
		{"one argument of two", policy.Rule{Tool: "*", Args: map[string]string{"a": "1", "b": "2"}}, args(`{"a":"1"}`), false},
		{"a host", policy.Rule{Tool: "*", Host: "example.com"}, host("example.com"), true},
		{"a host in capitals", policy.Rule{Tool: "*", Host: "EXAMPLE.com"}, host("example.com"), true},
		{"a host below it", policy.Rule{Tool: "*", Host: "*.example.com"}, host("a.example.com"), true},
		{"a host that only ends like it", policy.Rule{Tool: "*", Host: "*.example.com"}, host("badexample.com"), false},
		{"a command", policy.Rule{Tool: "shell.exec", Command: "git push *"}, runs("git", "push", "origin"), true},
		{"a command without more words", policy.Rule{Tool: "shell.exec", Command: "git push *"}, runs("git", "push"), true},
		{"another command", policy.Rule{Tool: "shell.exec", Command: "git push *"}, runs("git", "pull"), false},
		{"all that a rule gives must apply", policy.Rule{Tool: "fs.write", Path: "docs/**", Host: "example.com"}, file("docs/a"), false},
	} {
		for _, decision := range []event.Decision{event.DecisionDeny, event.DecisionAsk, event.DecisionAllow} {
			c.rule.Decision = decision
			v, _ := policy.Rules{Rules: []policy.Rule{c.rule}}.Explain(c.call)
			if spoke := v.Rule == c.rule.String(); spoke != c.want {
				t.Errorf("%s, as %s: decided %s by %q", c.name, decision, v.Decision, v.Rule)
			}
		}
	}
}

func TestARuleThatGuardsACommandOfGitHoldsForItsOwnProgram(t *testing.T) {
	rules := policy.Rules{Declared: true, Rules: []policy.Rule{{Tool: "shell.exec", Decision: event.DecisionDeny, Command: "git push *"}}}
	for program, want := range map[string]event.Decision{"/usr/lib/git-core/git-push": event.DecisionDeny, "git-push": event.DecisionDeny, "git-pull": event.DecisionAllow} {
		if v := rules.Decide(runs(program, "origin")); v.Decision != want {
			t.Errorf("%s: %s by %s, want %s", program, v.Decision, v.Rule, want)
		}
	}
}

// git-crypt is a program of its own, and a command of git's as well.
func TestARuleThatGuardsAProgramWhoseNameBeginsLikeGitsHolds(t *testing.T) {
	for _, pattern := range []string{"git-crypt *", "git-crypt unlock", "git crypt *"} {
		rules := policy.Rules{Declared: true, Rules: []policy.Rule{{Tool: "shell.exec", Decision: event.DecisionDeny, Command: pattern}}}
		if v := rules.Decide(runs("/usr/bin/git-crypt", "unlock")); v.Decision != event.DecisionDeny {
			t.Errorf("%s: %s by %s, want deny", pattern, v.Decision, v.Rule)
		}
	}
}

// A fact keeps the beginning of a long word only.
func TestARuleThatGuardsHoldsForAWordThatWasCut(t *testing.T) {
	cut := strings.Repeat("x", event.MaxWord) + event.WordCut
	for pattern, want := range map[string]event.Decision{
		"psql *prod*": event.DecisionDeny, "psql x*": event.DecisionDeny, "psql *.sql": event.DecisionDeny, "psql " + strings.Repeat("x", event.MaxWord+1): event.DecisionDeny,
		"psql y*": event.DecisionAllow, "psql x": event.DecisionAllow,
	} {
		rules := policy.Rules{Declared: true, Rules: []policy.Rule{{Tool: "shell.exec", Decision: event.DecisionDeny, Command: pattern}}}
		if v := rules.Decide(runs("psql", cut)); v.Decision != want {
			t.Errorf("%s: %s by %s, want %s", pattern, v.Decision, v.Rule, want)
		}
	}
	rules := policy.Rules{Rules: []policy.Rule{{Tool: "shell.exec", Decision: event.DecisionAllow, Command: "psql *.sql"}}}
	if v := rules.Decide(runs("psql", cut)); v.Decision != event.DecisionAsk {
		t.Errorf("a rule that allows takes a word that was cut for one that fits: %s by %s", v.Decision, v.Rule)
	}
}
