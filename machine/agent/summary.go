package agent

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/compact"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
)

// summaryCall is the call for a summary that a compaction makes, and its answer.
type summaryCall struct {
	// call is the attempt under way or just failed.
	call  attempt
	asked bool
	// answer is the summary, nil before it is there; void says that the answer was
	// none.
	answer *event.ModelResponse
	void   bool
	// used counts the summaries that were used, strikes those that came to nothing.
	// After maxStrikes none is tried any more.
	used, strikes int
}

const maxStrikes = 3

// none reports whether no summary is to be asked for.
func (s *summaryCall) none() bool { return s.strikes >= maxStrikes || s.void }

// forget closes the summary under way, when the history has become shorter or the
// run goes on without. One that came to nothing is a strike.
func (s *summaryCall) forget() {
	if s.void || s.answer != nil || s.call.failure != nil {
		s.strikes++
	}
	*s = summaryCall{used: s.used, strikes: s.strikes}
}

// answered takes in the answer.
func (s *summaryCall) answered(d *event.ModelResponse) {
	s.call.inFlight, s.call.orphan = false, false
	if strings.TrimSpace(llm.Parts(d.Parts).Text()) == "" || !summed(d.FinishReason) {
		s.void = true
		return
	}
	s.answer = d
}

// lostSummary settles a call for a summary whose process is gone.
func (m *Machine) lostSummary() machine.Action {
	if !m.compaction.summary.call.orphan {
		return nil
	}
	return m.lostCall(&m.compaction.summary.call, event.PurposeSummary)
}

// pricedSummary is a summary at its worst.
func (m *Machine) pricedSummary(s *compact.SummaryRequest) budget.Call {
	output := int64(m.cfg.MaxTokens)
	if output <= 0 {
		output = defaultOutput
	}
	call := budget.Call{Output: output, Price: m.target().Price, KeptLong: m.cfg.Cache == llm.CacheLong}
	if s.SamePrefix {
		// No more than the conversation and the instruction behind it: what the
		// provider counted of the one bounds it better than its bytes do.
		m.messages.size.measure(m.messages.history.All(), m.cfg.Tools)
		call.Input, call.Likely = m.messages.size.tokens(m.target().Model, messageSize(s.Messages[len(s.Messages)-1]))
		return call
	}
	call.Input = int64(len(s.System))
	for _, message := range s.Messages {
		call.Input += messageSize(message)
	}
	call.Likely = call.Input / bytesPerToken
	return call
}

// affordSummary reports whether the run's budget has room for a summary. Without it
// the run goes on unsummarised, for as long as its budget lasts.
func (m *Machine) affordSummary(s *compact.SummaryRequest) bool {
	if m.outlasts(m.compaction.summary.call.notBefore) != "" {
		return false
	}
	if m.account.id != "" {
		return true
	}
	_, refusal := m.admit(m.pricedSummary(s))
	return refusal.Setting == "" && m.account.declined(m.summaryID()) == nil
}

// summaryID names the reservation of the next attempt at a summary.
func (m *Machine) summaryID() string {
	return "summary-" + strconv.Itoa(m.model.answered) + "." + strconv.Itoa(max(m.compaction.summary.call.number, 1))
}

// callSummary asks for a summary: of the model in use, within the run's own
// limits, and never as live text. Its worst case is set aside first.
func (m *Machine) callSummary(s *compact.SummaryRequest) machine.Action {
	t, a := m.target(), &m.compaction.summary.call
	if m.account.id == "" {
		call := m.pricedSummary(s)
		amount, _ := m.admit(call)
		return m.setAside(m.summaryID(), call, amount, a.notBefore)
	}
	req := llm.Request{
		System: s.System, Messages: s.Messages, MaxTokens: m.account.maxTokens,
		CacheKey: m.messages.workload, Cache: m.cfg.Cache, Ordinal: m.model.answered,
	}
	var withheld *event.Withheld
	if s.SamePrefix {
		req.System, req.Tools, req.Temperature = m.messages.system, m.cfg.Tools, m.cfg.Temperature
		req.ProviderTools, withheld = m.providerTools()
	}
	return machine.CallModel{
		Cycle: m.cycle, Attempt: max(a.number, 1), Target: t.Model, Price: t.Price, Purpose: event.PurposeSummary,
		Request: req, NotBefore: a.notBefore,
		Admission: m.run.Ledger.Admission(m.account.id), Withheld: withheld,
	}
}

// nextSummary goes on with a summary that was asked for: it uses the answer, or
// tries a call that failed again. missing says that no summary can be had now.
func (m *Machine) nextSummary(in *compact.Situation) (a machine.Action, missing bool) {
	c := &m.compaction.summary
	if c.answer != nil {
		if plan := m.cfg.Compact.Next(*in); plan.Summary != nil {
			if d := in.Summarized(*plan.Change, llm.Parts(c.answer.Parts).Text()); d != nil {
				usage, cost := c.answer.Usage, c.answer.Cost
				d.Usage, d.Cost = &usage, &cost
				return record(*d), false
			}
		}
		return nil, true
	}
	f := c.call.failure
	if f == nil {
		return nil, false
	}
	seed := m.run.ID + "/summary/" + strconv.Itoa(m.model.answered)
	v := judge(&c.call, 1, m.cfg.Limits.ModelCalls(), seed)
	if !v.retry || m.noTimeFor(v.delay) != "" {
		return nil, true
	}
	return record(event.ModelRetrying{
		Attempt: f.Attempt + 1, DelayMs: v.delay.Milliseconds(), Reason: sentence(string(f.Class), f.Message),
		FromModel: f.Model, ToModel: f.Model, Purpose: event.PurposeSummary,
	}), false
}

// betweenCalls reports whether no cycle is under way, so that a summary may be
// made.
func (m *Machine) betweenCalls() bool {
	return m.phase == phaseReady || m.phase == phaseSettled ||
		m.phase == phaseModel && m.compaction.overflow == reliefDue && !m.model.inFlight
}

func (m *Machine) applySummaryRequested(d event.ModelRequested) error {
	a := &m.compaction.summary.call
	if !m.betweenCalls() || a.inFlight || a.failure != nil {
		return fmt.Errorf("%w: attempt %d at a summary, which is not due", ErrMisfit, d.Attempt)
	}
	a.requested(d)
	m.compaction.summary.asked = true
	m.run.Spent.ModelCalls++
	return nil
}

func (m *Machine) applySummary(d *event.ModelResponse) error {
	if !m.compaction.summary.call.inFlight {
		return fmt.Errorf("%w: a summary that nobody asked for", ErrMisfit)
	}
	m.spend(d.Usage, d.Cost)
	m.model.answered++
	m.compaction.summary.answered(d)
	return nil
}

// summed reports whether an answer with this finish can be a summary. One that was
// cut off is a short one.
func summed(f llm.Finish) bool {
	return f == llm.FinishEnd || f == llm.FinishLength || f == llm.FinishTool
}

func (m *Machine) applySummaryFailed(d *event.ModelAttemptFailed) error {
	a := &m.compaction.summary.call
	if !a.inFlight {
		return fmt.Errorf("%w: attempt %d at a summary failed without being in flight", ErrMisfit, d.Attempt)
	}
	m.spend(d.Usage, d.Cost)
	if d.Class != llm.ClassInterrupted {
		m.model.answered++
	}
	a.failed(d)
	return nil
}

func (m *Machine) applySummaryRetrying(e *event.Event, d event.ModelRetrying) error {
	a := &m.compaction.summary.call
	if a.failure == nil {
		return fmt.Errorf("%w: attempt %d at a summary follows no failure", ErrMisfit, d.Attempt)
	}
	a.retrying(d, e.Time, nil)
	return nil
}
