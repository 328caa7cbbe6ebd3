package spec

import (
	"maps"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
)

// ApprovalSettings set who decides about a gated call, how long a decision may take,
// and what happens without one.
type ApprovalSettings struct {
	// Mode sets who decides; "" asks a person if one is present, and otherwise parks.
	Mode    string   `yaml:"mode,omitempty" oneof:"wait park callback bypass"`
	Timeout *Seconds `yaml:"timeout,omitempty"`
	// OnTimeout sets what happens if no answer comes in time.
	OnTimeout string `yaml:"on_timeout,omitempty" oneof:"reject stop"`
}

// maxApprovalSeconds is a year, longer than any question stays relevant.
const maxApprovalSeconds = 366 * 86_400

func (s *ApprovalSettings) validate(r *decode.Report, path string) {
	if t := s.Timeout; t != nil && !r.Reported(path+".timeout") && !(*t >= 1 && *t <= maxApprovalSeconds) {
		r.At(path+".timeout", "1 second to 366 days", "is %g seconds", float64(*t))
	}
	if s.Mode == "bypass" {
		r.Warn(path+".mode", "every gated call is approved without asking, and that is recorded with each of them")
	}
	if s.OnTimeout != "" && s.Timeout == nil && s.Mode != "wait" {
		r.At(path+".on_timeout", "a timeout beside it", "never comes to pass, because a decision may take for ever")
	}
}

// validateDeclarations checks the file's declarations that replace those of the tools.
func (t *Tools) validateDeclarations(r *decode.Report, o Options) {
	for _, name := range slices.Sorted(maps.Keys(t.Effects)) {
		path := decode.Join("tools.effects", name)
		t.usable(r, path, name, o)
		if e := event.Effect(t.Effects[name]); e == event.EffectPure || e == event.EffectIdempotent {
			r.Warn(path, "a call of %s that a crash or a failure cuts off is run again", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Risks)) {
		t.usable(r, decode.Join("tools.risks", name), name, o)
	}
}
