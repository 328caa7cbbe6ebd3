package agent

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/policy"
)

// nextCalls moves every call of the cycle one step: resolve, refuse what
// cannot run, decide, ask, dispatch, settle.
func (m *Machine) nextCalls() {
	if m.resolve() {
		return
	}
	if m.calls.total.open == 0 {
		m.record(m.results())
		return
	}
	held := m.nextSteps()
	undecided := len(m.actions) > 0
	m.afterTools()
	switch {
	case undecided:
		return
	case m.run.Cancel != nil:
		m.endChildren()
		return
	}
	if !m.asksAt(m.outOfTime()) { // what starts now would be cut short at once
		for _, c := range startable(m.cfg.Dispatch, m.calls.unsettled(), m.calls.total.running, m.cfg.Limits.MaxParallelTools) {
			m.perform(c)
		}
	}
	switch {
	case m.pause && m.onlyWaits():
		m.actions = m.actions[:0]
		m.record(event.RunParked{Reason: event.ParkPaused})
	case len(m.actions) > 0:
	case m.calls.asking():
		m.ask()
	case held != "":
		m.awaitsRaise(held)
	case m.heldChildren() != "":
		m.awaitsRaise(m.heldChildren())
	default:
		m.awaitChildren()
	}
	m.nextChildren()
}

// onlyWaits reports whether all that is due are further attempts whose time has
// not come, and that nothing else is under way and nobody is waited for.
func (m *Machine) onlyWaits() bool {
	return m.calls.total.running == 0 && m.calls.total.waiting == 0 && len(m.actions) > 0 && !slices.ContainsFunc(m.actions, func(a machine.Action) bool {
		run, ok := a.(machine.RunTool)
		return !ok || !run.NotBefore.After(m.run.Now)
	})
}

// resolve asks for the facts about the calls. Nothing is decided about any of
// them before all are known: one of them may show that the answer was cut.
func (m *Machine) resolve() bool {
	if m.calls.total.unresolved == 0 {
		return false
	}
	for _, c := range m.calls.list {
		if c.resolved == nil {
			m.actions = append(m.actions, c.resolve())
		}
	}
	return len(m.actions) > 0
}

// nextSteps decides about the open calls as far as no effect is needed, and
// says which limit holds calls until it is raised, if one does.
func (m *Machine) nextSteps() (held string) {
	kind, why := m.unfit()
	spent, late := m.granted(), m.outOfTime()
	for c := range m.toDecide() {
		stuck, circling := m.circling(c)
		switch {
		case c.result != nil || c.running || c.child != nil:
		case c.orphan && (m.run.Cancel != nil || !m.mayRepeat(c)):
			m.record(m.lost(c))
		case c.retry.undecided:
			m.nextToolRetry(c)
		case c.retry.due() && m.run.Cancel != nil:
			m.record(c.abandoned())
		case c.retry.due() && m.outlasts(c.retry.notBefore) != "":
			m.record(c.retry.failure.Result)
		case m.run.Cancel != nil:
			m.record(c.failed(event.ErrorCancelled, "the run was cancelled before this call ran"))
		case kind != "":
			m.record(c.failed(kind, why))
		case m.run.Overrun != "":
			held = cmp.Or(m.limited(c, m.run.Overrun), held)
		case circling:
			m.block(c, stuck)
		case c.resolved.Problem != nil:
			m.record(m.problem(c))
		case c.verdict == nil && m.beforeTool(c):
		case c.verdict == nil:
			v := m.judge(c)
			if c.attempt == 0 && permits(v.Decision) {
				if setting := m.cfg.Limits.BeforeToolCall(spent); setting != "" {
					held = cmp.Or(m.limited(c, setting), held)
					continue
				}
				spent.ToolCalls++
			}
			m.record(m.decision(c, v))
		case late != "" && permits(c.verdict.Decision) && (c.attempt == 0 || m.asksAt(late)):
			held = cmp.Or(m.limited(c, late), held)
		case unasked(c.verdict.Decision) && m.rules().Met(c.resolved):
			m.record(m.decision(c, m.judge(c)))
		case !permits(c.verdict.Decision):
			m.record(c.failed(event.ErrorDenied, sentence("not permitted", c.verdict.Reason)))
		case c.verdict.Decision == event.DecisionAsk:
			m.nextApproval(c)
		}
	}
	if held != "" {
		m.calls.agenda.looked = 0
	}
	return held
}

// granted is what the run has spent, and has promised to the calls that were
// let through. Hooks and edits bring calls to their decisions in any order.
func (m *Machine) granted() budget.Spent {
	spent := m.run.Spent
	spent.ToolCalls += m.calls.total.granted
	return spent
}

func (m *Machine) decision(c *call, v policy.Verdict) event.PolicyDecision {
	return event.PolicyDecision{
		CallID: c.ref.CallID, Decision: v.Decision, Rule: v.Rule, Reason: v.Reason, Sandbox: v.Sandbox, Digest: c.resolved.Digest,
	}
}

// unfit says why no call of the answer may run, whatever each of them is like:
// half an answer is no instruction.
func (m *Machine) unfit() (event.ErrorType, string) {
	switch f := m.model.response.FinishReason; {
	case m.cut():
		return event.ErrorTruncated, fmt.Sprintf("the answer was cut off after %d output tokens, so none of its calls was run: "+
			"their arguments may be incomplete. Make the call again with smaller arguments", m.model.response.Usage.Output)
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

// cut reports whether the answer was cut off at the output limit. Servers are
// known to call such an answer finished, so the cap and the arguments are looked
// at as well. An estimate, which counts bytes up to what was set aside,
// says nothing of the cap.
func (m *Machine) cut() bool {
	r := m.model.response
	if r.FinishReason == llm.FinishLength {
		return true
	}
	if limit := int64(m.account.maxTokens); limit > 0 && !r.Usage.Estimated && r.Usage.Output >= limit {
		return true
	}
	return m.calls.total.fragments > 0
}

// lost settles a call whose process is gone and that will not run again.
func (m *Machine) lost(c *call) event.ToolResult {
	if c.resolved.Effect == event.EffectPure && m.mayRepeat(c) {
		return c.failed(event.ErrorCancelled, "the run was cancelled after the process had stopped while this call was running")
	}
	why := "its effect class is " + string(c.resolved.Effect)
	switch {
	case m.mayRepeat(c):
		why = "the run was cancelled"
	case c.repeatable():
		why = "what it does cannot be taken back"
	}
	return c.failed(event.ErrorInDoubt, "the process stopped while this call was running, so it is not known "+
		"whether it took effect; it was not repeated because "+why+". Check the state before you call it again")
}

func (c *call) overBudget(setting string) event.ToolResult {
	r := c.failed(event.ErrorBudget, "the run's budget "+setting+" is used up, so this call was not run")
	r.Limit = setting
	return r
}

// perform asks for a call to be made: a tool to run, or an agent to begin.
func (m *Machine) perform(c *call) {
	if c.resolved.Agent {
		m.startChild(c)
		return
	}
	a := m.taskCall(c)
	a.Attempt++
	a.Sandbox, a.NotBefore, a.Retries, a.Spent = c.verdict.Sandbox, c.retry.notBefore, m.mayRetry(c), c.retry.spent
	m.actions = append(m.actions, a)
}

func (m *Machine) results() event.ToolResults {
	refs := make([]event.ResultRef, len(m.calls.list))
	for i, c := range m.calls.list {
		refs[i] = event.ResultRef{CallID: c.ref.CallID, Tool: c.ref.Name, IsError: c.result.IsError}
	}
	return event.ToolResults{Cycle: m.cycle, Results: refs}
}
