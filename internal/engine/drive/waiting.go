package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// Waiting computes from a run's events what the run waits for, for its row
// ([journal.Waits]). The zero value is for a run without events.
type Waiting struct {
	// asked holds the numbers of the events of questions that may be open.
	asked map[string]int64
	// refusals are the limits of ancestors that refused the run's own calls since it
	// was resumed.
	refusals         []string
	refused          bool
	message, expired bool
	raised           map[string]float64
	children         map[string]bool
	// nothing is the most frequent result.
	nothing *journal.Waits
	// last holds the questions of the last result.
	last []journal.Wait
}

// Note applies the next event.
func (w *Waiting) Note(e *event.Event) {
	switch d := e.Data.(type) {
	case event.Asking:
		if w.asked == nil {
			w.asked = map[string]int64{}
		}
		w.asked[d.Question().ID] = e.Seq
	case event.Resolving:
		w.expired = w.expired || d.Resolution().Kind == event.ApprovalExpired
	case event.InputReceived:
		w.message = true
	case event.BudgetRaised:
		w.raised = maps.Clone(w.raised) // a row may share the old one
		if w.raised == nil {
			w.raised = map[string]float64{}
		}
		w.raised[d.Setting] = d.Value
	case event.BudgetRefused:
		if d.Ask {
			w.refusals = append(w.refusals, d.Setting)
		}
	case event.RunParked:
		w.refused = slices.Contains(w.refusals, d.ParentLimit)
		w.message, w.expired, w.raised = false, false, nil
	case event.RunResumed:
		w.refusals = nil
	case event.CycleStart, event.RunTerminatedBy:
		w.refusals, w.expired, w.raised = nil, false, nil
	case event.RunForked:
		*w = Waiting{asked: w.asked}
	case event.ChildStarted:
		if w.children == nil {
			w.children = map[string]bool{}
		}
		w.children[d.Child] = true
	case event.ChildFinished:
		delete(w.children, d.Child)
	}
}

// Of returns what a run waits for, given the state of its machine after the noted
// events.
func (w *Waiting) Of(s machine.State) *journal.Waits {
	out := journal.Waits{}
	if s.Phase != machine.Ended {
		out.Expired, out.Raised = w.expired, w.raised
	}
	out.Questions = w.questions(s.Pending)
	if len(s.Pending) == 0 {
		clear(w.asked)
	}
	if s.Parked != nil {
		parked := *s.Parked
		out.Parked, out.Refused, out.Message, out.Children = &parked, w.refused, w.message, slices.Sorted(maps.Keys(w.children))
	}
	if !out.Nothing() {
		return &out
	}
	if w.nothing == nil {
		w.nothing = &journal.Waits{}
	}
	return w.nothing
}

// questions returns the open questions. People decide one question at a time, mostly in
// order, so the open ones are usually the end of the last list, which it shares.
func (w *Waiting) questions(pending []*event.Question) []journal.Wait {
	if len(pending) == 0 {
		w.last = nil
		return nil
	}
	of := func(q *event.Question) journal.Wait {
		return journal.Wait{ID: q.ID, Kind: q.Kind, Seq: w.asked[q.ID], Digest: q.Digest, ExpiresAt: q.ExpiresAt, Message: q.Message}
	}
	if from := len(w.last) - len(pending); from >= 0 {
		same := true
		for i := range pending {
			same = same && w.last[from+i] == of(pending[i])
		}
		if same {
			w.last = w.last[from:]
			return w.last
		}
	}
	w.last = make([]journal.Wait, len(pending))
	for i := range pending {
		w.last[i] = of(pending[i])
	}
	return w.last
}

// Waits returns what a run waits for, from its row or, if an older version wrote the
// row, from its events. If the store may, it adds this to the row, so that the next
// reader does not fold the run.
func (p Past) Waits(ctx context.Context, row journal.Run) (*journal.Waits, error) {
	if row.Waits != nil || row.State == journal.Ended {
		return cmp.Or(row.Waits, &journal.Waits{}), nil
	}
	var w Waiting
	f := folded{note: w.Note}
	if err := f.read(ctx, p, row.ID); err != nil {
		return nil, fmt.Errorf("what run %s waits for: %w", row.ID, err)
	}
	waits := w.Of(f.machine.State())
	if store, may := p.Store.(journal.FillsWaits); may {
		_ = store.FillWaits(ctx, row, waits) // a journal that cannot be written is folded again
	}
	return waits, nil
}

// Open is a question that waits for a decision, with the number and the time of the
// event that asks it.
type Open struct {
	event.Question
	Seq   int64
	Since time.Time
}

// Questions returns a run's own questions that wait for a decision.
func (p Past) Questions(ctx context.Context, row journal.Run) ([]Open, error) {
	w, err := p.Waits(ctx, row)
	if err != nil {
		return nil, err
	}
	questions := make([]Open, len(w.Questions))
	for i, q := range w.Questions {
		if questions[i], err = p.question(ctx, row.ID, q); err != nil {
			return nil, err
		}
	}
	return questions, nil
}

// Question returns a run's own open question with an id, nil if there is none.
func (p Past) Question(ctx context.Context, row journal.Run, id string) (*event.Question, error) {
	w, err := p.Waits(ctx, row)
	if err != nil {
		return nil, err
	}
	for _, q := range w.Questions {
		if q.ID == id {
			asked, err := p.question(ctx, row.ID, q)
			return &asked.Question, err
		}
	}
	return nil, nil
}

// question reads the event that asks.
func (p Past) question(ctx context.Context, run string, w journal.Wait) (Open, error) {
	e, err := at(ctx, p.Store, run, w.Seq-1)
	if errors.Is(err, journal.ErrNotFound) {
		err = &journal.CorruptError{Run: run, Seq: w.Seq, What: "the event is missing"}
	}
	if err != nil {
		return Open{}, fmt.Errorf("question %s of run %s: %w", w.ID, run, err)
	}
	asking, is := e.Data.(event.Asking)
	if !is {
		return Open{}, fmt.Errorf("question %s of run %s: %w", w.ID, run, &journal.CorruptError{
			Run: run, Seq: w.Seq, What: fmt.Sprintf("it is %s, and the run's row has a question there", e.Type()),
		})
	}
	q := asking.Question()
	if q.Step == "" {
		q.Step = e.Step
	}
	return Open{q, e.Seq, e.Time}, nil
}
