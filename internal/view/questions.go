package view

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Questions holds the open questions of runs, in the order in which they were asked.
type Questions []OpenQuestion

// OpenQuestion is a question of a run that needs an answer.
type OpenQuestion struct {
	Run string
	event.Question
}

// Add applies the next event of a run, and returns the questions that it closes.
func (q *Questions) Add(run string, data event.Data) (closed []string) {
	closes := func(event.Question) bool { return false }
	of := func(id string) func(event.Question) bool {
		return func(q event.Question) bool { return q.ID == id }
	}
	switch d := data.(type) {
	case event.Asking:
		closes = of(d.Question().ID)
	case event.Resolving:
		closes = of(d.Resolution().ID)
	case event.Voiding:
		closes = of(d.Voids())
	case event.InputReceived:
		closes = func(q event.Question) bool { return q.Message }
	}
	*q = slices.DeleteFunc(*q, func(o OpenQuestion) bool {
		gone := o.Run == run && closes(o.Question)
		if gone {
			closed = append(closed, o.ID)
		}
		return gone
	})
	if d, is := data.(event.Asking); is {
		*q = append(*q, OpenQuestion{run, d.Question()})
	}
	return closed
}

// ask handles a question, which makes its call and its cycle wait.
func (v *View) ask(e *event.Event, q event.Question) *Entry {
	call := v.calls[q.ID]
	above := call
	if call == nil {
		above = v.at(q.Step)
	}
	n := v.begin(e, Question, above, firstLine(q.Subject, 100))
	n.State, n.Ref, n.Line = Waiting, q.ID, firstLine(AskedBy(q), lineWidth)
	v.asked[q.ID] = n
	if above != nil && above.State == Running {
		above.State = Waiting
	}
	if call != nil && v.cycle != nil && v.cycle.open() {
		v.waiting[q.ID], v.cycle.State = true, Waiting
		v.touch(v.cycle, e)
	}
	return n
}

// resolve handles the answer to a question.
func (v *View) resolve(e *event.Event, r event.Resolution) *Entry {
	n := v.asked[r.ID]
	if n == nil {
		return nil
	}
	n.Line = strings.TrimSuffix(string(r.Kind)+" by "+firstLine(r.Approver, 60), " by ")
	v.closeQuestion(e, r.ID, map[event.ApprovalKind]State{
		event.ApprovalRejected: Rejected, event.ApprovalExpired: Rejected, event.ApprovalCancelled: Cancelled,
	}[r.Kind])
	return n
}

// closeQuestion ends the entry of a question that no longer needs an answer, so that
// its parents continue. A rejection is not counted as a failure. An empty state means
// done.
func (v *View) closeQuestion(e *event.Event, id string, state State) {
	n := v.asked[id]
	if n == nil {
		return
	}
	if n.open() {
		n.State, n.Seconds = state, e.Time.Sub(n.Start).Seconds()
		if state == "" {
			n.State = Done
		}
		v.touch(n, e)
	}
	if above := v.byID[n.Parent]; above != nil && above.State == Waiting {
		above.State = Running
		v.touch(above, e)
	}
	if delete(v.waiting, id); len(v.waiting) == 0 && v.cycle != nil && v.cycle.State == Waiting {
		v.cycle.State = Running
		v.touch(v.cycle, e)
	}
}

// answers closes the questions that an event answers, or after which they need no answer.
func (v *View) answers(e *event.Event) {
	closed := v.questions.Add("", e.Data)
	switch e.Data.(type) {
	case event.InputReceived:
		for _, id := range closed {
			v.closeQuestion(e, id, Done)
		}
	case event.Voiding:
		for _, id := range closed {
			v.closeQuestion(e, id, Cancelled)
		}
	}
}
