package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// compaction is the state of the room in a run's context.
type compaction struct {
	meter compact.Meter
	// sizes are those of the messages, and total their sum.
	sizes []int
	total int
	// overhead is the size of system text and tools, 0 before it is measured.
	overhead int
	// reported is the provider's input count for the first known messages of the
	// conversation; 0 if there is none.
	reported, known int

	summary summaryCall

	// overflow is the relief for a request that did not fit, and overflows the number
	// of such requests in a row.
	overflow  relief
	overflows int
	// shortened reports that the run has compressed its history.
	shortened bool
	decisions []string
	hooks     compactionHooks
}

// relief is the state of the response to a request that the provider found too long.
type relief uint8

const (
	reliefNone relief = iota
	// reliefDue means that the history must become shorter before anything else.
	reliefDue
	// reliefGiven means that it has become shorter, and the request may be made again.
	reliefGiven
)

// begin drops measurements and pending work, for a fork whose prompt, window or results
// differ. Decisions stay.
func (c *compaction) begin() {
	*c = compaction{decisions: c.decisions, summary: summaryCall{used: c.summary.used}}
}

// measure measures the new messages.
func (c *compaction) measure(cfg *Config, said *messages) {
	if cfg.Compact.Off {
		return
	}
	if c.overhead == 0 {
		c.overhead = compact.Overhead(said.system, cfg.namedTools())
	}
	c.sizes, c.total = c.meter.Measure(said.history.All())
}

// contextSize estimates the next request: system text, tools, conversation, and the
// messages that will join it, including more.
func (c *compaction) contextSize(cfg *Config, unread, more []*llm.Message) int {
	total := c.overhead + c.total
	if cfg.Compact.Measure == compact.MeasureProvider && c.reported > 0 && c.known <= len(c.sizes) {
		total = c.reported + sum(c.sizes[c.known:])
	}
	return total + compact.Messages(unread) + compact.Messages(more)
}

// nextCompaction makes the conversation shorter when that is due, between a settled
// cycle and the next call, which waits for it. more are the messages that will be added
// before that call.
func (m *Machine) nextCompaction(more ...*llm.Message) machine.Action {
	c := &m.compaction
	if m.run.cfg.Compact.Off {
		return nil
	}
	messages, err := m.messages.history.Messages()
	if err != nil {
		return internal(err)
	}
	used := c.contextSize(&m.run.cfg, m.messages.due(), more)
	window, known := m.run.window(m.target())
	forced := c.overflow == reliefDue
	measured := used
	if m.run.cfg.Compact.Measure == compact.MeasureMessages {
		measured -= c.overhead
	}
	// The reason for a summary may be gone when it arrives, but it is paid for.
	must := forced || known && used > window
	requested := m.run.cfg.CompactNow && m.run.cycle == 0 && !c.shortened
	if !must && !requested && c.summary.answer == nil && !m.run.cfg.Compact.Due(measured, window) {
		return nil
	}
	in := compact.Situation{
		Messages: messages, Sizes: c.sizes, Overhead: c.overhead, Window: window,
		Summaries: c.summary.used, NoSummary: c.summary.none(),
		Must: must, Trigger: event.CompressThreshold, Decisions: c.decisions,
		Untrusted: m.run.Taint.Untrusted != nil, Fence: m.messages.fence,
	}
	if forced {
		// The provider counts more than the estimate does, or has less room.
		in.Trigger = event.CompressOverflow
		in.Window = min(window, (c.overhead+sum(c.sizes))*4/5)
	} else if requested && !must {
		in.Trigger, in.Window = event.CompressRequested, min(window, used*4/5)
	}
	if c.summary.asked {
		a, missing := c.summary.next(&m.run, &in, m.lowersSummary)
		if a != nil {
			return a
		}
		in.NoSummary = in.NoSummary || missing
	}
	plan := m.run.cfg.Compact.Next(in)
	if plan.Summary != nil && !m.affordSummary(plan.Summary) {
		in.NoSummary = true
		plan = m.run.cfg.Compact.Next(in)
	}
	switch {
	case (plan.Change == nil || c.hooks.vetoed()) && forced:
		return nil
	case plan.Change == nil || c.hooks.vetoed():
		return c.endedByWindow(&m.run, m.target(), used)
	}
	if !c.summary.asked {
		if a := c.hooks.nextBefore(&m.run, &in, used); a != nil {
			return a
		}
	}
	if plan.Summary != nil {
		return m.callSummary(plan.Summary)
	}
	return record(*plan.Change)
}

// endedByWindow ends the run when the next request would not fit and nothing more can
// be removed, because the provider would refuse it.
func (c *compaction) endedByWindow(r *run, of Target, used int) machine.Action {
	window, known := r.contextWindow(of)
	if !known || used <= window {
		return nil
	}
	return fail(event.ReasonModelError, string(llm.ClassContextOverflow),
		fmt.Sprintf("the next request would take about %d tokens and the context window is %d (system text and tools take %d); "+
			"nothing more can be left out. Raise context_window, use a model with a larger one, or lower max_tool_result_chars",
			used, window, c.overhead))
}

func sum(sizes []int) int {
	n := 0
	for _, size := range sizes {
		n += size
	}
	return n
}

func (m *Machine) applyCompressed(d event.HistoryCompressed) error {
	if m.run.phase != phaseReady && m.run.phase != phaseSettled && m.run.phase != phaseModel || m.model.inFlight {
		return fmt.Errorf("%w: the history is compressed within cycle %d", ErrMisfit, m.run.cycle)
	}
	messages, err := m.messages.history.Messages()
	if err == nil {
		messages, err = compact.Apply(messages, d)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMisfit, err)
	}
	m.messages.history.Become(messages)
	m.messages.size = size{fixed: m.messages.fixedSize(&m.run.cfg)}
	c := &m.compaction
	c.meter.Reset()
	c.reported, c.known = 0, 0
	if d.Usage != nil {
		c.summary.used++
		c.summary.answer = nil
	}
	c.shortened = true
	c.summary.forget()
	c.hooks.compacted(&m.run.cfg, &d)
	if c.overflow == reliefDue {
		c.overflow = reliefGiven
	}
	return nil
}

// tooLong notes that the provider found a request too long. The first time the history
// becomes shorter; a second time in a row ends the run.
func (c *compaction) tooLong(off bool) {
	c.overflows++
	c.overflow = reliefNone
	if c.overflows == 1 && !off {
		c.overflow = reliefDue
	}
}

// fitted records the provider's count for a request that it answered.
func (c *compaction) fitted(u llm.Usage, known int) {
	c.overflow, c.overflows = reliefNone, 0
	c.reported, c.known = 0, 0
	if u.Input > 0 && !u.Estimated {
		c.reported, c.known = int(u.Input), known
	}
}

// nextRelief makes the history shorter for a request that was too long. Then the
// request may be made again.
func (m *Machine) nextRelief() machine.Action {
	if m.compaction.overflow != reliefDue {
		return nil
	}
	if setting := m.run.cfg.Limits.BeforeModelCall(m.run.Spent); setting != "" {
		return m.account.exhausted(&m.run, budget.Refusal{Setting: setting})
	}
	return m.nextCompaction()
}

// decided adds a line about the decisions on a call, which stays in the conversation
// when the call itself leaves it.
func (m *Machine) decided(c *call, what, reason string) {
	if c.resolved == nil {
		return
	}
	args := string(c.resolved.Args)
	if len(args) > 200 {
		args = strings.ToValidUTF8(args[:200], "") + "…"
	}
	text := c.ref.Name + " " + m.messages.quoted(m.run.Taint, c.ref.Name, args) + " " + sentence(what, reason)
	kept := m.compaction.decisions
	if slices.Contains(kept, text) {
		return
	}
	if len(kept) == compact.MaxDecisions {
		kept = kept[1:]
	}
	// A pending compaction keeps the list that it was planned with.
	m.compaction.decisions = append(slices.Clone(kept), text)
}

// curedByCompaction reports whether another call is possible now, or would be with a
// shorter conversation.
func curedByCompaction(r budget.Refusal) bool {
	return r.Setting == "" || r.Setting == budget.RequestTokens
}

// affordSummary reports whether the run's budget has room for a summary. Without it the
// run continues unsummarized, as long as its budget lasts.
func (m *Machine) affordSummary(s *compact.SummaryRequest) bool {
	r, summary := &m.run, &m.compaction.summary
	if r.outlasts(summary.call.notBefore) != "" {
		return false
	}
	if m.account.id != "" {
		return true
	}
	_, refusal := r.admit(m.messages.pricedSummary(r, m.target(), s, summary.least))
	return refusal.Setting == "" && m.account.declined(summary.id(r.answered)) == nil
}

// callSummary requests a summary: from the model in use, within the run's own limits,
// and never as live text. Its worst case is reserved first.
func (m *Machine) callSummary(s *compact.SummaryRequest) machine.Action {
	t, r, a := m.target(), &m.run, &m.compaction.summary.call
	if m.account.id == "" {
		call := m.messages.pricedSummary(r, t, s, m.compaction.summary.least)
		amount, _ := r.admit(call)
		return m.account.setAside(r, m.compaction.summary.id(r.answered), call, amount, a.notBefore)
	}
	req := llm.Request{
		System: s.System, Messages: s.Messages, MaxTokens: m.account.maxTokens,
		CacheKey: m.messages.workload, Cache: r.cfg.Cache, Ordinal: r.answered, StallTimeout: r.cfg.StallTimeout,
	}
	var withheld *event.Withheld
	if s.SamePrefix {
		req.System, req.Tools, req.Temperature = m.messages.system, r.cfg.namedTools(), r.cfg.Temperature
		req.ProviderTools, withheld = m.permissions.providerTools(r)
	}
	return machine.CallModel{
		Cycle: r.cycle, Attempt: max(a.number, 1), Target: t.Model, Price: t.Price, Purpose: event.PurposeSummary,
		Request: req, NotBefore: a.notBefore,
		Admission: r.Ledger.Admission(m.account.id), Withheld: withheld,
	}
}

// summaryCall is the call for a summary of a compaction, and its answer.
type summaryCall struct {
	// call is the attempt that is under way or has just failed.
	call  attempt
	asked bool
	// answer is the summary, nil before it arrives; void reports whether the answer was
	// unusable.
	answer *event.ModelResponse
	void   bool
	// least is the call's minimum size in tokens, learned from a refusal.
	least int64
	// used counts the summaries that were used, and unusable the others. After
	// maxUnusable no further summary is tried.
	used, unusable int
}

const maxUnusable = 3

// none reports whether no summary may be requested.
func (s *summaryCall) none() bool { return s.unusable >= maxUnusable || s.void }

// forget ends the pending summary, when the history has become shorter or the run
// continues without one. An unusable summary counts.
func (s *summaryCall) forget() {
	if s.void || s.answer != nil || s.call.failure != nil {
		s.unusable++
	}
	*s = summaryCall{used: s.used, unusable: s.unusable}
}

// answered folds the answer.
func (s *summaryCall) answered(d *event.ModelResponse) {
	if strings.TrimSpace(llm.Parts(d.Parts).Text()) == "" || !summed(d.FinishReason) {
		s.void = true
		return
	}
	s.answer = d
}

// pricedSummary is the worst case of a summary, whose input is the least known.
func (m *messages) pricedSummary(r *run, t Target, s *compact.SummaryRequest, least int64) budget.Call {
	call := budget.Call{Price: t.Price, KeptLong: r.cfg.Cache == llm.CacheLong}
	if s.SamePrefix {
		// The request has only the conversation and the instruction after it, and the
		// provider's count bounds the conversation better than its bytes do.
		call.Input, call.Likely = m.size.tokens(t.Model, messageSize(s.Messages[len(s.Messages)-1]))
	} else {
		call.Input = int64(len(s.System))
		for _, message := range s.Messages {
			call.Input += messageSize(message)
		}
		call.Likely = call.Input / bytesPerToken
	}
	call.Likely = max(call.Likely, least)
	call.Output = r.mostOutput(t, call.Likely)
	return call
}

// id names the reservation of the next attempt.
func (s *summaryCall) id(answered int) string {
	return "summary-" + strconv.Itoa(answered) + "." + strconv.Itoa(max(s.call.number, 1))
}

// next continues a requested summary: it uses the answer, or retries a failed call.
// missing reports whether no summary is possible now.
func (s *summaryCall) next(r *run, in *compact.Situation, lowers func(*event.ModelAttemptFailed, *compact.Situation) bool) (a machine.Action, missing bool) {
	if s.answer != nil {
		if plan := r.cfg.Compact.Next(*in); plan.Summary != nil {
			if d := in.Summarized(*plan.Change, llm.Parts(s.answer.Parts).Text()); d != nil {
				usage, cost := s.answer.Usage, s.answer.Cost
				d.Usage, d.Cost = &usage, &cost
				return record(*d), false
			}
		}
		return nil, true
	}
	f := s.call.failure
	if f == nil {
		return nil, false
	}
	seed := r.ID + "/summary/" + strconv.Itoa(r.answered)
	v := judge(&s.call, 1, r.cfg.Limits.ModelCalls(), seed)
	if lowers(f, in) {
		v = verdict{retry: true}
	}
	if !v.retry || r.noTimeFor(v.delay) != "" {
		return nil, true
	}
	return record(event.ModelRetrying{
		Attempt: f.Attempt + 1, DelayMs: v.delay.Milliseconds(), Reason: sentence(string(f.Class), f.Message),
		FromModel: f.Model, ToModel: f.Model, Purpose: event.PurposeSummary,
	}), false
}

// summed reports whether an answer with this finish can be a summary. A truncated one
// is a short summary.
func summed(f llm.Finish) bool {
	return f == llm.FinishEnd || f == llm.FinishLength || f == llm.FinishTool
}
