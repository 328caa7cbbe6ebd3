package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

func spoke(rule policy.Rule, c *event.ToolCall) bool {
	_, verdicts := policy.Rules{Rules: []policy.Rule{rule}}.Explain(c)
	return slices.ContainsFunc(verdicts, func(v policy.Verdict) bool { return v.Rule == rule.String() })
}

func line(commands ...event.Command) *event.ToolCall {
	return &event.ToolCall{Tool: "shell.exec", Facts: &event.Facts{Commands: commands}}
}

func command(words ...string) event.Command { return event.Command{Words: words} }

func looks(words ...string) event.Command { return event.Command{Words: words, ReadOnly: true} }

func computed(words ...string) event.Command { return event.Command{Words: words, Computed: true} }

func cut(text string, length int) string { return strings.Repeat(text, length) + event.WordCut }

// rows: HAR-33
func TestAllowingRuleMatchesOnlyFullyCoveredCalls(t *testing.T) {
	unclear := func(c *event.ToolCall) *event.ToolCall {
		c.Facts.Unclear = []string{"what $x is"}
		return c
	}
	touch := policy.Rule{Tool: "shell.exec", Command: "touch *"}
	docs := policy.Rule{Tool: "*", Path: "docs/**"}
	fetch := policy.Rule{Tool: "*", Host: "example.com"}
	for _, c := range []struct {
		name string
		rule policy.Rule
		call *event.ToolCall
		want bool
	}{
		{"one command", touch, line(command("touch", "a")), true},
		{"fewer words", policy.Rule{Tool: "*", Command: "touch a b"}, line(command("touch", "a")), false},
		{"further words", policy.Rule{Tool: "*", Command: "touch a"}, line(command("touch", "a", "b")), false},
		{"another beside it", touch, line(command("touch", "a"), command("rm", "b")), false},
		{"one beside it that only looks", touch, line(command("touch", "a"), looks("cat", "b")), true},
		{"only some that look", touch, line(looks("cat", "a"), looks("wc")), false},
		{"a word that is computed", touch, line(computed("touch", "$x")), false},
		{"a command that is not clear", touch, unclear(line(command("touch", "a"))), false},
		{"a path of a call that is not clear", docs, unclear(writes("x", event.PathUse{Path: "docs/a"})), false},
		{"a host of a call that is not clear", fetch, unclear(fetches("example.com")), false},
		{"any call of the tool, clear or not", policy.Rule{Tool: "shell.exec"}, unclear(line(command("touch", "a"))), true},
		{"one path of two", docs, writes("x", event.PathUse{Path: "docs/a"}, event.PathUse{Path: "b"}), false},
		{"a path that is computed", docs, writes("x", event.PathUse{Path: "docs/$x", Unknown: true}), false},
		{"a whole directory", docs, writes("x", event.PathUse{Path: "docs/a", Tree: true}), true},
		{"a directory of which only its files are allowed", policy.Rule{Tool: "*", Path: "docs/*"}, writes("x", event.PathUse{Path: "docs/a", Tree: true}), false},
		{"a path of a tool that names none", docs, &event.ToolCall{Tool: "x"}, false},
		{"arguments that cannot be read", policy.Rule{Tool: "*", Args: map[string]string{"a": "*"}}, &event.ToolCall{Tool: "x", Args: []byte(`[`)}, false},
	} {
		c.rule.Decision = event.DecisionAllow
		if got := spoke(c.rule, c.call); got != c.want {
			t.Errorf("%s: the rule spoke: %t", c.name, got)
		}
	}
}

// rows: HAR-33
func TestForbiddingRuleMatchesAnyPossibleMatch(t *testing.T) {
	push := policy.Rule{Tool: "shell.exec", Command: "git push *"}
	docs := policy.Rule{Tool: "*", Path: "docs/**"}
	with := func(pattern string) policy.Rule { return policy.Rule{Tool: "*", Args: map[string]string{"a": pattern}} }
	args := func(text string) *event.ToolCall { return &event.ToolCall{Tool: "x", Args: []byte(text)} }
	unclear := line(command("git", "push"))
	unclear.Facts.Unclear = []string{"what $x is"}
	for _, c := range []struct {
		name string
		rule policy.Rule
		call *event.ToolCall
		want bool
	}{
		{"one command of two", push, line(command("ls"), command("git", "push")), true},
		{"in a call that is not clear", push, unclear, true},
		{"behind options", push, line(command("git", "-C", ".", "push")), true},
		{"further words", policy.Rule{Tool: "*", Command: "rm"}, line(command("rm", "-rf", "x")), true},
		{"further words behind options", policy.Rule{Tool: "*", Command: "git push"}, line(command("git", "-C", ".", "push", "origin")), true},
		{"a word that only begins like it", policy.Rule{Tool: "*", Command: "rm"}, line(command("rmdir", "x")), false},
		{"fewer words", policy.Rule{Tool: "*", Command: "rm -rf"}, line(command("rm")), false},
		{"a program that the rule gives a path", policy.Rule{Tool: "*", Command: "./deploy.sh"}, line(command("./deploy.sh", "now")), true},
		{"that program by another path", policy.Rule{Tool: "*", Command: "/bin/rm *"}, line(command("rm", "x")), true},
		{"any program of a directory", policy.Rule{Tool: "*", Command: "./bin/*"}, line(command("bin/x", "now")), true},
		{"any program of a directory, from within it", policy.Rule{Tool: "*", Command: "./bin/*"}, line(command("./x")), true},
		{"any program of a directory, which is computed", policy.Rule{Tool: "*", Command: "./bin/*"}, line(computed("$x")), true},
		{"any program of a directory, which is cut", policy.Rule{Tool: "*", Command: "./bin/*"}, line(command(cut("a", event.MaxWord))), true},
		{"a program that is in none of the workspace", policy.Rule{Tool: "*", Command: "./bin/*"}, line(looks("ls")), false},
		{"such a one with a word that is computed", policy.Rule{Tool: "*", Command: "./bin/d*"}, line(computed("date", "$x")), false},
		{"any program of a directory that commands are looked up in", policy.Rule{Tool: "*", Command: "/opt/bin/*"}, line(command("x")), true},
		{"behind options of a subcommand", policy.Rule{Tool: "*", Command: "docker compose down"}, line(command("docker", "--debug", "compose", "-f", "all.yaml", "down", "-v")), true},
		{"another that names it behind its own", policy.Rule{Tool: "*", Command: "docker compose down"}, line(command("docker", "compose", "logs", "-f", "down")), false},
		{"another behind options", push, line(command("git", "-C", ".", "status")), false},
		{"the word elsewhere", push, line(command("git", "log", "push")), false},
		{"a word that is computed", push, line(computed("git", "$x")), true},
		{"another word of a command in which something is", push, line(computed("git", "pull", "$x")), false},
		{"a word that looks like it and is not", push, line(command("git", "$x")), false},
		{"a command without words", push, line(event.Command{}), false},
		{"a star within", policy.Rule{Tool: "*", Command: "git * push"}, line(command("git", "x", "push")), true},
		{"a star within, and another word behind it", policy.Rule{Tool: "*", Command: "git * push"}, line(command("git", "x", "pull")), false},
		{"a word as it is kept at the least", policy.Rule{Tool: "*", Command: "x " + strings.Repeat("a", event.MaxWord)}, line(command("x", cut("a", event.MaxWord-len(event.WordCut)))), true},
		{"a word that is short and ends like one that was cut", policy.Rule{Tool: "*", Command: "x aaab"}, line(command("x", cut("a", 3))), false},
		{"a path that is computed", docs, writes("x", event.PathUse{Path: "$x", Unknown: true}), true},
		{"a directory above", docs, writes("x", event.PathUse{Path: ".", Tree: true}), true},
		{"a directory above, and nothing below it", docs, writes("x", event.PathUse{Path: "."}), false},
		{"a directory elsewhere", docs, writes("x", event.PathUse{Path: "src", Tree: true}), false},
		{"a path of a tool that names none", docs, args(`{}`), false},
		{"arguments that cannot be read", with("*"), args(`[`), true},
		{"an argument that is not there", with("*"), args(`{"b":1}`), false},
		{"parts of an argument", with("*BEGIN*KEY*"), args(`{"a":"-BEGIN RSA KEY-"}`), true},
		{"one part of two", with("*BEGIN*KEY*"), args(`{"a":"-BEGIN RSA-"}`), false},
		{"its parts the other way round", with("*BEGIN*KEY*"), args(`{"a":"-KEY BEGIN-"}`), false},
	} {
		c.rule.Decision = event.DecisionDeny
		if got := spoke(c.rule, c.call); got != c.want {
			t.Errorf("%s: the rule spoke: %t", c.name, got)
		}
	}
}

func TestARuleHasOneName(t *testing.T) {
	r := policy.Rule{
		Decision: event.DecisionDeny, Tool: "x", Path: "p", Host: "h", Command: "c",
		Args: map[string]string{"e": "5", "d": "4", "c": "3", "b": "2", "a": "1"},
	}
	if got, want := r.String(), "tools.rules: deny x, path p, host h, command c, a=1, b=2, c=3, d=4, e=5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
