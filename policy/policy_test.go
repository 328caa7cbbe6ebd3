package policy_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/policy"
)

// rows: HAR-33, ALDO-56
func TestDecide(t *testing.T) {
	write := &event.ToolCall{Tool: "fs.write"}
	read := &event.ToolCall{Tool: "fs.read", ReadOnly: true}
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
		{"a gate wins over an opening", policy.Rules{Gates: []string{"fs.write"}, Open: []string{"fs.write"}}, write, event.DecisionAsk, "tools.approvals.fs.write: always"},
	} {
		if got := tt.rules.Decide(tt.call); got.Decision != tt.want || got.Rule != tt.rule {
			t.Errorf("%s: %s by %q, want %s by %q", tt.name, got.Decision, got.Rule, tt.want, tt.rule)
		}
	}
}
