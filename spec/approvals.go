package spec

import (
	"strings"

	"github.com/pawlrun/pawl/event"
)

// ApprovalSettings say who is asked about a gated call, how long the answer may
// take, and what happens when none comes (REQUIREMENTS C-8).
type ApprovalSettings struct {
	// Mode is wait, park, callback or bypass; "" asks whoever can be asked and
	// parks where nobody can.
	Mode    string   `yaml:"mode,omitempty"`
	Timeout *Seconds `yaml:"timeout,omitempty"`
	// OnTimeout is reject or stop.
	OnTimeout string `yaml:"on_timeout,omitempty"`
}

// maxApprovalSeconds is a year: longer than any question stays one.
const maxApprovalSeconds = 366 * 86_400

func (s *ApprovalSettings) validate(r *report, path string) {
	oneOf(r, path+".mode", s.Mode, "wait", "park", "callback", "bypass")
	oneOf(r, path+".on_timeout", s.OnTimeout, "reject", "stop")
	if t := s.Timeout; t != nil && !(*t >= 1 && *t <= maxApprovalSeconds) {
		r.at(path+".timeout", "1 second to 366 days", "is %g seconds", float64(*t))
	}
	if s.Mode == "bypass" {
		r.warn(path+".mode", "every gated call is approved without asking, and that is recorded with each of them")
	}
	if s.OnTimeout != "" && s.Timeout == nil && s.Mode != "wait" {
		r.at(path+".on_timeout", "a timeout beside it", "never comes to pass, because a decision may take for ever")
	}
}

// Effects say for each tool what repeating a call of it would do, in the place
// of what the tool declares.
type Effects map[string]string

func (*Effects) expected() string {
	return "a mapping from a tool to " + strings.Join(choices["tools.effects.*"], ", ")
}

// JSONSchema is a choice for each tool.
func (*Effects) JSONSchema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"enum": choices["tools.effects.*"]}}
}

// Risks say for each tool what harm a call of it can do, in the place of what
// is known of the call.
type Risks map[string]string

func (*Risks) expected() string {
	return "a mapping from a tool to " + strings.Join(choices["tools.risks.*"], ", ")
}

// JSONSchema is a choice for each tool.
func (*Risks) JSONSchema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"enum": choices["tools.risks.*"]}}
}

// validateDeclarations checks what the file says of its tools in their place.
func (t *Tools) validateDeclarations(r *report, o Options) {
	for _, name := range sortedKeys(t.Effects) {
		path := join("tools.effects", name)
		t.usable(r, path, name, o)
		oneOf(r, path, t.Effects[name], choices["tools.effects.*"]...)
		if e := event.Effect(t.Effects[name]); e == event.EffectPure || e == event.EffectIdempotent {
			r.warn(path, "a call of %s that a crash or a failure cuts off is run again", name)
		}
	}
	for _, name := range sortedKeys(t.Risks) {
		path := join("tools.risks", name)
		t.usable(r, path, name, o)
		oneOf(r, path, t.Risks[name], choices["tools.risks.*"]...)
	}
}
