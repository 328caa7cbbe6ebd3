package engine

import (
	"sync"

	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/llm"
)

// deltaRedactor takes secrets out of what a model says before it is published. It
// is fed whether somebody listens or not, so that who comes in the middle of a
// secret does not get the rest of it. A nil deltaRedactor hides nothing.
type deltaRedactor struct {
	redactors [2]*secret.Redactor

	mu      sync.Mutex
	strands []strand
}

// strand is text that belongs together. Providers send the texts of an answer
// one after another, and so its thoughts, but may send calls side by side: each
// call is a strand.
type strand struct {
	kind  llm.DeltaKind
	index int
	text  *secret.Stream
}

// newDeltaRedactor returns a deltaRedactor for one attempt at a model call.
func (env *environment) newDeltaRedactor() *deltaRedactor {
	v := &deltaRedactor{redactors: [2]*secret.Redactor{env.Secrets, env.secrets}}
	if v.redactors[0] == nil && v.redactors[1] == nil {
		return nil
	}
	return v
}

// say passes on what of a delta can be published now.
func (v *deltaRedactor) say(delta llm.Delta, publish func(llm.Delta)) {
	if v == nil {
		publish(delta)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.strand(delta)
	if s.index != delta.Index {
		s.end(publish)
		s.index = delta.Index
	}
	for _, r := range v.redactors {
		delta.Tool = r.RedactString(delta.Tool)
	}
	if delta.Text = s.text.Write(delta.Text); delta.Text != "" || delta.Tool != "" {
		publish(delta)
	}
}

// end passes on what was held back, because the answer is whole.
func (v *deltaRedactor) end(publish func(llm.Delta)) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.strands {
		v.strands[i].end(publish)
	}
}

// reset forgets what was held back.
func (v *deltaRedactor) reset() {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.strands = nil
}

func (v *deltaRedactor) strand(delta llm.Delta) *strand {
	for i := range v.strands {
		s := &v.strands[i]
		if s.kind == delta.Kind && (s.index == delta.Index || s.kind != llm.DeltaToolCall) {
			return s
		}
	}
	v.strands = append(v.strands, strand{kind: delta.Kind, index: delta.Index, text: secret.NewStream(v.redactors[:]...)})
	return &v.strands[len(v.strands)-1]
}

func (s *strand) end(publish func(llm.Delta)) {
	if rest := s.text.End(); rest != "" {
		publish(llm.Delta{Kind: s.kind, Index: s.index, Text: rest})
	}
}
