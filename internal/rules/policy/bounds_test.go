package policy_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// A call that is not known to keep to a bound on files is denied, whatever permits it.
func TestABoundOnFilesHoldsWhateverIsNotKnownToKeepToIt(t *testing.T) {
	file := func(p event.PathUse) *event.ToolCall { return reads("fs.read", p) }
	ls := func(p ...event.PathUse) *event.ToolCall {
		c := runs("ls")
		c.Facts.Paths = p
		return c
	}
	uploads := func(change func(*event.ToolCall)) *event.ToolCall {
		c := fetches("example.org")
		change(c)
		return c
	}
	served := func() *event.ToolCall {
		return &event.ToolCall{Tool: "docs.find", Facts: &event.Facts{Risk: event.RiskUnknown}}
	}
	remote := func() *event.ToolCall {
		c := served()
		c.Facts.Remote = true
		return c
	}
	outside, unknown := event.PathUse{Path: "/etc/passwd", Outside: true}, event.PathUse{Path: "$x", Unknown: true}
	none := policy.Rules{Declared: true, Filesystem: policy.FilesystemNone}
	look := policy.Rules{Declared: true, Filesystem: policy.FilesystemReadOnly}
	byDefault := policy.Rules{Open: []string{"shell.exec"}, Filesystem: policy.FilesystemReadOnly}
	const allow, deny = event.DecisionAllow, event.DecisionDeny
	for _, c := range []struct {
		name  string
		rules policy.Rules
		call  *event.ToolCall
		want  event.Decision
	}{
		{"no files, and one is read", none, file(event.PathUse{Path: "a"}), deny},
		{"no files, and a tool that names none", none, &event.ToolCall{Tool: "x"}, allow},
		{"no files, and another machine is reached", none, fetches("example.org"), allow},
		{"no files, and one is sent", none, uploads(func(c *event.ToolCall) { c.Facts.Paths = []event.PathUse{{Path: "a"}} }), deny},
		{"no files, and a program sends", none, uploads(func(c *event.ToolCall) { c.Facts.Commands = []event.Command{command("curl")} }), deny},
		{"no files, and what is sent changes something", none, uploads(func(c *event.ToolCall) { c.ReadOnly = false }), deny},
		{"no files, and a tool that says it reaches nobody", none, uploads(func(c *event.ToolCall) { c.Labels = event.Labels{} }), deny},
		{"no files, and a tool that does more than send", none, uploads(func(c *event.ToolCall) { c.Facts.Risk = event.RiskExecute }), deny},
		{"no files, and a call that runs elsewhere", none, remote(), allow},
		{"files to read, and a call that runs elsewhere", look, remote(), allow},
		{"no files, and a server that was started", none, served(), deny},
		{"files to read", look, file(event.PathUse{Path: "a"}), allow},
		{"files to read, and one outside", look, file(outside), deny},
		{"files to read, and who knows which", look, file(unknown), deny},
		{"files to read, and one is written", look, &event.ToolCall{Tool: "fs.write", Facts: &event.Facts{Risk: event.RiskWrite}}, deny},
		{"files to read, and a command that looks", look, ls(), allow},
		{"files to read, and a command that looks outside", look, ls(outside), deny},
		{"files to read, and a command where nobody named the tool", byDefault, ls(), deny},
		{"files to read, and no command where nobody named the tool", byDefault, file(event.PathUse{Path: "a"}), allow},
	} {
		if got := c.rules.Decide(c.call); got.Decision != c.want {
			t.Errorf("%s: %s by %s", c.name, got.Decision, got.Rule)
		}
	}
}

// rows: ALDO-57
func TestACallThatIsNotClearAsksUnlessItsOwnerHasAnswered(t *testing.T) {
	unknown := func(write bool) *event.ToolCall {
		return &event.ToolCall{Tool: "x", ReadOnly: !write, Facts: &event.Facts{Paths: []event.PathUse{{Path: "$x", Unknown: true, Write: write}}}}
	}
	unclear := &event.ToolCall{Tool: "x", Facts: &event.Facts{Unclear: []string{"what $x is"}}}
	never := func(change policy.Rules) policy.Rules {
		change.Open = []string{"x"}
		return change
	}
	gated := policy.Rules{Declared: true, GateProtected: []string{"x"}}
	const allow, ask = event.DecisionAllow, event.DecisionAsk
	for _, c := range []struct {
		name  string
		rules policy.Rules
		call  *event.ToolCall
		want  event.Decision
		rule  string
	}{
		{"named by the owner", policy.Rules{Declared: true}, unclear, ask, "unclear"},
		{"a file is written, and which is computed", policy.Rules{Declared: true}, unknown(true), ask, "unclear"},
		{"a file is read, and which is computed", policy.Rules{Declared: true}, unknown(false), allow, "tools.allow"},
		{"never", never(policy.Rules{}), unclear, allow, "tools.approvals.x: never"},
		{"never, and something is protected", never(policy.Rules{Protected: []policy.Pattern{"*.pem"}}), unclear, ask, "unclear"},
		{"never, and something is denied", never(policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionDeny, Tool: "y"}}}), unclear, ask, "unclear"},
		{"never, and something is allowed", never(policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionAllow, Tool: "y"}}}), unclear, allow, "tools.approvals.x: never"},
		{"gated before it reads", gated, unclear, ask, "tools.approvals.x: protected_paths"},
		{"gated before it reads who knows what", gated, unknown(false), ask, "tools.approvals.x: protected_paths"},
		{"gated, and clear", gated, reads("x", event.PathUse{Path: "a"}), allow, "tools.allow"},
	} {
		if got := c.rules.Decide(c.call); got.Decision != c.want || got.Rule != c.rule {
			t.Errorf("%s: %s by %q", c.name, got.Decision, got.Rule)
		}
	}
}
