package policy

import (
	"fmt"

	"github.com/pawlrun/pawl/event"
)

// RuleOfTwo decides about outgoing calls once a run has read both untrusted text and
// private data. It is the value of tools.rule_of_two.
type RuleOfTwo string

// The values of RuleOfTwo.
const (
	// RuleOfTwoAsk: such a call needs an approval, whatever else permits it.
	RuleOfTwoAsk RuleOfTwo = "ask"
	// RuleOfTwoOff: the rule is off; the owner accepts the risk.
	RuleOfTwoOff RuleOfTwo = "off"
)

// RuleOfTwoName is the rule name in verdicts of the rule of two.
const RuleOfTwoName = "rule of two"

// met applies the rule of two: untrusted instructions, private data and a way out must
// not come together unless a person has approved the call. For a call that can read and
// send at once, untrusted instructions are enough. Only permissions that name the rule
// disable it.
func (r Rules) met(c *event.ToolCall) []Verdict {
	if !r.Met(c) {
		return nil
	}
	private := "the call itself can read private data"
	if p := r.Taint.Private; p != nil {
		private = "private data read " + where(p)
	}
	return []Verdict{{
		Decision: event.DecisionAsk, Rule: RuleOfTwoName,
		Reason: fmt.Sprintf("untrusted text read %s, %s, and %s can send it elsewhere", where(r.Taint.Untrusted), private, c.Tool),
	}}
}

// Met reports whether a call would combine untrusted text, private data and a way out,
// without the owner having allowed that by name.
func (r Rules) Met(c *event.ToolCall) bool {
	return c.Labels.Outgoing && r.Taint.Untrusted != nil && (r.Taint.Private != nil || c.Labels.Private) &&
		r.RuleOfTwo != RuleOfTwoOff && !matchesAny(r.MaySend, c.Tool)
}

// Offered divides the provider's own tools into those that the next request may name
// and those that it may not. They send data within the model's answer, where no person
// can be asked. So once the run has read untrusted text and private data, only tools
// that the owner allowed by name are offered.
func (r Rules) Offered(providerTools []string) (offered []string, withheld *event.Withheld) {
	if r.Taint.Untrusted == nil || r.Taint.Private == nil || r.RuleOfTwo == RuleOfTwoOff {
		return providerTools, nil
	}
	for _, name := range providerTools {
		if matchesAny(r.MaySend, name) {
			offered = append(offered, name)
			continue
		}
		if withheld == nil {
			withheld = &event.Withheld{Rule: RuleOfTwoName, Reason: fmt.Sprintf(
				"untrusted text read %s, private data read %s, and the tools that the provider runs can send it elsewhere",
				where(r.Taint.Untrusted), where(r.Taint.Private))}
		}
		withheld.Tools = append(withheld.Tools, name)
	}
	return offered, withheld
}

func where(s *event.TaintSource) string {
	source := s.Tool
	if s.CallID != "" {
		source += ", call " + s.CallID
	}
	return fmt.Sprintf("in cycle %d (%s)", s.Cycle, source)
}
