package agent

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/stop"
)

// progress tracks whether a run makes progress.
type progress struct {
	novelty       novelty
	repetition    stop.Repetition
	failureCounts failureCounts
	// stuck is the decision about repetition in this cycle.
	stuck *event.Stuck
}

// observe passes the calls of a settled cycle to the repetition check. A call that did
// not run for reasons of the run's own does not count.
func (p *progress) observe(calls []*call) {
	var work stop.Work
	for _, c := range calls {
		switch c.result.ErrorType {
		case event.ErrorTruncated, event.ErrorCancelled, event.ErrorBudget, event.ErrorInDoubt:
			continue
		}
		work.Add(c.resolved.Facts, c.result, c.news)
		if !c.resolved.Polling {
			seen := stop.Call{Tool: c.ref.Name, Digest: c.repeats.own, Result: c.result}
			if c.repeats.blocked != nil {
				seen.Blocked = stop.Pattern(c.repeats.blocked.Pattern)
			}
			p.repetition.Called(seen)
		}
	}
	p.repetition.Worked(work)
}

// circling reports whether a call continues the repetition that the model was warned
// about. Earlier calls in the answer count: a new one among them breaks a circle.
func (p *progress) circling(c *call, among *calls) (event.Stuck, bool) {
	if c.repeats.blocked != nil && c.result == nil {
		return *c.repeats.blocked, true
	}
	if !p.repetition.Warned() || c.result != nil || c.attempt > 0 || c.verdict != nil || c.resolved.Polling || c.repeats.shown == 0 {
		return event.Stuck{}, false
	}
	d, ok := p.repetition.Blocked(among.shown[:c.repeats.shown])
	d.CallID = c.ref.CallID
	return d, ok
}

// listAsked lists the calls of the answer for the repetition check.
func (s *calls) listAsked() {
	s.shown = s.shown[:0]
	for _, c := range s.list {
		if !c.resolved.Polling {
			s.shown = append(s.shown, stop.PendingCall{Tool: c.ref.Name, Digest: c.repeats.own, Works: stop.Works(c.resolved.Facts)})
		}
		c.repeats.shown = len(s.shown)
	}
}

// block keeps a call from running: the decision first, then its result.
func (c *call) block(d event.Stuck) machine.Action {
	if c.repeats.blocked == nil {
		return record(d)
	}
	return record(c.failed(event.ErrorBlocked, stop.Message(d)))
}

func (p *progress) applyStuck(r *run, among *calls, d *event.Stuck) error {
	switch d.Action {
	case event.StuckBlock:
		c := among.touch(d.CallID)
		if r.phase != phaseTools || c == nil || c.result != nil {
			return fmt.Errorf("%w: %s is blocked, which is no open call of cycle %d", ErrMisfit, d.CallID, r.cycle)
		}
		c.repeats.blocked = d
		return nil
	case event.StuckNudge:
		p.repetition.Nudged(stop.Pattern(d.Pattern))
	}
	if r.phase != phaseSettled {
		return fmt.Errorf("%w: repetition is judged within cycle %d", ErrMisfit, r.cycle)
	}
	p.stuck = d
	return nil
}

// note folds new content. Content that is new is progress.
func (p *progress) note(r *run, kind, content string) (news bool) {
	if news = p.novelty.add(kind, content); news {
		r.Progress(r.cfg.Limits)
	}
	return news
}

// novelty remembers the run's recent output, so that time without anything new can be
// told from progress.
type novelty struct {
	recent []uint64
	next   int
}

// memory is how many results and texts are remembered: a run in a circle of fewer makes
// no progress.
const memory = 64

// add adds content, and reports whether it is new.
func (n *novelty) add(kind, content string) (news bool) {
	if strings.TrimSpace(content) == "" {
		return false
	}
	h := fingerprint(kind, content)
	if slices.Contains(n.recent, h) {
		return false
	}
	if len(n.recent) < memory {
		n.recent = append(n.recent, h)
	} else {
		n.recent[n.next%memory] = h
		n.next++
	}
	return true
}

// countOldProgress counts progress in the journal of an older version. A model is not called when
// the time without progress is over, but older versions counted the result of a longer
// call as progress.
func (r *run) countOldProgress() {
	if r.cfg.Limits.Stalled(r.Spent) {
		r.Spent.Idle = 0
	}
}

func fingerprint(kind, content string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(kind))
	h.Write([]byte{0})
	h.Write([]byte(content))
	return h.Sum64()
}

// repeats is the state of the repetition check for a call.
type repeats struct {
	// own is the digest of the call as the model made it.
	own string
	// shown is the number of calls that the check has seen up to this one.
	shown int
	// blocked is the decision not to run the call because it continues a repetition.
	blocked *event.Stuck
}
