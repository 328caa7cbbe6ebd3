package simulate_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
)

// gates gives a run its way of asking, drawn from luck of its own: a seed keeps
// its other events.
func (w *world) gates() {
	r := rand.New(rand.NewPCG(uint64(w.seed), 13))
	if w.cfg.Approve == agent.ApproveAsk && r.IntN(2) == 0 {
		w.cfg.Approve = pick(r, agent.ApproveWait, agent.ApprovePark, agent.ApproveCallback, agent.ApproveBypass)
	}
	if r.IntN(2) == 0 {
		w.cfg.Approvals = agent.Approvals{Seconds: float64(30 + r.IntN(4000)), OnTimeout: pick(r, "", agent.TimeoutReject, agent.TimeoutStop)}
	}
	w.cfg = w.cfg.WithDefaults()
}

// person answers an approval in their own time, or leaves the terminal.
func (w *world) person(ctx context.Context, _ event.Question) (event.Resolution, error) {
	if err := sleep(ctx, time.Duration(w.draw(600_000))*time.Millisecond); err != nil {
		return event.Resolution{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.r.IntN(10) {
	case 0, 1:
		return event.Resolution{}, errors.New("nobody is there")
	case 2:
		return event.Resolution{Kind: event.ApprovalEdited, Approver: "ann", Args: otherArgs(w.r)}, nil
	}
	kind := pick(w.r, event.ApprovalApproved, event.ApprovalApproved, event.ApprovalRejected)
	return event.Resolution{Kind: kind, Approver: "ann", Reason: "at the terminal"}, nil
}

// otherArgs are arguments that a person gives a call; some do not fit.
func otherArgs(r *rand.Rand) json.RawMessage {
	return json.RawMessage(pick(r, `{"path":"a"}`, `{"path":"z"}`, `{"path":"c/d"}`, `{"path":7}`))
}

// decideAll answers what a run asks, most of the time; some answers come late,
// some bring other arguments, and some are given twice.
func (s *simulation) decideAll(in *incarnation, run string, pending []*event.Question) {
	w := s.world
	if len(pending) > 0 && w.bad(2) {
		time.Sleep(time.Duration(w.draw(7_200_000)) * time.Millisecond)
	}
	for _, p := range pending {
		if w.bad(4) {
			continue
		}
		c := journal.Command{Run: run, Kind: journal.Approve, CallID: p.ID, By: "operator", Text: "as you ask"}
		switch w.draw(6) {
		case 0, 1:
			c.Kind = journal.Reject
		case 2:
			w.mu.Lock()
			c.Args = otherArgs(w.r)
			w.mu.Unlock()
		}
		s.send(in, c)
		if w.draw(4) == 0 {
			c.Kind, c.Args, c.By = journal.Approve, nil, "somebody else"
			s.send(in, c)
		}
	}
}

// approvals follows what may run along a journal: what the newest arguments of
// each call are, what was decided about them, and which approval is not used.
type approvals struct {
	digest  map[string]string
	judged  map[string]event.Decision
	pending map[string]event.ToolPendingApproval
	granted map[string]event.ToolApprovalResolved
}

func newApprovals() *approvals {
	return &approvals{
		digest: map[string]string{}, judged: map[string]event.Decision{},
		pending: map[string]event.ToolPendingApproval{}, granted: map[string]event.ToolApprovalResolved{},
	}
}

// event takes the next event, and counts and complains through w. The caller
// holds the world's lock, or is alone.
func (a *approvals) event(w *world, data event.Data) {
	switch d := data.(type) {
	case event.ToolCall:
		a.digest[d.CallID] = d.Digest
		a.forget(d.CallID)
	case event.PolicyDecision:
		if d.Digest != a.digest[d.CallID] {
			w.violatef("%s was judged by other arguments than it has", d.CallID)
		}
		a.forget(d.CallID)
		a.judged[d.CallID] = d.Decision
	case event.ToolPendingApproval:
		if a.judged[d.CallID] != event.DecisionAsk || d.Digest != a.digest[d.CallID] {
			w.violatef("%s is asked about without reason", d.CallID)
		}
		a.pending[d.CallID] = d
		delete(a.granted, d.CallID)
	case event.ToolApprovalResolved:
		a.resolved(w, d)
	case event.ToolStarted:
		a.started(w, d)
	}
}

func (a *approvals) forget(callID string) {
	delete(a.judged, callID)
	delete(a.pending, callID)
	delete(a.granted, callID)
}

func (a *approvals) resolved(w *world, d event.ToolApprovalResolved) {
	p, open := a.pending[d.CallID]
	if !open || p.Digest != d.Digest || p.Policy != d.Policy {
		return
	}
	if late := p.ExpiresAt != nil && !d.At.Before(*p.ExpiresAt); late && d.Kind != event.ApprovalExpired {
		return
	}
	w.happen("approval " + string(d.Kind))
	delete(a.pending, d.CallID)
	if d.Kind == event.ApprovalApproved {
		a.granted[d.CallID] = d
	}
}

func (a *approvals) started(w *world, d event.ToolStarted) {
	switch a.judged[d.CallID] {
	case event.DecisionAllow:
	case event.DecisionAsk:
		if g, ok := a.granted[d.CallID]; !ok || g.Digest != a.digest[d.CallID] {
			w.violatef("attempt %d at %s has no approval of its own for these arguments", d.Attempt, d.CallID)
		}
		delete(a.granted, d.CallID)
	default:
		w.violatef("%s started without a decision", d.CallID)
	}
}
