package agent

import (
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
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
	// least is what the call has at least in tokens, by a refusal of it.
	least int64
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
	if strings.TrimSpace(llm.Parts(d.Parts).Text()) == "" || !summed(d.FinishReason) {
		s.void = true
		return
	}
	s.answer = d
}

// pricedSummary is a summary at its worst, of whose input least is known.
func (m *messages) pricedSummary(r *run, t Target, s *compact.SummaryRequest, least int64) budget.Call {
	call := budget.Call{Price: t.Price, KeptLong: r.cfg.Cache == llm.CacheLong}
	if s.SamePrefix {
		// No more than the conversation and the instruction behind it: what the
		// provider counted of the one bounds it better than its bytes do.
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

// next goes on with a summary that was asked for: it uses the answer, or
// tries a call that failed again. missing says that no summary can be had now.
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

// summed reports whether an answer with this finish can be a summary. One that was
// cut off is a short one.
func summed(f llm.Finish) bool {
	return f == llm.FinishEnd || f == llm.FinishLength || f == llm.FinishTool
}
