package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

func unsandboxed(c *event.ToolCall) *event.ToolCall {
	c.Facts.Unsandboxed, c.Facts.Risk = true, event.RiskExecute
	return c
}

// writesGit is a command of git's that writes the repository of the workspace.
func writesGit(words ...string) *event.ToolCall {
	c := line(command(words...))
	c.Args = []byte(`{"command":"` + strings.Join(words, " ") + `"}`)
	c.Facts.Paths = []event.PathUse{{Path: ".git", Write: true, Tree: true, Repository: true}}
	return c
}

// What a person allowed of git holds for the same command of git's with other words, and
// for no other command of git's.
func TestAPermissionForACommandOfGitIsForThatCommand(t *testing.T) {
	rules := policy.Rules{Declared: true, Permissions: []event.Permission{{Tool: "shell.exec", Command: "git commit *"}}}
	config := writesGit("git", "commit", "-m", "y")
	config.Facts.Paths = append(config.Facts.Paths, event.PathUse{Path: ".git/config", Write: true})
	two := writesGit("git", "commit", "-m", "y")
	two.Facts.Commands = append(two.Facts.Commands, command("git", "reset", "--hard"))
	for _, c := range []struct {
		name string
		call *event.ToolCall
		want event.Decision
	}{
		{"with another message", writesGit("git", "commit", "-m", "y"), event.DecisionAllow},
		{"another command", writesGit("git", "reset", "--hard"), event.DecisionAsk},
		{"another command behind it", two, event.DecisionAsk},
		{"one that writes the settings too", config, event.DecisionAsk},
	} {
		if got := rules.Decide(c.call); got.Decision != c.want {
			t.Errorf("%s: %s by %q, want %s", c.name, got.Decision, got.Rule, c.want)
		}
	}
}

// rows: HAR-68
func TestWhatAPersonMayAllowForTheRestOfARun(t *testing.T) {
	edit := func(paths ...event.PathUse) *event.ToolCall {
		for i := range paths {
			paths[i].Write = true
		}
		return writes("fs.write", paths...)
	}
	unclear := line(command("go", "test"))
	unclear.Facts.Unclear = []string{"what $x is"}
	gate := policy.Rules{Declared: true, Gates: []string{"shell.exec", "fs.write"}}
	for _, c := range []struct {
		name  string
		rules policy.Rules
		call  *event.ToolCall
		want  string
	}{
		{"the first two words", gate, line(command("go", "test", "./...")), "shell.exec, command go test *"},
		{"a single word", gate, line(command("make")), "shell.exec, command make"},
		{"beside what only looks", gate, line(looks("cd", "x"), command("go", "test", "./...")), "shell.exec, command go test *"},
		{"two that begin alike", gate, line(command("go", "test", "a"), command("go", "test", "b")), "shell.exec, command go test *"},
		{"two that do not", gate, line(command("go", "test"), command("rm", "x")), ""},
		{"what is computed", gate, line(computed("go", "$x")), ""},
		{"what is not clear", gate, unclear, ""},
		{"a word with a star", gate, line(command("rm", "*")), ""},
		{"a word of two words", gate, line(command("rm", "a b")), ""},
		{"only what looks", gate, line(looks("ls")), ""},
		{"the directory", gate, edit(event.PathUse{Path: "docs/a/x.md"}), "fs.write, path docs/a/*"},
		{"the top", gate, edit(event.PathUse{Path: "x.md"}), "fs.write, path *"},
		{"under the file's own name", gate, edit(event.PathUse{Path: "link/x", Alias: true}, event.PathUse{Path: "docs/x"}), "fs.write, path docs/*"},
		{"two files of one directory", gate, edit(event.PathUse{Path: "docs/x"}, event.PathUse{Path: "docs/y"}), "fs.write, path docs/*"},
		{"two directories", gate, edit(event.PathUse{Path: "a/x"}, event.PathUse{Path: "b/x"}), ""},
		{"a whole tree", gate, edit(event.PathUse{Path: "a/x", Tree: true}), ""},
		{"outside", gate, edit(event.PathUse{Path: "/etc/x", Outside: true}), ""},
		{"a directory with a star", gate, edit(event.PathUse{Path: "a*/x"}), ""},
		{"a tool without facts", policy.Rules{Gates: []string{"x"}}, &event.ToolCall{Tool: "x"}, ""},
		{"by default", policy.Rules{}, line(command("go", "test", "x")), "shell.exec, command go test *"},
		{"without a sandbox", policy.Rules{Declared: true}, unsandboxed(line(command("go", "test", "x"))), "shell.exec, command go test *"},
		{"what writes the repository", policy.Rules{Declared: true}, writesGit("git", "commit", "-m", "x"), "shell.exec, command git commit *"},
		{"with an option before its command", policy.Rules{Declared: true}, writesGit("git", "-C", ".", "commit"), "shell.exec, exactly the line git -C . commit"},
		{"what writes the repository and is denied", policy.Rules{Declared: true, Git: policy.GitDeny}, writesGit("git", "commit", "-m", "x"), ""},
		{"what is protected", gate, edit(event.PathUse{Path: ".git/config"}), ""},
		{"what the owner protects", policy.Rules{Gates: []string{"fs.write"}, Protected: []policy.Pattern{"keys/**"}}, edit(event.PathUse{Path: "keys/x"}), ""},
		{"what a rule of the owner's denies", policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionDeny, Tool: "*", Command: "go test"}}}, line(command("go", "test")), ""},
		{"what a rule of the owner's asks about", policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionAsk, Tool: "*", Command: "go test"}}}, line(command("go", "test")), ""},
		{"what cannot be taken back", policy.Rules{HighRisk: map[string]event.Risk{"shell.exec": event.RiskSend}}, line(command("go", "test")), ""},
		{"while the run is planning", policy.Rules{Mode: policy.ModePlan}, line(command("go", "test")), ""},
	} {
		got := ""
		if p := c.rules.Permission(c.call); p != nil {
			got = p.String()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// rows: HAR-68
func TestAPermissionAnswersOnlyWhatIsAskedOfEveryCall(t *testing.T) {
	test := event.Permission{Tool: "shell.exec", Command: "go test *"}
	docs := event.Permission{Tool: "fs.write", Path: "docs/*"}
	file := func(path string) *event.ToolCall { return writes("fs.write", event.PathUse{Path: path, Write: true}) }
	tainted := policy.Rules{Taint: event.Taint{Untrusted: &event.TaintSource{}, Private: &event.TaintSource{}}}
	sends := line(command("go", "test"))
	sends.Labels.Outgoing = true
	for _, c := range []struct {
		name  string
		rules policy.Rules
		call  *event.ToolCall
		want  event.Decision
	}{
		{"such a command", policy.Rules{}, line(command("go", "test", "./x")), event.DecisionAllow},
		{"one of a tool that is gated", policy.Rules{Declared: true, Gates: []string{"shell.exec"}}, line(command("go", "test", "./x")), event.DecisionAllow},
		{"one without a sandbox", policy.Rules{Declared: true}, unsandboxed(line(command("go", "test"))), event.DecisionAllow},
		{"another command", policy.Rules{}, line(command("go", "vet", "./x")), event.DecisionAsk},
		{"another beside it", policy.Rules{}, line(command("go", "test"), command("rm", "x")), event.DecisionAsk},
		{"the same of another tool", policy.Rules{}, &event.ToolCall{Tool: "x", Facts: line(command("go", "test")).Facts}, event.DecisionAsk},
		{"one that writes what is protected", policy.Rules{}, &event.ToolCall{Tool: "shell.exec", Facts: &event.Facts{
			Commands: []event.Command{command("go", "test")}, Paths: []event.PathUse{{Path: ".git/config", Write: true}},
		}}, event.DecisionAsk},
		{"one that a rule denies", policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionDeny, Tool: "shell.exec"}}}, line(command("go", "test")), event.DecisionDeny},
		{"one that a rule asks about", policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionAsk, Tool: "shell.exec"}}}, line(command("go", "test")), event.DecisionAsk},
		{"one that a rule puts into the sandbox", policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionSandbox, Tool: "shell.exec"}}}, line(command("go", "test")), event.DecisionSandbox},
		{"one of a tool of high risk", policy.Rules{HighRisk: map[string]event.Risk{"shell.exec": event.RiskSend}}, line(command("go", "test")), event.DecisionAsk},
		{"one that could carry private data out", tainted, sends, event.DecisionAsk},
		{"while the run is planning", policy.Rules{Mode: policy.ModePlan}, line(command("go", "test")), event.DecisionDeny},
		{"a file of the directory", policy.Rules{}, file("docs/b.md"), event.DecisionAllow},
		{"a file below it", policy.Rules{}, file("docs/sub/b.md"), event.DecisionAsk},
		{"a file elsewhere", policy.Rules{}, file("b.md"), event.DecisionAsk},
		{"a repository in it", policy.Rules{}, file("docs/.git"), event.DecisionAsk},
	} {
		c.rules.Permissions = []event.Permission{test, docs, {Tool: "x"}}
		if v := c.rules.Decide(c.call); v.Decision != c.want {
			t.Errorf("%s: %s by %s, want %s", c.name, v.Decision, v.Rule, c.want)
		}
	}
}
