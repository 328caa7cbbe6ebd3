package policy_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// rows: HAR-33, ALDO-56
func TestDecide(t *testing.T) {
	write := &event.ToolCall{Tool: "fs.write"}
	read := &event.ToolCall{Tool: "fs.read", ReadOnly: true}
	edit := writes("fs.write", event.PathUse{Path: "a"})
	edit.Facts.Risk = event.RiskWrite
	for _, tt := range []struct {
		name  string
		rules policy.Rules
		call  *event.ToolCall
		want  event.Decision
		rule  string
	}{
		{"named by the owner", policy.Rules{Declared: true}, write, event.DecisionAllow, "tools.allow"},
		{"named and gated", policy.Rules{Declared: true, Gates: []string{"fs.write"}}, write, event.DecisionAsk, "tools.approvals.fs.write: always"},
		{"another tool is gated", policy.Rules{Declared: true, Gates: []string{"fs.edit"}}, write, event.DecisionAllow, "tools.allow"},
		{"a gated read asks, too", policy.Rules{Gates: []string{"fs.read"}}, read, event.DecisionAsk, "tools.approvals.fs.read: always"},
		{"there by default, reads", policy.Rules{}, read, event.DecisionAllow, "default: read-only"},
		{"there by default, writes", policy.Rules{}, write, event.DecisionAsk, "default: side effects ask"},
		{"opened by the owner", policy.Rules{Open: []string{"fs.write"}}, write, event.DecisionAllow, "tools.approvals.fs.write: never"},
		{"an edit by default", policy.Rules{}, edit, event.DecisionAsk, "default: side effects ask"},
		{"an edit where edits are accepted", policy.Rules{Mode: policy.ModeAcceptEdits}, edit, event.DecisionAllow, "mode: accept-edits"},
		{"a command where edits are accepted", policy.Rules{Mode: policy.ModeAcceptEdits}, line(command("make")), event.DecisionAsk, "default: side effects ask"},
		{"an edit where all is let past", policy.Rules{Mode: policy.ModeBypass}, edit, event.DecisionAllow, "mode: bypass"},
		{"a gate wins over an opening", policy.Rules{Gates: []string{"fs.write"}, Open: []string{"fs.write"}}, write, event.DecisionAsk, "tools.approvals.fs.write: always"},
	} {
		if got := tt.rules.Decide(tt.call); got.Decision != tt.want || got.Rule != tt.rule {
			t.Errorf("%s: %s by %q, want %s by %q", tt.name, got.Decision, got.Rule, tt.want, tt.rule)
		}
	}
}

func writes(tool string, paths ...event.PathUse) *event.ToolCall {
	for i := range paths {
		paths[i].Write = true
	}
	return &event.ToolCall{Tool: tool, Facts: &event.Facts{Paths: paths}}
}

func reads(tool string, paths ...event.PathUse) *event.ToolCall {
	return &event.ToolCall{Tool: tool, ReadOnly: true, Facts: &event.Facts{Paths: paths}}
}

// rows: ALDO-57
func TestProtectedPathsAskWhateverElsePermitsTheCall(t *testing.T) {
	open := policy.Rules{Declared: true, Open: []string{"fs.write"}, Protected: []policy.Pattern{"**/*.pem", "deploy"}}
	gated := policy.Rules{Declared: true, GateProtected: []string{"fs.read", "fs.write"}, Protected: open.Protected}
	within := policy.Rules{Declared: true, Open: []string{"fs.write"}, Nested: []policy.Pattern{"vendor/lib/.git/**"}}
	at := func(p string) event.PathUse { return event.PathUse{Path: p} }
	tree := func(p string) event.PathUse { return event.PathUse{Path: p, Tree: true} }
	for _, c := range []struct {
		name  string
		rules policy.Rules
		call  *event.ToolCall
		want  event.Decision
		rule  string
	}{
		{"a plain file", open, writes("fs.write", at("a.txt")), event.DecisionAllow, "tools.approvals.fs.write: never"},
		{"a protected file", open, writes("fs.write", at("certs/a.pem")), event.DecisionAsk, "protected_paths: **/*.pem"},
		{"below a protected directory", open, writes("fs.write", at("deploy/prod/x")), event.DecisionAsk, "protected_paths: deploy"},
		{"the second of two", open, writes("fs.write", at("a.txt"), at("a.pem")), event.DecisionAsk, "protected_paths: **/*.pem"},
		{"the repository's own", open, writes("fs.write", at(".git/config")), event.DecisionAsk, "protected_paths: .git/**"},
		{"the journal's own", open, writes("fs.write", at(".pawl/journal.db")), event.DecisionAsk, "protected_paths: .pawl/**"},
		{"a repository's within", open, writes("fs.write", at("vendor/lib/.git/hooks/pre-commit")), event.DecisionAsk, "protected_paths: **/.git/**"},
		{"a file beside a repository", open, writes("fs.write", at("vendor/lib/.gitignore")), event.DecisionAllow, "tools.approvals.fs.write: never"},
		{"a repository's within is read", open, reads("fs.read", at("vendor/lib/.git/HEAD")), event.DecisionAllow, "tools.allow"},
		{"a pattern that a program is given", within, reads("shell.exec", event.PathUse{Path: "*/.git/*", Given: true}), event.DecisionAllow, "tools.allow"},
		{"a program is given one that was found", within, reads("shell.exec", event.PathUse{Path: "vendor/lib/.git", Given: true}), event.DecisionAsk, "protected_paths: vendor/lib/.git/**"},
		{"a tree with one that is copied", within, reads("shell.exec", event.PathUse{Path: "vendor", Tree: true, Given: true}), event.DecisionAllow, "tools.allow"},
		{"a tree in which none was found", within, writes("fs.write", tree("build")), event.DecisionAllow, "tools.approvals.fs.write: never"},
		{"a tree in which one was found", within, writes("fs.write", tree("vendor")), event.DecisionAsk, "protected_paths: vendor/lib/.git/**"},
		{"everything", open, writes("fs.write", tree(".")), event.DecisionAsk, "protected_paths: **/*.pem"},
		{"what the sandbox holds", open, writes("fs.write", event.PathUse{Path: "a.txt", Protected: true}), event.DecisionAsk, "protected_paths"},
		{"given to a program", open, reads("shell.exec", event.PathUse{Path: "a.pem", Given: true}), event.DecisionAsk, "protected_paths: **/*.pem"},
		{"outside", open, writes("fs.write", event.PathUse{Path: "/tmp/x", Outside: true}), event.DecisionAsk, "workspace"},
		{"a protected file is read", open, reads("fs.read", at("a.pem")), event.DecisionAllow, "tools.allow"},
		{"and gated", gated, reads("fs.read", at("a.pem")), event.DecisionAsk, "tools.approvals.fs.read: protected_paths"},
		{"another is read, and gated", gated, reads("fs.read", at("a.txt")), event.DecisionAllow, "tools.allow"},
		{"a directory that may hold one is searched, and gated", gated, reads("fs.read", tree("src")), event.DecisionAsk, "tools.approvals.fs.read: protected_paths"},
		{"another is written, and gated", gated, writes("fs.write", at("a.txt")), event.DecisionAllow, "tools.allow"},
	} {
		if got := c.rules.Decide(c.call); got.Decision != c.want || got.Rule != c.rule {
			t.Errorf("%s: %s by %q, want %s by %q", c.name, got.Decision, got.Rule, c.want, c.rule)
		}
	}
}

func TestQuestionAboutTreeNamesProtectedRoot(t *testing.T) {
	for path, want := range map[string]string{".": ". may hold what is protected", ".git/hooks": ".git/hooks is protected"} {
		v := policy.Rules{Declared: true}.Decide(writes("fs.write", event.PathUse{Path: path, Tree: true}))
		if v.Reason != want {
			t.Errorf("asked because %q, want %q", v.Reason, want)
		}
	}
	if v := (policy.Rules{Declared: true}).Decide(writes("fs.write", event.PathUse{Path: ".git/hooks"})); v.Reason != ".git/hooks is protected" {
		t.Errorf("asked because %q of a file", v.Reason)
	}
}

func TestEveryRuleThatSpokeIsGivenTheStrictestFirst(t *testing.T) {
	r := policy.Rules{Declared: true, Gates: []string{"fs.write"}}
	c := writes("fs.write", event.PathUse{Path: "/x", Outside: true})
	c.Facts.Confined = true
	v, verdicts := r.Explain(c)
	if v != verdicts[0] || v.Decision != event.DecisionDeny || len(verdicts) != 3 ||
		verdicts[1].Rule != "tools.approvals.fs.write: always" || verdicts[2].Rule != "tools.allow" {
		t.Errorf("decided %+v of %+v", v, verdicts)
	}
	if _, verdicts := (policy.Rules{Gates: []string{"x"}}).Explain(&event.ToolCall{Tool: "x"}); len(verdicts) != 1 {
		t.Errorf("beside the rule that spoke there is %+v", verdicts)
	}
}

// What forbids holds under every name of a file, what permits under its own.
func TestANameThatLeadsThroughALinkForbidsAndDoesNotPermit(t *testing.T) {
	alias := event.PathUse{Path: "link/a", Alias: true}
	own := event.PathUse{Path: "conf/a"}
	for _, c := range []struct {
		name string
		rule policy.Rule
		want event.Decision
	}{
		{"a denied link", policy.Rule{Decision: event.DecisionDeny, Tool: "fs.write", Path: "link/**"}, event.DecisionDeny},
		{"a link that asks", policy.Rule{Decision: event.DecisionAsk, Tool: "fs.write", Path: "link/**"}, event.DecisionAsk},
		{"a permitted file", policy.Rule{Decision: event.DecisionAllow, Tool: "fs.write", Path: "conf/**"}, event.DecisionAllow},
		{"a permitted link", policy.Rule{Decision: event.DecisionAllow, Tool: "fs.write", Path: "link/**"}, event.DecisionAsk},
	} {
		if got := (policy.Rules{Rules: []policy.Rule{c.rule}}).Decide(writes("fs.write", own, alias)); got.Decision != c.want {
			t.Errorf("%s: %s by %s", c.name, got.Decision, got.Rule)
		}
	}
	protected := policy.Rules{Declared: true, Protected: []policy.Pattern{"link/**"}}
	if got := protected.Decide(writes("fs.write", own, alias)); got.Decision != event.DecisionAsk {
		t.Errorf("a protected link: %s by %s", got.Decision, got.Rule)
	}
	link := policy.Rules{Declared: true, Protected: []policy.Pattern{"link"}}
	for path, want := range map[string]event.Decision{"link": event.DecisionAsk, "link/a": event.DecisionAllow} {
		if got := link.Decide(writes("fs.write", own, event.PathUse{Path: path, Alias: true})); got.Decision != want {
			t.Errorf("%s where link is protected: %s by %s", path, got.Decision, got.Rule)
		}
	}
}
