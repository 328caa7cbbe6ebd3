package policy_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// rows: ALDO-57
func TestAPatternOfNamesAsksOnlyWhereItMayMatchWhatIsProtected(t *testing.T) {
	rules := policy.Rules{
		Declared: true, Protected: []policy.Pattern{"deploy/**", "**/*.pem", "conf/*.yaml"}, Nested: []policy.Pattern{"vendor/lib/.git/**"},
	}
	for _, c := range []struct {
		names string
		tree  bool
		want  string
	}{
		{"*.pyc", false, ""},
		{"pkg/*.py", false, ""},
		{"pkg*/*.py", false, "**/*.pem"}, // of which one might be pkg.pem
		{"*/__pycache__", true, "deploy/**"},
		{"*", false, "deploy/**"},
		{"d*", false, "deploy/**"},
		{"d?p*y/x", false, "deploy/**"},
		{"D*", false, "deploy/**"},
		{"x*", true, "**/*.pem"},
		{"keys/*", false, "**/*.pem"},
		{"keys/*.pe?", false, "**/*.pem"},
		{"keys/a*.py", false, ""},
		{"conf/*.json", false, ""},
		{"conf/a*", false, "**/*.pem"},
		{"?git/x.py", false, ""},
		{"vendor/l*", true, "**/*.pem"},
		{"/srv/*.py", false, ""},
	} {
		v := rules.Decide(writes("shell.exec", event.PathUse{Path: c.names, Pattern: true, Tree: c.tree}))
		want := "tools.allow"
		if c.want != "" {
			want = "protected_paths: " + c.want
		}
		if v.Rule != want || c.want != "" && !strings.Contains(v.Reason, c.names+" may stand for") {
			t.Errorf("%s (tree: %t): %s by %s, %q, want it by %s", c.names, c.tree, v.Decision, v.Rule, v.Reason, want)
		}
	}
	rules.Protected = nil
	for names, want := range map[string]string{
		"pkg*/*.py": "tools.allow", ".g*/x.py": "protected_paths: .git/**", "src/.g*/x.py": "protected_paths: **/.git/**", "vendor/l*": "protected_paths: vendor/lib/.git/**",
		"vendor/x*": "tools.allow", "*": "protected_paths: vendor/lib/.git/**",
	} {
		if v := rules.Decide(writes("shell.exec", event.PathUse{Path: names, Pattern: true, Tree: true})); v.Rule != want {
			t.Errorf("%s with all below it: %s by %s, want %s", names, v.Decision, v.Rule, want)
		}
	}
}

func TestARuleKnowsAPatternOfNames(t *testing.T) {
	names := func(pattern string) *event.ToolCall {
		return writes("x", event.PathUse{Path: pattern, Pattern: true})
	}
	for _, c := range []struct {
		decision event.Decision
		path     policy.Pattern
		names    string
		want     bool
	}{
		{event.DecisionAllow, "src/**", "src/*.py", true},
		{event.DecisionAllow, "src/*.py", "src/*.py", false},
		{event.DecisionAllow, "src/?.py", "src/*.py", false},
		{event.DecisionAllow, "src/**", "s*/a.py", false},
		{event.DecisionAllow, "**", "*", true},
		{event.DecisionDeny, "src/**", "s*/a.py", true},
		{event.DecisionDeny, "src/**", "lib/*.py", false},
		{event.DecisionDeny, "src/a.py", "src/*.py", true},
		{event.DecisionDeny, "src/a.c", "src/*.py", false},
	} {
		rule := policy.Rule{Decision: c.decision, Tool: "x", Path: c.path}
		if got := spoke(rule, names(c.names)); got != c.want {
			t.Errorf("%s speaks of %s: %t", rule, c.names, got)
		}
	}
}

// A sandbox holds what is protected, whatever a command does; what a rule says of
// commands or paths it does not know.
func TestWhatIsUnclearAsksOnlyWhereASandboxDoesNotHoldIt(t *testing.T) {
	unclear := func(sandboxed bool) *event.ToolCall {
		return &event.ToolCall{Tool: "shell.exec", Facts: &event.Facts{
			Unclear: []string{"xargs runs what is not known before it runs"}, Risk: event.RiskUnknown, Sandboxed: sandboxed, Unsandboxed: !sandboxed,
		}}
	}
	computed := func() *event.ToolCall {
		c := writes("shell.exec", event.PathUse{Path: "$f", Unknown: true})
		c.Facts.Sandboxed = true
		return c
	}
	declared := policy.Rules{Declared: true, Protected: []policy.Pattern{"deploy/**"}}
	with := func(rule policy.Rule) policy.Rules {
		r := declared
		r.Rules = []policy.Rule{rule}
		return r
	}
	gated := declared
	gated.GateProtected = []string{"shell.exec"}
	plan := declared
	plan.Mode = policy.ModePlan
	for _, c := range []struct {
		name  string
		rules policy.Rules
		call  *event.ToolCall
		want  event.Decision
		why   string
	}{
		{"in a sandbox", declared, unclear(true), event.DecisionAllow, ""},
		{"a file that is computed", declared, computed(), event.DecisionAllow, ""},
		{"without one", declared, unclear(false), event.DecisionAsk, "xargs runs"},
		{"by default", policy.Rules{}, unclear(true), event.DecisionAsk, "names no tools.allow"},
		{"a rule about commands", with(policy.Rule{Decision: event.DecisionDeny, Tool: "shell.*", Command: "curl"}), unclear(true), event.DecisionAsk, "(tools.rules: deny shell.*, command curl)"},
		{"a rule about paths", with(policy.Rule{Decision: event.DecisionAsk, Tool: "*", Path: "docs/**"}), unclear(true), event.DecisionAsk, "(tools.rules: ask *, path docs/**)"},
		{"a rule that allows", with(policy.Rule{Decision: event.DecisionAllow, Tool: "shell.exec", Command: "ls"}), unclear(true), event.DecisionAllow, ""},
		{"a rule about another tool", with(policy.Rule{Decision: event.DecisionDeny, Tool: "fs.write", Path: "docs/**"}), unclear(true), event.DecisionAllow, ""},
		{"a rule about another tool, without a sandbox", with(policy.Rule{Decision: event.DecisionDeny, Tool: "fs.write", Path: "docs/**"}), unclear(false), event.DecisionAsk, "fs.write"},
		{"where reads of what is protected ask", gated, unclear(true), event.DecisionAsk, "may touch what is protected"},
		{"in a planning run", plan, unclear(true), event.DecisionDeny, "plan mode"},
	} {
		v := c.rules.Decide(c.call)
		if v.Decision != c.want || !strings.Contains(v.Reason, c.why) {
			t.Errorf("%s: %s by %s because %q, want %s because %q", c.name, v.Decision, v.Rule, v.Reason, c.want, c.why)
		}
	}
}

func TestADenialSaysWhatCouldNotBeKnown(t *testing.T) {
	curl := policy.Rule{Decision: event.DecisionDeny, Tool: "shell.exec", Command: "curl"}
	secret := policy.Rule{Decision: event.DecisionDeny, Tool: "shell.exec", Path: "secret/**", Reason: "keys"}
	paths := func(uses ...event.PathUse) *event.ToolCall {
		return &event.ToolCall{Tool: "shell.exec", Facts: &event.Facts{Paths: uses}}
	}
	for _, c := range []struct {
		rule policy.Rule
		call *event.ToolCall
		want string
	}{
		{curl, line(command("curl", "x")), ""},
		{curl, line(computed("$cmd")), "the rule could not be excluded: what $cmd is, is computed when it runs"},
		{curl, line(computed("$cmd"), command("curl")), ""},
		{curl, line(computed("curl", "$x")), ""},
		{curl, line(command(cut("c", event.MaxWord))), ""},
		{policy.Rule{Decision: event.DecisionDeny, Tool: "*", Command: "c*"}, line(command(cut("c", event.MaxWord))), "is too long to be compared"},
		{secret, paths(event.PathUse{Path: "secret/a"}), "keys"},
		{secret, paths(event.PathUse{Path: ".", Tree: true}), "keys; the rule could not be excluded: a path that the rule names may lie below ."},
		{secret, paths(event.PathUse{Path: "$f", Unknown: true}), "keys; the rule could not be excluded: which file $f is, is computed when it runs"},
		{secret, paths(event.PathUse{Path: "s*", Pattern: true}), "keys; the rule could not be excluded: s* may stand for a path that the rule names"},
		{secret, paths(event.PathUse{Path: "$f", Unknown: true}, event.PathUse{Path: "secret", Tree: true}), "keys"},
	} {
		v := policy.Rules{Declared: true, Rules: []policy.Rule{c.rule}}.Decide(c.call)
		fits := v.Reason == c.want || c.want != "" && strings.HasSuffix(v.Reason, c.want)
		if spoken := spoke(c.rule, c.call); spoken && (!fits || v.Rule != c.rule.String()) || !spoken && c.want != "" {
			t.Errorf("%s about %+v: %s by %s because %q, want %q", c.rule, c.call.Facts, v.Decision, v.Rule, v.Reason, c.want)
		}
	}
}

func TestARuleAboutADirectoryOfProgramsIsHeldWhereTheyLead(t *testing.T) {
	run := func(word, program string, more ...string) *event.ToolCall {
		return line(event.Command{Words: append([]string{word}, more...), Program: program})
	}
	for _, c := range []struct {
		command string
		call    *event.ToolCall
		want    bool
	}{
		{"./bin/*", run("./bin/x", "bin/x"), true},
		{"./bin/* *", run("./bin/x", "bin/x", "now"), true},
		{"bin/*", run("./bin/x", "bin/x"), true},
		{"./bin/*", run("./x", "bin/x"), true},
		{"./bin/*", run("./bin/../evil", "evil"), false},
		{"./bin/*", run("./bin/link", "evil"), false},
		{"./bin/*", run("./bin/away", "/opt/tool"), false},
		{"./bin/*", run("./bin/x", ""), false},
		{"./x.sh", run("./x.sh", "x.sh"), true},
		{"./x.sh", run("./x.sh", "sub/x.sh"), false},
		{"/usr/bin/awk *", run("/usr/bin/awk", "/usr/bin/awk", "x"), true},
		{"/usr/bin/*", run("/usr/bin/../../srv/x", "/srv/x"), false},
	} {
		rule := policy.Rule{Decision: event.DecisionAllow, Tool: "shell.exec", Command: c.command}
		if got := spoke(rule, c.call); got != c.want {
			t.Errorf("%s permits %+v: %t", rule, c.call.Facts.Commands, got)
		}
	}
	deny := policy.Rule{Decision: event.DecisionDeny, Tool: "shell.exec", Command: "rm"}
	if !spoke(deny, run("./tidy", "/usr/bin/rm", "x")) || spoke(deny, run("./tidy", "tidy", "x")) {
		t.Error("a rule that denies does not know where the program leads")
	}
}
