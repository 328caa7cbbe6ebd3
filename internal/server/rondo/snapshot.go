package rondo

import (
	"slices"

	"github.com/pawlrun/pawl/event"
)

// Snapshot is the state of a loop for clients that join in the middle.
type Snapshot struct {
	// Run is the loop.
	Run                       string
	status, iteration, review []Message
}

// Messages returns the messages that tell a new client the state.
func (s *Snapshot) Messages() []Message { return slices.Concat(s.status, s.iteration, s.review) }

// Apply applies an event to the snapshot, with the messages that it became.
func (s *Snapshot) Apply(e *event.Event, messages []Message) {
	switch e.Data.(type) {
	case event.RunStarted, event.RunResumed, event.RunParked:
		s.status = messages
	case event.Iteration:
		s.iteration = messages
	case event.ReviewRequested:
		s.review = messages
	case event.ReviewResolved:
		s.review = nil
	}
}
