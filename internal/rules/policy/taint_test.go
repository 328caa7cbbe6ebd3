package policy_test

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

var (
	outside = &event.TaintSource{Run: "r", Cycle: 2, CallID: "r-2-1", Tool: "web.fetch"}
	inside  = &event.TaintSource{Run: "r", Cycle: 1, CallID: "r-1-1", Tool: "fs.read"}
)

func TestRuleOfTwo(t *testing.T) {
	mail := &event.ToolCall{Tool: "mail", Labels: event.Labels{Outgoing: true}}
	shell := &event.ToolCall{Tool: "shell.exec", Labels: event.Labels{Private: true, Outgoing: true}}
	read := &event.ToolCall{Tool: "fs.read", ReadOnly: true, Labels: event.Labels{Private: true}}
	met := event.Taint{Untrusted: outside, Private: inside}
	rules := func(change func(*policy.Rules)) policy.Rules {
		r := policy.Rules{Declared: true}
		if change != nil {
			change(&r)
		}
		return r
	}
	for _, tt := range []struct {
		name  string
		rules policy.Rules
		taint event.Taint
		call  *event.ToolCall
		want  event.Decision
		rule  string
	}{
		{"nothing came in", rules(nil), event.Taint{}, mail, event.DecisionAllow, "tools.allow"},
		{"untrusted text and a way out", rules(nil), event.Taint{Untrusted: outside}, mail, event.DecisionAllow, "tools.allow"},
		{"private data and a way out", rules(nil), event.Taint{Private: inside}, mail, event.DecisionAllow, "tools.allow"},
		{"untrusted text and private data, no way out", rules(nil), met, read, event.DecisionAllow, "tools.allow"},
		{"all three", rules(nil), met, mail, event.DecisionAsk, "rule of two"},
		{"a call that reads and sends needs only the text", rules(nil), event.Taint{Untrusted: outside}, shell, event.DecisionAsk, "rule of two"},
		{"a call that reads and sends, and no text", rules(nil), event.Taint{Private: inside}, shell, event.DecisionAllow, "tools.allow"},
		{"never asking does not silence it", rules(func(r *policy.Rules) { r.Open = []string{"mail"} }), met, mail, event.DecisionAsk, "rule of two"},
		{"nor does an allowing rule", rules(func(r *policy.Rules) { r.Rules = []policy.Rule{{Decision: event.DecisionAllow, Tool: "*"}} }), met, mail, event.DecisionAsk, "rule of two"},
		{"nor the bypass mode", rules(func(r *policy.Rules) { r.Mode = policy.ModeBypass }), met, mail, event.DecisionAsk, "rule of two"},
		{"it is named before another question", rules(func(r *policy.Rules) { r.Gates = []string{"mail"} }), met, mail, event.DecisionAsk, "rule of two"},
		{"a denial stays one", rules(func(r *policy.Rules) { r.Rules = []policy.Rule{{Decision: event.DecisionDeny, Tool: "mail"}} }), met, mail, event.DecisionDeny, "tools.rules: deny mail"},
		{"off", rules(func(r *policy.Rules) { r.RuleOfTwo = policy.RuleOfTwoOff }), met, mail, event.DecisionAllow, "tools.allow"},
		{"off permits nothing else", policy.Rules{RuleOfTwo: policy.RuleOfTwoOff}, met, mail, event.DecisionAsk, "default: side effects ask"},
		{"a tool that may send", rules(func(r *policy.Rules) { r.MaySend = []string{"mail"} }), met, mail, event.DecisionAllow, "tools.allow"},
		{"another tool may send", rules(func(r *policy.Rules) { r.MaySend = []string{"mail"} }), met, shell, event.DecisionAsk, "rule of two"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.rules.Taint = tt.taint
			got := tt.rules.Decide(tt.call)
			if got.Decision != tt.want || got.Rule != tt.rule {
				t.Errorf("%s by %q, want %s by %q", got.Decision, got.Rule, tt.want, tt.rule)
			}
			if asks := tt.rule == policy.RuleOfTwoName; tt.rules.Met(tt.call) != asks && tt.want != event.DecisionDeny {
				t.Errorf("met is %v", tt.rules.Met(tt.call))
			}
		})
	}
	r := rules(nil)
	r.Taint = met
	want := "untrusted text read in cycle 2 (web.fetch, call r-2-1), private data read in cycle 1 (fs.read, call r-1-1), and mail can send it elsewhere"
	if got := r.Decide(mail); got.Reason != want {
		t.Errorf("the reason is %q", got.Reason)
	}
	r.Taint.Private = nil
	if got := r.Decide(shell); !strings.Contains(got.Reason, "the call itself can read private data") {
		t.Errorf("the reason is %q", got.Reason)
	}
}

func TestAProvidersOwnToolsAreWithheldOnceAllThreeCouldMeet(t *testing.T) {
	met := event.Taint{Untrusted: outside, Private: inside}
	for _, tt := range []struct {
		name              string
		rules             policy.Rules
		offered, withheld []string
	}{
		{"untrusted text alone", policy.Rules{Taint: event.Taint{Untrusted: outside}}, []string{"search", "code"}, nil},
		{"private data alone", policy.Rules{Taint: event.Taint{Private: inside}}, []string{"search", "code"}, nil},
		{"both", policy.Rules{Taint: met}, nil, []string{"search", "code"}},
		{"both, and one may send", policy.Rules{Taint: met, MaySend: []string{"code"}}, []string{"code"}, []string{"search"}},
		{"both, and the rule is off", policy.Rules{Taint: met, RuleOfTwo: policy.RuleOfTwoOff}, []string{"search", "code"}, nil},
	} {
		offered, w := tt.rules.Offered([]string{"search", "code"})
		var withheld []string
		if w != nil {
			withheld = w.Tools
			if w.Rule != policy.RuleOfTwoName || !strings.Contains(w.Reason, "call r-2-1") || !strings.Contains(w.Reason, "call r-1-1") {
				t.Errorf("%s: withheld by %s: %s", tt.name, w.Rule, w.Reason)
			}
		}
		if !slices.Equal(offered, tt.offered) || !slices.Equal(withheld, tt.withheld) {
			t.Errorf("%s: %v are offered and %v withheld", tt.name, offered, withheld)
		}
	}
}

func fetches(host string) *event.ToolCall {
	return &event.ToolCall{
		Tool: "web.fetch", ReadOnly: true, Labels: event.Labels{Untrusted: true, Outgoing: true},
		Facts: &event.Facts{Hosts: []string{host}, Risk: event.RiskSend},
	}
}

func TestHostsThatAFetchMayReach(t *testing.T) {
	list := egress.Rules{Network: egress.NetworkAllowlist, Hosts: []egress.Pattern{"*.example.com:443"}}
	here := egress.Rules{Private: []egress.Pattern{"127.0.0.1:8080"}}
	for _, tt := range []struct {
		name  string
		rules policy.Rules
		host  string
		want  event.Decision
		rule  string
	}{
		{"named by the owner", policy.Rules{Declared: true}, "example.org", event.DecisionAllow, "tools.allow"},
		{"there by default", policy.Rules{}, "example.org", event.DecisionAsk, "default: side effects ask"},
		{"no network", policy.Rules{Declared: true, Network: egress.Rules{Network: egress.NetworkNone}}, "example.org", event.DecisionDeny, "tools.permissions.network: none"},
		{"on the list", policy.Rules{Declared: true, Network: list}, "www.example.com", event.DecisionAllow, "tools.allow"},
		{"not on the list", policy.Rules{Declared: true, Network: list}, "example.org", event.DecisionDeny, "tools.permissions.hosts"},
		{"on the list, by the port", policy.Rules{Declared: true, Network: list}, "www.example.com:443", event.DecisionAllow, "tools.allow"},
		{"on the list, by another port", policy.Rules{Declared: true, Network: list}, "www.example.com:80", event.DecisionDeny, "tools.permissions.hosts"},
		{"a private host, by the port", policy.Rules{Declared: true, Network: here}, "127.0.0.1:8080", event.DecisionAllow, "tools.allow"},
		{"a private host, by another port", policy.Rules{Declared: true, Network: here}, "127.0.0.1:9090", event.DecisionDeny, "tools.permissions.private_hosts"},
		{"an address of a private network", policy.Rules{Declared: true}, "169.254.169.254", event.DecisionDeny, "tools.permissions.private_hosts"},
		{"planning", policy.Rules{Declared: true, Mode: policy.ModePlan}, "example.org", event.DecisionDeny, "mode: plan"},
		{"a bound on files is not about it", policy.Rules{Declared: true, Filesystem: policy.FilesystemNone}, "example.org", event.DecisionAllow, "tools.allow"},
		{"read-only files neither", policy.Rules{Declared: true, Filesystem: policy.FilesystemReadOnly}, "example.org", event.DecisionAllow, "tools.allow"},
		{"a rule about the host", policy.Rules{Declared: true, Rules: []policy.Rule{{Decision: event.DecisionDeny, Tool: "*", Host: "*.org"}}}, "example.org", event.DecisionDeny, "tools.rules: deny *, host *.org"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call := fetches(tt.host)
			if host, port, err := net.SplitHostPort(tt.host); err == nil {
				n, _ := strconv.ParseUint(port, 10, 16)
				call.Facts.Hosts, call.Facts.Ports = []string{host}, []uint16{uint16(n)}
			}
			if got := tt.rules.Decide(call); got.Decision != tt.want || got.Rule != tt.rule {
				t.Errorf("%s by %q, want %s by %q", got.Decision, got.Rule, tt.want, tt.rule)
			}
		})
	}
	curl := &event.ToolCall{Tool: "shell.exec", Facts: &event.Facts{Hosts: []string{"example.org"}, Risk: event.RiskSend, Commands: []event.Command{{Words: []string{"curl", "example.org"}}}}}
	none := policy.Rules{Declared: true, Network: egress.Rules{Network: egress.NetworkNone}}
	if got := none.Decide(curl); got.Decision != event.DecisionAllow {
		t.Errorf("what a sandbox holds is judged here: %s by %q", got.Decision, got.Rule)
	}
}
