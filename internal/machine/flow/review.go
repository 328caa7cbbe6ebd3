package flow

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// Rejected is the failure of a loop after a person rejected an iteration.
const Rejected = "Manual approval was rejected by user"

// review asks a person about the pass that just ended, for the i-th stop condition.
func (m *Machine) review(l *loop, s *scope, i int) {
	checks := l.plan.Checks()
	h := checks[i].Human
	id := fmt.Sprintf("review-%d", s.pass.index+1)
	if !m.cfg.Plan.Refine {
		id = s.key + "/" + id
	}
	if humans(checks[:i]) {
		id = fmt.Sprintf("%s/%d", id, i)
	}
	l.asked, l.finished = i, s
	m.ask(l, event.ReviewRequested{LoopID: id, Number: s.pass.index + 1, Output: l.last().content, Reason: h.Prompt}, h.Timeout)
}

func humans(stops []plan.Stop) bool {
	for _, s := range stops {
		if s.Human != nil {
			return true
		}
	}
	return false
}

// askForMore asks a person whether a loop at its cap may continue.
func (m *Machine) askForMore(l *loop) {
	id := fmt.Sprintf("limit-%d", l.next)
	if !m.cfg.Plan.Refine {
		id = l.of.name() + "/" + id
	}
	l.finished = nil
	m.ask(l, event.ReviewRequested{LoopID: id, Number: l.next, Output: l.last().content, Limit: l.most(), Reason: fmt.Sprintf(
		"the loop has had its %d iterations, and nothing that ends it held; approved, it may have %d more", l.most(), l.plan.Max)}, 0)
}

func (m *Machine) ask(l *loop, d event.ReviewRequested, lasts time.Duration) {
	d.Step, d.Digest = l.of.id, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(d.LoopID+"\n"+d.Output)))
	if lasts > 0 {
		until := m.Now.Add(lasts)
		d.ExpiresAt, d.OnExpiry = &until, event.ExpiryStops
	}
	l.review = d.LoopID
	m.reviews[d.LoopID] = l
	m.requests.add("review "+d.LoopID, func() []machine.Action { return m.Ask(d) }, nil)
}

// reviewed folds a person's answer.
func (m *Machine) reviewed(d *event.ReviewResolved) error {
	l, by := m.reviews[d.LoopID], m.Answer(d.LoopID)
	if l == nil || by == nil || by.Kind == event.ApprovalExpired || by.Kind == event.ApprovalCancelled {
		m.requests.drop("review " + d.LoopID)
		return nil // the run ends, or the loop no longer waits for the answer
	}
	delete(m.reviews, d.LoopID)
	m.requests.drop("review " + d.LoopID)
	s, rejected := l.finished, by.Kind == event.ApprovalRejected
	l.review = ""
	if by.Reason != "" {
		end := l.last()
		end.checks = append(end.checks, Section{Title: "Review by " + by.Approver, From: l.of.id + ".review", Content: by.Reason})
	}
	switch {
	case s == nil && rejected:
		m.atLimit(l)
	case s == nil:
		l.more += l.plan.Max
		m.nextPass(l)
	default:
		m.judgedByPerson(l, s, by.Kind)
	}
	return nil
}

// judgedByPerson continues the loop according to a person's decision.
func (m *Machine) judgedByPerson(l *loop, s *scope, kind event.ApprovalKind) {
	switch h := l.plan.Checks()[l.asked].Human; {
	case kind == event.ApprovalRejected && !h.Feedback:
		m.endLoop(l, &event.Failure{Class: string(event.ReasonRejected), Message: Rejected})
	default:
		m.checked(l, s, l.asked, kind == event.ApprovalApproved && !h.GoesOn, "")
	}
}

// dropReview withdraws the question of a loop that ends.
func (m *Machine) dropReview(l *loop) {
	id := l.review
	if id == "" {
		return
	}
	l.review = ""
	delete(m.reviews, id)
	m.requests.drop("review " + id)
	if asked := m.Withdraw(id, notWanted); len(asked) > 0 {
		m.requests.add("review "+id, func() []machine.Action { return asked }, nil)
	}
}
