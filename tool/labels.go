package tool

import (
	"encoding/json"

	"github.com/pawlrun/pawl/event"
)

// labels returns the labels of a call for the rule of two. An undeclared tool is
// assumed to return untrusted text, and to send its input unless it changes nothing.
func (t *compiled) labels(args json.RawMessage, facts *event.Facts) event.Labels {
	switch {
	case t.LabelsFor != nil:
		return t.LabelsFor(args, facts)
	case t.Labels != nil:
		return *t.Labels
	}
	return event.Labels{Untrusted: true, Outgoing: !t.ReadOnly}
}

// Fences reports whether some tool may return untrusted text, so that a run needs a
// fence for it.
func (s *Set) Fences() bool {
	if s == nil {
		return false
	}
	for _, t := range s.sorted {
		if t.LabelsFor != nil || t.Labels == nil || t.Labels.Untrusted {
			return true
		}
	}
	return false
}
