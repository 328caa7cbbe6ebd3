package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/internal/rules/question"
	"github.com/pawlrun/pawl/llm"
)

// call is one tool call of the current cycle, from request to settlement.
type call struct {
	index int
	ref   llm.ToolCall
	// said is the tool by which the model called the one of ref, empty if the model
	// called that one directly.
	said     string
	resolved *event.ToolCall
	verdict  *event.PolicyDecision
	review
	execution
	repeats repeats
	hooks   callHooks
	result  *event.ToolResult
	// news reports whether the result is new.
	news bool
	// counted is the call's share of the cycle's counts.
	counted counts
	// undecided reports whether the call may have a step.
	undecided bool
	// listed is the call's entry among the pending questions.
	listed *event.Question
	// due is the action that keeps the call's child running. It is requested again
	// after each event of other calls, and building it each time would cost the square
	// of their number.
	due machine.Action
}

// execution is the state of the attempts at a call, or of the run that answers it.
type execution struct {
	attempt int
	running bool
	// orphan reports whether the process that ran the call is gone.
	orphan bool
	// deaths counts the processes that died during the call's attempts since the last
	// attempt that ended.
	deaths int
	retry  retry
	// kept is the task that the attempts wait for, nil for none.
	kept json.RawMessage
	// child is the run that answers the call, nil if none has started.
	child *tree.Child
	// asked are the open runs that the tool of the call asked for. Nothing else happens
	// to a call that is not under way until they have ended.
	asked []*tree.Child
}

// edit is a replacement of a call's arguments.
type edit struct {
	*event.Resolution
	// before is the call that the editor saw, and asked the hook that requested a
	// decision.
	before *event.ToolCall
	asked  *event.HookResult
	// spent reports whether an attempt has used the editor's approval.
	spent bool
}

// given are arguments that replace the model's: a person's, or a hook's.
type given struct {
	args       json.RawMessage
	by, reason string
}

// review holds the questions to people about a call, and their answers.
type review struct {
	// pending is the question about the call, nil for none.
	pending *question.Exchange
	// since is the time of the last event about this call.
	since time.Time
	edit  *edit
	given *given
	// form is what the last attempt asks a person for, nil for none; forms counts them.
	form  *question.Exchange
	forms int
	// input is the newest answer to a form, which every further attempt gets.
	input *event.FormAnswer
}

// start notes an attempt. It uses the approval: another attempt at a gated call needs
// another decision.
func (c *call) start(attempt int) {
	c.execution.start(attempt)
	c.unask()
	c.form.Void()
	c.form = nil
	if c.edit != nil {
		c.edit.spent = true
	}
}

func (x *execution) start(attempt int) {
	x.attempt, x.running, x.orphan = attempt, true, false
	x.retry.started()
}

// stop notes that the call is no longer under way.
func (x *execution) stop() { x.running, x.orphan, x.retry = false, false, retry{} }

// resume notes that the run was resumed. A child continues; everything else that was
// under way is an orphan with an unknown outcome.
func (c *call) resume(d event.RunResumed) {
	for _, x := range c.asked {
		x.Apply(d)
	}
	switch {
	case c.openChild():
		c.child.Apply(d)
		c.running = true
	case c.running:
		c.running, c.orphan = false, true
		c.deaths++
	case c.kept != nil:
		c.retry.notBefore = time.Time{}
	}
}

// unask withdraws the question about the call.
func (r *review) unask() {
	r.pending.Void()
	r.pending = nil
}

// approval is the decision about the call, nil while there is none.
func (r *review) approval() *event.Resolution { return r.pending.Decided() }

// judged folds a policy decision. An approval under an earlier decision does not count
// for this one.
func (c *call) judged(d *event.PolicyDecision) {
	c.verdict = d
	c.unask()
}

// waits reports whether only a person's decision is missing.
func (c *call) waits() bool { return c.result == nil && c.openQuestion() != nil }

// openQuestion is the open question about the call, nil for none.
func (c *call) openQuestion() *event.Question {
	switch {
	case c.form.Open():
		return &c.form.Question
	case c.pending.Open():
		return &c.pending.Question
	}
	return nil
}

// idle reports whether the call has no result and nothing of it is under way.
func (c *call) idle() bool {
	return c.result == nil && !c.running && c.child == nil && len(c.asked) == 0
}

// done reports whether nothing about the call is open: it has its result, the runs that
// its tool asked for have ended, and the hooks after it have run.
func (c *call) done() bool {
	return c.result != nil && c.hooks.after.due == nil && len(c.asked) == 0
}

// works reports whether a process works on the call, or on a run that its tool asked for.
func (c *call) works() bool { return c.running || len(c.asked) > 0 }

// openChild reports whether the call's child has started and has no outcome yet.
func (c *call) openChild() bool { return c.child != nil && c.result == nil }

// childWaits reports whether the call's child is under way and waits for a person.
func (c *call) childWaits() bool { return c.running && c.openChild() && c.child.Waiting }

// allowed reports whether nothing prevents the call's dispatch.
func (c *call) allowed() bool {
	if !c.idle() || c.verdict == nil {
		return false
	}
	switch d := c.verdict.Decision; {
	case c.form != nil: // the attempt that gets the answer needs no other decision
		return c.form.Decided() != nil && c.form.Resolution.Kind != event.ApprovalExpired
	case c.kept != nil, unasked(d):
		return true
	case d == event.DecisionAsk:
		return c.approval() != nil && c.approval().Kind == event.ApprovalApproved
	}
	return false
}

// approved reports whether a person approved the call and it has not begun.
func (c *call) approved() bool {
	return c.idle() && c.form == nil && c.kept == nil && c.resolved != nil && c.verdict != nil && c.verdict.Decision == event.DecisionAsk && c.allowed()
}

// changed folds new facts about an approved call after a file that it runs has changed:
// it is judged anew, and earlier approvals, including an editor's, do not count.
func (c *call) changed(d *event.ToolCall) {
	c.resolved = d
	c.judged(nil)
	if c.edit != nil {
		c.edit.spent = true
	}
}

// granted reports whether the call was allowed and has not used its share of the
// tool-call budget yet.
func (c *call) granted() bool {
	return c.result == nil && c.attempt == 0 && c.verdict != nil && permits(c.verdict.Decision)
}

func permits(d event.Decision) bool { return unasked(d) || d == event.DecisionAsk }

// unasked reports whether a call runs without an approval.
func unasked(d event.Decision) bool { return d == event.DecisionAllow || d == event.DecisionSandbox }

// repeatable reports whether the tool declares that running twice is harmless.
func (c *call) repeatable() bool {
	return c.resolved.Effect == event.EffectPure || c.resolved.Effect == event.EffectIdempotent
}

// final reports whether the call's effect is irreversible. A tool that only reads sends
// no more than its question.
func (c *call) final() bool {
	return c.resolved.Facts != nil && policy.High(c.resolved.Facts.Risk) && !c.resolved.ReadOnly
}

// failed is the settlement of a call that did not run, or not to its end, in the form
// that the model sees.
func (c *call) failed(kind event.ErrorType, message string) event.ToolResult {
	return event.ToolResult{
		CallID: c.ref.CallID, Tool: c.ref.Name, IsError: true, ErrorType: kind,
		Output: ErrorOutput(kind, message),
	}
}

// rejected is the settlement of a call that a person rejected.
func (c *call) rejected(kind event.ErrorType, reason string) event.ToolResult {
	return event.ToolResult{
		CallID: c.ref.CallID, Tool: c.ref.Name, IsError: true, ErrorType: kind,
		Output: `{"rejected":true,"reason":` + quote(reason) + `}`,
	}
}

func (c *call) overBudget(setting string) event.ToolResult {
	r := c.failed(event.ErrorBudget, "the run's budget "+setting+" is used up, so this call was not run")
	r.Limit = setting
	return r
}

// ErrorOutput returns the text of a structured error, as the model sees it.
func ErrorOutput(kind event.ErrorType, message string) string {
	return `{"error":` + quote(message) + `,"type":"` + string(kind) + `"}`
}

// quote returns a JSON string that leaves "<", ">" and "&" as they are, because its
// reader is the model, not a browser.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // JSON can encode every string
	return strings.TrimSuffix(b.String(), "\n")
}

func (s *calls) applyChildStarted(r *run, e *event.Event, d event.ChildStarted) error {
	if d.During != "" {
		return s.onOpen(r, e, d.During, func(c *call) { c.asked = append(c.asked, &tree.Child{ChildStarted: d}) })
	}
	if c := s.touch(d.CallID); c != nil && c.result == nil && (!c.running || c.child != nil) {
		return fmt.Errorf("%w: child %s of %s is not due", ErrMisfit, d.Child, d.CallID)
	}
	return s.onOpen(r, e, d.CallID, func(c *call) { c.child = &tree.Child{ChildStarted: d} })
}

// onChild folds an event about a child that has no outcome yet.
func (s *calls) onChild(r *run, e *event.Event, callID, child string) error {
	if callID == "" && s.onAsked(e, child) {
		return nil
	}
	if c := s.touch(callID); c != nil && c.result == nil && (c.child == nil || c.child.Child != child || c.child.Outcome != nil) {
		return fmt.Errorf("%w: %s of %s, which is no open child of %s", ErrMisfit, e.Type(), child, callID)
	}
	return s.onOpen(r, e, callID, func(c *call) {
		c.child.Apply(e.Data)
		c.running = c.child.Parked == nil
	})
}

// onAsked folds an event about a run that the tool of a call asked for, and reports
// whether the child is one.
func (s *calls) onAsked(e *event.Event, child string) bool {
	for _, c := range s.unsettled() {
		for i, x := range c.asked {
			if x.Child != child {
				continue
			}
			if x.Apply(e.Data); x.Outcome != nil {
				c.asked = slices.Delete(c.asked, i, i+1)
			}
			s.touched = append(s.touched, c)
			return true
		}
	}
	return false
}

// endAsked ends the runs that a tool asked for and does not wait for any more: its
// attempt has ended, or they wait for a person, for whom a tool cannot wait.
func (s *calls) endAsked(due *actions, all bool, reason string) {
	if s.total.asked == 0 {
		return
	}
	for _, c := range s.unsettled() {
		for _, x := range c.asked {
			if all || !c.running || x.Parked != nil {
				due.add(machine.CancelChild{ID: x.Action(), Child: x.Child, Reason: reason})
			}
		}
	}
}

// nextChildren keeps the started children running. After a crash they continue from
// their own journals: what was settled there is paid for, so such a call is never in
// doubt.
func (s *calls) nextChildren(due *actions) {
	if s.total.children == 0 {
		return
	}
	for _, c := range s.unsettled() {
		if c.due != nil {
			due.add(c.due)
		}
	}
}

// endChildren ends the children of a run that was cancelled.
func (s *calls) endChildren(r *run, due *actions) {
	s.endAsked(due, true, sentence("the run that started this one was cancelled", r.Cancel.Reason))
	for _, c := range s.list {
		if c.openChild() {
			call := c.task(r)
			due.add(machine.CancelChild{
				ID: c.ref.CallID, Child: c.child.Child, Call: &call, Reason: sentence("the run that started this one was cancelled", r.Cancel.Reason),
			})
		}
	}
}

// heldChildren names the limit on time whose end parked the children, which keeps them
// parked until it is raised, or is empty.
func (s *calls) heldChildren(r *run) string {
	late := r.outOfTime()
	if r.cfg.asksAt(late) && slices.ContainsFunc(s.list, func(c *call) bool { return c.openChild() && c.child.Parked != nil }) {
		return late
	}
	return ""
}

// awaitChildren parks the run when the rest of its cycle waits only for a person: other
// children finish first. A resume wakes the children.
func (s *calls) awaitChildren(run string) machine.Action {
	if s.total.children == 0 || s.total.running > 0 {
		return nil
	}
	var parked []tree.Parked
	for _, c := range s.unsettled() {
		if c.openChild() && c.child.Parked != nil {
			parked = append(parked, tree.Parked{Name: c.ref.Name, ChildParked: c.child.Parked})
		}
	}
	if len(parked) == 0 {
		return nil
	}
	return record(tree.Park(run, parked))
}
