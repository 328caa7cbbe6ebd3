package agent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
)

// nextCalls advances every call of the cycle by one step: resolve, refuse what cannot
// run, decide, ask, dispatch, settle.
func (m *Machine) nextCalls(due *actions) {
	r, s := &m.run, &m.calls
	switch {
	case s.total.unresolved > 0:
		s.resolve(due)
		return
	case s.total.open == 0:
		due.add(record(s.results(r.cycle)))
		return
	}
	held := m.nextSteps(due)
	undecided := len(*due) > 0
	s.hooksAfter(r, due)
	switch {
	case undecided:
		return
	case r.Cancel != nil:
		s.endChildren(r, due)
		return
	}
	s.endAsked(due, false, "the call that it was for does not wait for it any more")
	if !r.cfg.asksAt(r.outOfTime()) { // a call that starts now would be cut short at once
		for c := range startable(r.cfg.Dispatch, s.unsettled(), s.total.running, r.cfg.Limits.MaxParallelTools) {
			due.add(c.perform(r))
		}
	}
	switch {
	case r.pause && s.onlyWaits(*due, r.Now):
		*due = actions{record(event.RunParked{Reason: event.ParkPaused})}
	case s.total.running == 0 && len(*due) > 0:
		if until := s.onlyTasks(*due, r.Now); !until.IsZero() {
			*due = actions{record(event.RunParked{
				Reason: event.ParkPaused, Until: &until, Detail: "a call goes on at its server, which asks for a longer wait than a run waits by itself",
			})}
		}
	case len(*due) == 0:
		due.add(m.await(held))
	}
	s.nextChildren(due)
}

// await returns what a cycle waits for when nothing can start: a person, a raised
// limit, or children.
func (m *Machine) await(held string) machine.Action {
	switch held = cmp.Or(held, m.calls.heldChildren(&m.run)); {
	case m.calls.asking():
		return m.calls.nextAsk(m.run.cfg.Approve)
	case held != "":
		return m.awaitsRaise(held)
	}
	return m.calls.awaitChildren(m.run.ID)
}

// awaitsRaise parks the run before the calls that a limit holds, once nothing else of
// the cycle is under way.
func (m *Machine) awaitsRaise(setting string) machine.Action {
	if m.calls.total.running > 0 {
		return nil
	}
	if warning := m.account.warn(&m.run, budget.OfCycles); warning != nil {
		return warning
	}
	return m.run.askForMore(budget.Refusal{Setting: setting}, m.calls.promised(m.run.Spent))
}

// nextAsk puts every question to a person, once nothing else is due.
func (s *calls) nextAsk(mode ApproveMode) machine.Action {
	if len(s.pending) == 0 {
		return nil
	}
	if mode != ApprovePark {
		return machine.Ask{Questions: s.pending, Unanswered: unanswered(mode)}
	}
	parked := event.RunParked{Reason: event.ParkApproval}
	for _, q := range s.pending {
		parked.CallIDs = append(parked.CallIDs, q.ID)
	}
	return record(parked)
}

func unanswered(mode ApproveMode) machine.Unanswered {
	switch mode {
	case ApproveWait:
		return machine.UnansweredWait
	case ApproveCallback:
		return machine.UnansweredReject
	}
	return machine.UnansweredPark
}

// onlyWaits reports whether everything that is due is a further attempt whose time has
// not come, nothing else is under way, and no person's answer is awaited.
func (s *calls) onlyWaits(due []machine.Action, now time.Time) bool {
	return s.total.running == 0 && s.total.waiting == 0 && len(due) > 0 && !slices.ContainsFunc(due, func(a machine.Action) bool {
		run, ok := a.(machine.RunTool)
		return !ok || !run.NotBefore.After(now)
	})
}

// maxTaskWait is how long a run waits by itself for a task of a call.
const maxTaskWait = 5 * time.Minute

// onlyTasks returns when the first of the tasks is asked for, if all that is due is to
// ask for tasks, later than a run waits by itself.
func (s *calls) onlyTasks(due []machine.Action, now time.Time) (first time.Time) {
	for _, a := range due {
		run, ok := a.(machine.RunTool)
		if !ok || run.Input.Task == nil || run.NotBefore.Sub(now) <= maxTaskWait {
			return time.Time{}
		}
		if first.IsZero() || run.NotBefore.Before(first) {
			first = run.NotBefore
		}
	}
	if s.total.waiting > 0 {
		return time.Time{}
	}
	return first
}

// resolve requests the facts about the calls. Nothing is decided about any of them
// before all are known.
func (s *calls) resolve(due *actions) {
	for _, c := range s.list {
		if c.resolved == nil {
			due.add(c.resolve())
		}
	}
}

// situation is what the steps of all calls depend on. held is the limit, if any, that
// holds calls until it is raised; spent counts the allowed calls, and hooks how many
// more may begin, negative for no limit.
type situation struct {
	unfit     event.ErrorType
	why       string
	late      string
	overrun   string
	cancelled bool
	warned    bool
	spent     budget.Spent
	hooks     int
	held      string
}

func (m *Machine) situation() situation {
	r := &m.run
	s := situation{
		late: r.outOfTime(), overrun: r.Overrun, cancelled: r.Cancel != nil, warned: m.progress.repetition.Warned(),
		spent: m.calls.promised(r.Spent), hooks: r.hookTurns(nil),
	}
	s.unfit, s.why = m.model.unfit(m.account.maxTokens)
	return s
}

// everyCall reports whether the situation decides about every call.
func (s *situation) everyCall() bool {
	return s.cancelled || s.unfit != "" || s.late != "" || s.overrun != ""
}

// nextSteps decides about the open calls as far as no effect is needed, and returns the
// limit, if any, that holds calls until it is raised.
func (m *Machine) nextSteps(due *actions) (held string) {
	s := m.situation()
	m.calls.eachToDecide(&s, func(c *call) { due.add(m.nextStep(c, &s)) })
	return s.held
}

// eachToDecide visits the calls that may have a step, in call order. Of those that only
// wait for a hook it visits as many as may begin, unless each of them may be one that
// will not run.
func (s *calls) eachToDecide(in *situation, look func(*call)) {
	if in.everyCall() {
		for _, c := range s.unsettled() {
			if c.idle() {
				look(c)
			}
		}
		return
	}
	others, behind := s.total.undecided-s.total.behind, s.total.behind
	if in.hooks >= 0 && !in.warned {
		behind = min(behind, in.hooks)
	}
	for _, c := range s.list[s.next:] {
		switch {
		case others == 0 && behind == 0:
			return
		case !c.undecided:
			continue
		case !c.behindHook():
			others--
		case behind == 0:
			continue
		default:
			behind--
		}
		look(c)
	}
}

// nextStep is the table of one call: the decisions before it may run.
func (m *Machine) nextStep(c *call, s *situation) machine.Action {
	r := &m.run
	switch stuck, circling := m.progress.circling(c, &m.calls); {
	case c.orphan && (s.cancelled || c.deaths >= machine.MaxDeaths || c.kept == nil && !c.mayRepeat(&r.cfg)):
		return record(c.lost(&r.cfg))
	case c.retry.undecided:
		return c.nextRetry(r)
	case c.retry.due() && s.cancelled:
		return record(c.abandoned())
	case c.retry.due() && r.outlasts(c.retry.notBefore) != "":
		return record(c.retry.failure.Result)
	case s.cancelled && c.form != nil:
		return record(c.failed(event.ErrorCancelled, "the run was cancelled while this call waited for input"))
	case s.cancelled:
		return record(c.failed(event.ErrorCancelled, "the run was cancelled before this call ran"))
	case s.unfit != "":
		return record(c.failed(s.unfit, s.why+c.unread()))
	case s.overrun != "":
		return s.holdBack(&r.cfg, c, s.overrun)
	case circling:
		return c.block(stuck)
	case c.resolved.Problem != nil:
		return record(c.unfit(&r.cfg))
	case c.verdict == nil:
		return m.permissions.nextVerdict(r, c, s)
	case s.late != "" && permits(c.verdict.Decision) && (c.attempt == 0 || r.cfg.asksAt(s.late)):
		return s.holdBack(&r.cfg, c, s.late)
	case c.form != nil:
		return m.permissions.nextForm(r, c)
	case c.kept != nil:
		return nil
	case unasked(c.verdict.Decision) && m.permissions.rules(r).Met(c.resolved):
		return record(c.decision(m.permissions.judge(r, c)))
	case !permits(c.verdict.Decision):
		return record(c.failed(event.ErrorDenied, sentence("not permitted", c.verdict.Reason)))
	case c.verdict.Decision == event.DecisionAsk:
		return m.permissions.nextApproval(r, c)
	}
	return nil
}

// nextVerdict advances an unjudged call by one step: the hooks before it, then the
// budget for calls, then policy.
func (p *permissions) nextVerdict(r *run, c *call, s *situation) machine.Action {
	switch h := &c.hooks.before; {
	case h.refusal != nil:
		return record(c.failed(refusalType(h.refusal), hookSays(h.refusal, "did not let this call run")))
	case h.due != nil && s.hooks == 0:
		return nil
	case h.due != nil:
		s.hooks--
		return r.runHook(h.due, func(a *machine.RunHook) {
			a.CallID, a.Tool, a.Args = c.ref.CallID, c.ref.Name, c.resolved.Args
		})
	}
	v := p.judge(r, c)
	if c.attempt == 0 && permits(v.Decision) {
		if setting := r.cfg.Limits.BeforeToolCall(s.spent); setting != "" {
			return s.holdBack(&r.cfg, c, setting)
		}
		s.spent.ToolCalls++
	}
	return record(c.decision(v))
}

// holdBack keeps a call from starting for which a limit has no room. It is refused, and the
// run ends once the cycle has settled; if the limit parks the run for a raise, the call
// is held, and runs after the raise.
func (s *situation) holdBack(cfg *Config, c *call, setting string) machine.Action {
	if !cfg.asksAt(setting) {
		return record(c.overBudget(setting))
	}
	s.held = setting
	return nil
}

// promised returns the run's spending, including that promised to allowed calls. Hooks
// and edits make calls reach their decisions in any order.
func (s *calls) promised(spent budget.Spent) budget.Spent {
	spent.ToolCalls += s.total.granted
	return spent
}

func (c *call) decision(v policy.Verdict) event.PolicyDecision {
	return event.PolicyDecision{
		CallID: c.ref.CallID, Decision: v.Decision, Rule: v.Rule, Reason: v.Reason, Sandbox: v.Sandbox, Digest: c.resolved.Digest,
	}
}

// unfit returns why no call of the answer may run, whatever each of them contains: half
// an answer is no instruction.
func (a *modelCall) unfit(limit int) (event.ErrorType, string) {
	switch f := a.response.FinishReason; {
	case a.cut(int64(limit)):
		return event.ErrorTruncated, fmt.Sprintf("the answer was cut off after %d output tokens, so none of its calls was run: "+
			"their arguments may be incomplete. Make the call again with smaller arguments", a.response.Usage.Output)
	case f == llm.FinishRefusal:
		return event.ErrorDenied, "the model declined to go on, so no call of this answer was run"
	case f == llm.FinishMalformed:
		return event.ErrorInvalidArgs, "a call of this answer could not be read, so none was run. " +
			"Make the calls again with arguments that match the tools' schemas"
	case !runnable(f):
		return event.ErrorTruncated, "the answer broke off before it was whole, so no call of it was run"
	}
	return "", ""
}

// cut reports whether the answer was cut off at the output limit. Some servers report
// an answer that used up its cap as finished. An estimate, which counts bytes up to the
// reservation, does not show that the cap was reached. Neither do unreadable arguments:
// a server that mixes up its fragments breaks them too.
func (a *modelCall) cut(limit int64) bool {
	r := a.response
	return r.FinishReason == llm.FinishLength || limit > 0 && !r.Usage.Estimated && r.Usage.Output >= limit
}

// lost settles a call whose process is gone and that will not run again.
func (c *call) lost(cfg *Config) event.ToolResult {
	if c.resolved.Effect == event.EffectPure && c.mayRepeat(cfg) {
		return c.failed(event.ErrorCancelled, "the run was cancelled after the process had stopped while this call was running")
	}
	why := "its effect class is " + string(c.resolved.Effect)
	switch {
	case c.mayRepeat(cfg):
		why = "the run was cancelled"
	case c.deaths >= machine.MaxDeaths:
		why = fmt.Sprintf("that happened %d times in a row", c.deaths)
	case c.repeatable():
		why = "what it does cannot be taken back"
	}
	return c.failed(event.ErrorInDoubt, "the process stopped while this call was running, so it is not known "+
		"whether it took effect; it was not repeated because "+why+". Check the state before you call it again")
}

func (s *calls) results(cycle int) event.ToolResults {
	refs := make([]event.ResultRef, len(s.list))
	for i, c := range s.list {
		refs[i] = event.ResultRef{CallID: c.ref.CallID, Tool: c.ref.Name, IsError: c.result.IsError}
	}
	return event.ToolResults{Cycle: cycle, Results: refs}
}
