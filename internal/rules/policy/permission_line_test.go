package policy_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// rows: HAR-68
func TestACommandLineThatAsksMayBeAllowedAsItIs(t *testing.T) {
	lined := func(text string, f event.Facts) *event.ToolCall {
		if len(f.Commands) == 0 {
			f.Commands = []event.Command{{Words: []string{"chmod", "-R", "a+r", "."}}}
		}
		return &event.ToolCall{Tool: "shell.exec", Args: []byte(`{"command":"` + text + `"}`), Facts: &f}
	}
	protected := event.Facts{Paths: []event.PathUse{{Path: ".", Write: true, Tree: true}}, Sandboxed: true}
	outside := event.Facts{Paths: []event.PathUse{{Path: "/srv/x", Write: true, Outside: true}}}
	unclear := event.Facts{Unclear: []string{"xargs runs what is not known before it runs"}, Sandboxed: true}
	free := unclear
	free.Sandboxed, free.Unsandboxed = false, true
	curl := []policy.Rule{{Decision: event.DecisionDeny, Tool: "shell.exec", Command: "curl"}}
	for _, c := range []struct {
		name  string
		rules policy.Rules
		call  *event.ToolCall
		want  bool
	}{
		{"what is protected", policy.Rules{Declared: true}, lined("chmod -R a+r .", protected), true},
		{"what is outside", policy.Rules{Declared: true}, lined("cp a /srv/x", outside), true},
		{"what a rule might be about, in a sandbox", policy.Rules{Declared: true, Rules: curl}, lined("ls | xargs rm", unclear), true},
		{"what cannot be read, without one", policy.Rules{Declared: true}, lined("ls | xargs rm", free), false},
		{"a line of several lines", policy.Rules{Declared: true}, lined(`a\nb`, protected), false},
		{"what a rule asks about", policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionAsk, Tool: "shell.exec"}}}, lined("chmod -R a+r .", protected), false},
		{"what a rule denies", policy.Rules{Rules: []policy.Rule{{Decision: event.DecisionDeny, Tool: "shell.exec", Command: "chmod"}}}, lined("chmod -R a+r .", protected), false},
		{"a declared risk", policy.Rules{HighRisk: map[string]event.Risk{"shell.exec": event.RiskSend}}, lined("chmod -R a+r .", protected), false},
	} {
		p := c.rules.Permission(c.call)
		if got := p != nil && p.Line != ""; got != c.want {
			t.Errorf("%s: offered %+v", c.name, p)
		}
		if p == nil {
			continue
		}
		c.rules.Permissions = []event.Permission{{Tool: "shell.exec", Command: "go test *"}, *p}
		if v := c.rules.Decide(c.call); v.Decision != event.DecisionAllow {
			t.Errorf("%s: the same line a second time: %s by %s", c.name, v.Decision, v.Rule)
		}
		other := *c.call
		other.Args = []byte(`{"command":"another line"}`)
		if v := c.rules.Decide(&other); v.Decision != event.DecisionAsk {
			t.Errorf("%s: another line: %s by %s", c.name, v.Decision, v.Rule)
		}
	}
}
