package agent

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/llm"
)

func (m *Machine) callModel() machine.Action {
	messages, err := m.messages.history.Messages()
	if err != nil {
		return internal(err)
	}
	t := m.target()
	hosted, withheld := m.permissions.providerTools(&m.run)
	return machine.CallModel{
		Cycle: m.run.cycle, Attempt: m.model.number, Target: t.Model, Price: t.Price,
		Request: llm.Request{
			System: m.messages.system, Messages: messages, Tools: m.turn.offered(&m.run.cfg),
			MaxTokens: m.account.maxTokens, Temperature: m.run.cfg.Temperature, Schema: m.run.cfg.Schema, SchemaInPrompt: t.NoSchema,
			ProviderTools: hosted, CacheKey: m.messages.workload, Cache: m.run.cfg.Cache, Ordinal: m.run.answered,
			StallTimeout: m.run.cfg.StallTimeout,
		},
		Streamed: !m.run.cfg.NoStream, NotBefore: m.model.notBefore,
		Admission: m.run.Ledger.Admission(m.account.id), Withheld: withheld,
	}
}

// lost settles a call whose process is gone.
func (a *account) lost(r *run, x *attempt, of Target, purpose event.Purpose) machine.Action {
	if !x.orphan {
		return nil
	}
	used := budget.Unreported(r.Ledger.Admission(a.id).Usage(), llm.Usage{}, 0)
	message := "the process stopped while the call was in flight"
	if x.deaths > 0 {
		message += fmt.Sprintf(", %d times in a row", x.deaths+1)
	}
	return record(event.ModelAttemptFailed{
		Attempt: x.number, Model: of.Model, Class: llm.ClassInterrupted, Purpose: purpose,
		Message: message, Usage: used, Cost: of.cost(used),
	})
}

// nextRetry decides about a failed attempt. A budget that is used up, or that would be
// before the wait is over, comes first.
func (m *Machine) nextRetry() machine.Action {
	f := m.model.failure
	if f == nil {
		return nil
	}
	lowered := m.lowersCap(f)
	if !lowered {
		if a := m.nextRelief(); a != nil {
			return a
		}
	}
	seed := m.run.ID + "/" + strconv.Itoa(m.run.cycle) + "/" + strconv.Itoa(f.Attempt)
	v := judge(&m.model.attempt, len(m.run.cfg.Targets), m.run.cfg.Limits.ModelCalls(), seed)
	if m.compaction.overflow == reliefGiven || lowered {
		v = verdict{retry: true, target: m.model.target}
	}
	refusal := m.refused(m.run.cfg.Targets[v.target])
	if setting := m.run.noTimeFor(v.delay); v.retry && setting != "" {
		refusal = tooLateToWait(setting, v.delay)
	}
	switch {
	case v.retry && refusal.Setting != "":
		return m.account.exhausted(&m.run, refusal)
	case v.retry:
		return record(event.ModelRetrying{
			Attempt: f.Attempt + 1, DelayMs: v.delay.Milliseconds(),
			Reason:    sentence(string(f.Class), f.Message),
			FromModel: f.Model, ToModel: m.run.cfg.Targets[v.target].Model,
		})
	case v.park:
		until := m.run.Now.Add(v.delay)
		return record(event.RunParked{
			Reason: event.ParkPaused, Until: &until,
			Detail: fmt.Sprintf("%s asks for a wait of %s, longer than a run waits by itself", f.Model, v.delay.Round(time.Second)),
		})
	}
	reason := event.ReasonModelError
	switch f.Class {
	case llm.ClassRefused:
		reason = event.ReasonRefused
	case llm.ClassBudget:
		reason = event.ReasonTenantBudget
	}
	return record(event.RunTerminatedBy{Reason: reason, Error: &event.Failure{
		Class: string(f.Class), Message: f.Message, Status: f.Status, RequestID: f.RequestID,
	}})
}

// attempt requests an attempt at a call for a purpose, and describes the call.
func (m *Machine) attempt(p event.Purpose) (a *attempt, what string) {
	if p == event.PurposeSummary {
		return &m.compaction.summary.call, "a summary"
	}
	return &m.model.attempt, "a model call"
}

func (m *Machine) applyRequested(d event.ModelRequested) error {
	a, what := m.attempt(d.Purpose)
	phase, summary := m.run.phase, a != &m.model.attempt
	between := phase == phaseReady || phase == phaseSettled || phase == phaseModel && m.compaction.overflow == reliefDue && !m.model.inFlight
	if summary && !between || !summary && phase != phaseModel || a.inFlight || a.failure != nil {
		return fmt.Errorf("%w: attempt %d at %s, which is not due", ErrMisfit, d.Attempt, what)
	}
	a.requested(d)
	m.run.Spent.ModelCalls++
	if summary {
		m.compaction.summary.asked = true
	} else {
		m.run.countOldProgress()
	}
	return nil
}

func (m *Machine) applyAttemptFailed(d *event.ModelAttemptFailed) error {
	a, what := m.attempt(d.Purpose)
	if !a.inFlight {
		return fmt.Errorf("%w: attempt %d at %s failed without being in flight", ErrMisfit, d.Attempt, what)
	}
	m.account.spend(&m.run, d.Usage, d.Cost)
	if d.Class != llm.ClassInterrupted {
		m.run.answered++
	}
	a.failed(d)
	if d.Room != nil {
		m.learn(d)
	}
	if d.Class == llm.ClassContextOverflow && a == &m.model.attempt {
		m.compaction.tooLong(m.run.cfg.Compact.Off)
	}
	return nil
}

func (m *Machine) applyRetrying(e *event.Event, d event.ModelRetrying) error {
	a, what := m.attempt(d.Purpose)
	if a.failure == nil {
		return fmt.Errorf("%w: attempt %d at %s follows no failure", ErrMisfit, d.Attempt, what)
	}
	if a != &m.model.attempt {
		a.retrying(d, e.Time, nil)
		return nil
	}
	a.retrying(d, e.Time, m.run.cfg.Targets)
	if m.compaction.overflow == reliefDue {
		m.compaction.overflows-- // the cap was lowered instead of the history
	}
	m.compaction.overflow = reliefNone
	return nil
}

func (m *Machine) applyResponse(d *event.ModelResponse) error {
	a, what := m.attempt(d.Purpose)
	parts, calls := llm.Parts(d.Parts), 0
	for _, p := range parts {
		if _, ok := p.(llm.ToolCall); ok {
			calls++
		}
	}
	switch {
	case !a.inFlight:
		return fmt.Errorf("%w: in cycle %d no call waits for an answer to %s", ErrMisfit, m.run.cycle, what)
	case a == &m.model.attempt && calls != len(d.ToolCalls):
		return fmt.Errorf("%w: response of cycle %d names %d calls and holds %d", ErrMisfit, d.Cycle, len(d.ToolCalls), calls)
	}
	m.account.spend(&m.run, d.Usage, d.Cost)
	m.run.answered++
	a.inFlight, a.orphan = false, false
	if a != &m.model.attempt {
		m.compaction.summary.answered(d)
		return nil
	}
	m.run.Spent.Turns++
	m.model.response = d
	if d.FinishReason == llm.FinishContext {
		m.compaction.tooLong(m.run.cfg.Compact.Off)
	} else {
		m.compaction.fitted(d.Usage, m.messages.history.Len())
	}
	m.messages.history.Assistant(parts, d.Model)
	m.messages.size.answered(d, m.messages.history.Len())
	m.progress.note(&m.run, "text", parts.Text())
	m.turn.answered(d, calls, len(m.run.cfg.Schema) > 0, m.run.cfg.AllText)
	m.progress.repetition.Answered(parts.Text(), calls > 0)
	m.run.tookIn(parts)
	if calls == 0 {
		m.run.phase = phaseSettled
		m.turn.settled(d, 0, d.FinishReason == llm.FinishLength)
		return nil
	}
	m.run.phase = phaseTools
	m.calls.addCalls(parts, calls)
	return nil
}

// refused returns the limit that has no room for a call of a target.
func (m *Machine) refused(t Target) budget.Refusal {
	if m.account.id != "" {
		// A reservation is used or given back before the next request.
		return budget.Refusal{Setting: m.run.cfg.Limits.BeforeModelCall(m.run.Spent)}
	}
	_, refusal := m.run.admit(m.messages.pricedCall(&m.run, t))
	return refusal
}

// reserve reserves the next call's worst case, or ends the run: a call that cannot be
// paid for is not made.
func (m *Machine) reserve() machine.Action {
	if m.account.id != "" {
		return nil
	}
	call := m.messages.pricedCall(&m.run, m.target())
	a, refusal := m.run.admit(call)
	id := strconv.Itoa(m.run.cycle) + "." + strconv.Itoa(m.model.number)
	switch above := m.account.declined(id); {
	case refusal.Setting != "":
		return m.account.exhausted(&m.run, refusal)
	case above != nil:
		return m.run.exhaustedAbove(above)
	}
	return m.account.setAside(&m.run, id, call, a, m.model.notBefore)
}

// attempt is the state of the current model request: the try, its target, and the
// result of the last one.
type attempt struct {
	number int
	target int
	// failures counts the failed calls of this request, for the limit on calls in
	// total. A call that was stopped does not count, nor does one whose process died.
	failures int
	// deaths counts the processes that died during this request since its last other
	// failure.
	deaths   int
	inFlight bool
	// orphan reports whether the process that made the call is gone.
	orphan  bool
	failure *event.ModelAttemptFailed
	// lost reports whether the failure is an orphan's.
	lost bool
	// resumed reports whether the run was resumed after the failure.
	resumed   bool
	notBefore time.Time
	// withheld are the provider's own tools that the last call did not offer.
	withheld *event.Withheld
}

// modelCall is the model call of a cycle, and its answer.
type modelCall struct {
	attempt
	// response is the cycle's answer, nil before it arrives.
	response *event.ModelResponse
}

// begin opens a new request. The target stays: a fallback is kept for the rest of the
// run, so that caches and signatures stay valid.
func (a *attempt) begin() { *a = attempt{number: 1, target: a.target} }

func (a *attempt) requested(d event.ModelRequested) {
	a.number, a.inFlight = d.Attempt, true
	a.notBefore, a.withheld = time.Time{}, d.Withheld
}

func (a *attempt) failed(d *event.ModelAttemptFailed) {
	a.failure, a.lost, a.resumed = d, a.orphan, false
	a.inFlight, a.orphan = false, false
	if a.lost {
		a.deaths++
		return
	}
	a.failures, a.deaths = a.failures+1, 0
}

// resume notes that the run was resumed. A call that was stopped to park the run does
// not count as a failure.
func (a *attempt) resume() {
	a.orphan = a.inFlight
	if a.failure == nil || a.resumed {
		return
	}
	a.resumed = true
	if a.failure.Class == llm.ClassInterrupted && !a.lost {
		a.failures--
	}
}

func (a *attempt) retrying(d event.ModelRetrying, at time.Time, targets []Target) {
	a.number, a.failure = d.Attempt, nil
	a.notBefore = at.Add(time.Duration(d.DelayMs) * time.Millisecond)
	// A chain may name a model twice, so the search begins at the current place.
	for i := range targets {
		if at := (a.target + i) % len(targets); targets[at].Model == d.ToModel {
			a.target = at
			return
		}
	}
}

// maxRetryAfter is the longest wait that an unattended run accepts from a provider on
// the same model.
const maxRetryAfter = 60 * time.Second

// verdict is the decision about a failed attempt: retry at target after delay, park
// until the provider accepts calls again, or (the zero verdict) end.
type verdict struct {
	retry  bool
	park   bool
	target int
	delay  time.Duration
}

// judge decides about a failed attempt. targets is the length of the chain, and limit
// the number of calls in total for one request, without those whose process died.
func judge(a *attempt, targets, limit int, seed string) verdict {
	f := a.failure
	interrupted := f.Class == llm.ClassInterrupted
	switch {
	case a.failures >= limit, a.deaths >= machine.MaxDeaths:
		return verdict{}
	case f.Adapted:
		return verdict{retry: true, target: a.target} // another request
	case !retryable(f.Class) && !interrupted:
		return verdict{}
	}
	if interrupted {
		if a.lost || a.resumed {
			return verdict{retry: true, target: a.target}
		}
		return verdict{retry: true, target: a.target, delay: backoff(a.failures, seed)}
	}
	next := min(a.target+1, targets-1)
	fallback := verdict{retry: true, target: next, delay: backoff(a.failures, seed)}
	if f.RetryAfterMs == nil {
		return fallback
	}
	wait := time.Duration(*f.RetryAfterMs) * time.Millisecond
	stay := next == a.target || f.Class == llm.ClassThrottled
	switch {
	case wait <= maxRetryAfter && stay:
		return verdict{retry: true, target: a.target, delay: wait}
	case next != a.target:
		// The hint is about the model that is being left.
		return fallback
	case a.resumed:
		return verdict{retry: true, target: a.target}
	}
	return verdict{park: true, delay: wait}
}

func retryable(c llm.Class) bool {
	return c == llm.ClassThrottled || c == llm.ClassOverloaded || c == llm.ClassNetwork
}

// backoff returns the wait before retry n: 200 ms doubling, plus 0 to 25 % jitter, in
// whole milliseconds, and never longer than a provider may request. The jitter is drawn
// from the seed, because a machine has no randomness: runs differ, a fold does not.
func backoff(n int, seed string) time.Duration {
	const first = 200 * time.Millisecond
	base := maxRetryAfter
	if n < 10 {
		base = min(base, first<<max(n-1, 0))
	}
	return time.Duration(float64(base) * (1 + 0.25*fraction(seed))).Round(time.Millisecond)
}

// fraction draws a number from [0, 1). The high bits of the hash alone hardly change
// for seeds that differ at the end, hence the mixing.
func fraction(seed string) float64 {
	h := fnv.New32a()
	h.Write([]byte(seed))
	x := h.Sum32()
	x = (x ^ x>>16) * 0x85ebca6b
	x = (x ^ x>>13) * 0xc2b2ae35
	return float64(x^x>>16) / (1 << 32)
}
