package policy_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// rows: HAR-36
func TestSandboxRuleHoldsForPermittedCalls(t *testing.T) {
	box := policy.Rule{Decision: event.DecisionSandbox, Tool: "shell.exec", Command: "npm *"}
	npm := &event.ToolCall{Tool: "shell.exec", Facts: &event.Facts{Commands: []event.Command{{Words: []string{"make"}}, {Words: []string{"npm", "test"}}}}}
	other := &event.ToolCall{Tool: "shell.exec", Facts: &event.Facts{Commands: []event.Command{{Words: []string{"make"}}}}}
	deny := policy.Rule{Decision: event.DecisionDeny, Tool: "shell.exec", Command: "make *"}
	for _, c := range []struct {
		name    string
		rules   policy.Rules
		call    *event.ToolCall
		want    event.Decision
		sandbox bool
	}{
		{"allowed by name", policy.Rules{Declared: true, Rules: []policy.Rule{box}}, npm, event.DecisionSandbox, true},
		{"of which no rule speaks", policy.Rules{Declared: true, Rules: []policy.Rule{box}}, other, event.DecisionAllow, false},
		{"gated", policy.Rules{Declared: true, Gates: []string{"shell.exec"}, Rules: []policy.Rule{box}}, npm, event.DecisionAsk, true},
		{"there by default only", policy.Rules{Rules: []policy.Rule{box}}, npm, event.DecisionAsk, true},
		{"denied", policy.Rules{Declared: true, Rules: []policy.Rule{box, deny}}, npm, event.DecisionDeny, true},
	} {
		if got := c.rules.Decide(c.call); got.Decision != c.want || got.Sandbox != c.sandbox {
			t.Errorf("%s: %s, sandbox %v; want %s, %v", c.name, got.Decision, got.Sandbox, c.want, c.sandbox)
		}
	}
}
