package journal

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/event"
)

// Waits is what a run waits for from people, and what it has received since it parked.
// Lists and decisions read it instead of folding the run. It must not be changed.
type Waits struct {
	// Questions are the questions without a decision, in the order of the run's
	// machine.
	Questions []Wait `json:"questions,omitempty"`
	// Parked says why the run is parked, nil if it is not.
	Parked *event.RunParked `json:"parked,omitempty"`
	// Refused reports whether a call of the run itself has no room in the limit
	// above that it parked at. A run also parks there for the runs below it.
	Refused bool `json:"refused,omitempty"`
	// Message reports whether a message has arrived since the run parked, Expired
	// whether the time for a decision has passed since, and Raised holds the newest
	// values of the limits that were changed since then, or since the last cycle
	// began.
	Message bool               `json:"message,omitempty"`
	Expired bool               `json:"expired,omitempty"`
	Raised  map[string]float64 `json:"raised,omitempty"`
	// Children are the unfinished children of a parked run.
	Children []string `json:"children,omitempty"`
}

// Wait is a question that waits for a decision.
type Wait struct {
	ID   string             `json:"id"`
	Kind event.QuestionKind `json:"kind"`
	// Seq is the number of the event that asks.
	Seq int64 `json:"seq"`
	// Digest and ExpiresAt are those of the question. Message reports that a message
	// answers it instead of a decision.
	Digest    string     `json:"digest,omitempty"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	Message   bool       `json:"message,omitempty"`
}

// Nothing reports whether the run waits for nothing and has received nothing.
func (w *Waits) Nothing() bool {
	return len(w.Questions) == 0 && w.Parked == nil && !w.Refused && !w.Message && !w.Expired && len(w.Raised) == 0 && len(w.Children) == 0
}

// FillsWaits is implemented by stores that add what a run waits for to a row of an older
// version, so that it is computed once.
type FillsWaits interface {
	// FillWaits sets the waits of a row that has none. It does nothing if the run has
	// other events than the row has, or if its row has waits now.
	FillWaits(ctx context.Context, row Run, w *Waits) error
}
