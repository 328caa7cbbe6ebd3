// Package question holds the questions of a run to people, in the same way for
// every machine. It is pure.
package question

import (
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
)

// Exchange is a question and its decision. The zero value and nil contain no question.
type Exchange struct {
	event.Question
	// Resolution is the decision, nil before that.
	Resolution *event.Resolution
	void       bool
}

// Open reports whether the question waits for a decision.
func (a *Exchange) Open() bool { return a != nil && a.Resolution == nil && !a.void }

// Take applies a decision and reports whether it is valid. A decision about another
// question, under another policy, after the expiry or after another decision changes
// nothing.
func (a *Exchange) Take(r event.Resolution) bool {
	if !a.Open() || !a.Counts(r) {
		return false
	}
	a.Resolution = &r
	return true
}

// Decided returns the decision, nil before that.
func (a *Exchange) Decided() *event.Resolution {
	if a == nil {
		return nil
	}
	return a.Resolution
}

// Void marks a question that no longer needs a decision.
func (a *Exchange) Void() {
	if a != nil {
		a.void = true
	}
}

// List contains a run's questions in the order in which they were asked. The zero value
// is empty.
type List struct {
	asked []*Exchange
	byID  map[string]*Exchange
}

// Ask adds a question, and voids an earlier one with the same id.
func (l *List) Ask(q event.Question) *Exchange {
	if l.byID == nil {
		l.byID = map[string]*Exchange{}
	}
	l.byID[q.ID].Void()
	a := &Exchange{Question: q}
	l.byID[q.ID], l.asked = a, append(l.asked, a)
	return a
}

// Of returns the last question with an id, or nil.
func (l *List) Of(id string) *Exchange { return l.byID[id] }

// Apply folds an event that asks, decides or voids a question.
func (l *List) Apply(d event.Data) {
	switch d := d.(type) {
	case event.Asking:
		l.Ask(d.Question())
	case event.Resolving:
		r := d.Resolution()
		l.Of(r.ID).Take(r)
	case event.Voiding:
		l.Of(d.Voids()).Void()
	case event.InputReceived:
		for _, a := range l.asked {
			if a.Message {
				a.Void()
			}
		}
	}
}

// Open returns the questions that wait for a decision. They must not be changed.
func (l *List) Open() (open []*event.Question) {
	l.asked = slices.DeleteFunc(l.asked, func(a *Exchange) bool { return !a.Open() })
	for _, a := range l.asked {
		open = append(open, &a.Question)
	}
	return open
}

// Asks reports whether a question waits for a decision.
func (l *List) Asks() bool { return slices.ContainsFunc(l.asked, (*Exchange).Open) }

// NextExpiry returns the earliest expiry of the open questions, or nil.
func NextExpiry(open []*event.Question, now time.Time) (next *time.Time) {
	for _, q := range open {
		if q.ExpiresAt != nil && !q.Late(now) && (next == nil || q.ExpiresAt.Before(*next)) {
			next = q.ExpiresAt
		}
	}
	return next
}
