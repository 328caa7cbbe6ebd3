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
	index    int
	ref      llm.ToolCall
	resolved *event.ToolCall
	verdict  *event.PolicyDecision
	review
	execution
	repeats repeats
	hooks   callHooks
	result  *event.ToolResult
	// news says that the result was not there before.
	news bool
	// counted is what of the call is in the cycle's counts.
	counted counts
	// undecided says that a step may be before the call.
	undecided bool
	// listed is the question about the call that is among the pending ones.
	listed *event.Question
	// due keeps a child going that is under way. It is asked for again after each event
	// of the others, and to make it each time would take the square of their number.
	due machine.Action
}

// execution is how the attempts at a call, or the run that answers it, have come.
type execution struct {
	attempt int
	running bool
	// orphan: the process that ran the call is gone.
	orphan bool
	retry  retry
	// kept is the task that the attempts wait for, nil for none.
	kept json.RawMessage
	// child is the run that answers the call, nil where none was begun.
	child *tree.Child
}

// repeats is what the watch for repetition knows of a call.
type repeats struct {
	// own is the digest of the call as the model made it.
	own string
	// shown is how many calls the watch is shown up to this one.
	shown int
	// blocked is the decision that the call will not run, because it goes on with
	// what led nowhere.
	blocked *event.Stuck
}

// edit is a replacement of a call's arguments.
type edit struct {
	*event.Resolution
	// before is the call that the editor saw, and asked the hook that wanted it
	// to be decided.
	before *event.ToolCall
	asked  *event.HookResult
	// spent: the editor's approval has been used by an attempt.
	spent bool
}

// given are arguments in the place of the model's: a person's, or a hook's.
type given struct {
	args       json.RawMessage
	by, reason string
}

// review is what people were asked about a call, and what they said.
type review struct {
	// pending is the question about the call, nil for none.
	pending *question.Asked
	// since is the time of the last event about this call.
	since time.Time
	edit  *edit
	given *given
	// form is what the last attempt asks a person for, nil for none; forms counts them.
	form  *question.Asked
	forms int
	// input is the newest answer to a form, which every further attempt gets.
	input *event.FormAnswer
}

// retry is what a call knows of its attempts that failed and may be cured by
// another one (HAR-50, HAR-52 to 60).
type retry struct {
	// count is how many attempts were made because one before them failed. An
	// attempt whose process died is none of them.
	count int
	// spent is how long the failed attempts ran, without the waits between them.
	spent time.Duration
	// failure is the newest attempt's, until the next one begins; undecided says
	// that nothing has followed from it, and notBefore is the end of the wait.
	failure   *event.ToolAttemptFailed
	undecided bool
	notBefore time.Time
}

// start notes an attempt. It uses the approval up: another attempt at a gated
// call needs another decision (HAR-68).
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

// stop notes that the call is not under way any more.
func (x *execution) stop() { x.running, x.orphan, x.retry = false, false, retry{} }

// resume notes that the run was taken up again. A child goes on; what else was
// under way is an orphan, its outcome unknown.
func (c *call) resume(d event.RunResumed) {
	switch {
	case c.openChild():
		c.child.Apply(d)
		c.running = true
	case c.running:
		c.running, c.orphan = false, true
	case c.kept != nil:
		c.retry.notBefore = time.Time{}
	}
}

// unask makes what was asked about the call void.
func (r *review) unask() {
	r.pending.Void()
	r.pending = nil
}

// approval is what was decided about the call, nil while nothing was.
func (r *review) approval() *event.Resolution { return r.pending.Decided() }

// judged takes a decision of policy. What was approved under an earlier one is
// not approved under this one.
func (c *call) judged(d *event.PolicyDecision) {
	c.verdict = d
	c.unask()
}

func (r *retry) started() { *r = retry{count: r.count, spent: r.spent} }

// due reports whether an attempt has failed and the next one has not begun.
func (r *retry) due() bool { return r.failure != nil }

// waits reports whether the call has nothing before it but a person's decision.
func (c *call) waits() bool { return c.result == nil && c.asked() != nil }

// asked is the open question about the call, nil for none.
func (c *call) asked() *event.Question {
	switch {
	case c.form.Open():
		return &c.form.Question
	case c.pending.Open():
		return &c.pending.Question
	}
	return nil
}

// idle reports whether the call has no result, and nothing of it is under way.
func (c *call) idle() bool { return c.result == nil && !c.running && c.child == nil }

// done reports whether nothing about the call is open: it has its result, and the
// hooks behind it have run.
func (c *call) done() bool { return c.result != nil && c.hooks.after.due == nil }

// openChild reports whether the call's child was begun and has no outcome yet.
func (c *call) openChild() bool { return c.child != nil && c.result == nil }

// childWaits reports whether the call's child is under way and waits for a person.
func (c *call) childWaits() bool { return c.running && c.openChild() && c.child.Waiting }

// allowed reports whether nothing stands between the call and its dispatch.
func (c *call) allowed() bool {
	if c.result != nil || c.running || c.child != nil || c.verdict == nil {
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

// approved reports whether a person let the call run, and it has not begun.
func (c *call) approved() bool {
	return c.idle() && c.form == nil && c.kept == nil && c.resolved != nil && c.verdict != nil && c.verdict.Decision == event.DecisionAsk && c.allowed()
}

// changed takes the facts about a call that was approved before a file that it runs
// became another: it is judged anew, and no earlier approval counts, nor an editor's.
func (c *call) changed(d *event.ToolCall) {
	c.resolved = d
	c.judged(nil)
	if c.edit != nil {
		c.edit.spent = true
	}
}

// granted reports whether the call was let through and has not used up its share of
// the tool-call budget yet.
func (c *call) granted() bool {
	return c.result == nil && c.attempt == 0 && c.verdict != nil && permits(c.verdict.Decision)
}

func permits(d event.Decision) bool { return unasked(d) || d == event.DecisionAsk }

// unasked reports whether a call runs without anybody's approval.
func unasked(d event.Decision) bool { return d == event.DecisionAllow || d == event.DecisionSandbox }

// repeatable reports whether the tool declares that to run twice does no harm.
func (c *call) repeatable() bool {
	return c.resolved.Effect == event.EffectPure || c.resolved.Effect == event.EffectIdempotent
}

// final reports whether what the call does cannot be taken back. A tool that only
// reads sends no more than its question.
func (c *call) final() bool {
	return c.resolved.Facts != nil && policy.High(c.resolved.Facts.Risk) && !c.resolved.ReadOnly
}

// failed is the settlement of a call that did not run, or not to its end, in
// the shape that the model sees (ALDO-51, HAR-31, HAR-32).
func (c *call) failed(kind event.ErrorType, message string) event.ToolResult {
	return event.ToolResult{
		CallID: c.ref.CallID, Tool: c.ref.Name, IsError: true, ErrorType: kind,
		Output: ErrorOutput(kind, message),
	}
}

// rejected is the settlement of a call that a person declined (ALDO-61).
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

// ErrorOutput is the text of a structured error, as the model sees it.
func ErrorOutput(kind event.ErrorType, message string) string {
	return `{"error":` + quote(message) + `,"type":"` + string(kind) + `"}`
}

// quote is a JSON string that leaves "<", ">" and "&" as they are: the model
// reads it, no browser does.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // there is no string that JSON cannot say
	return strings.TrimSuffix(b.String(), "\n")
}

func (s *calls) applyChildStarted(r *run, e *event.Event, d event.ChildStarted) error {
	if c := s.touch(d.CallID); c != nil && c.result == nil && (!c.running || c.child != nil) {
		return fmt.Errorf("%w: child %s of %s is not due", ErrMisfit, d.Child, d.CallID)
	}
	return s.onOpen(r, e, d.CallID, func(c *call) { c.child = &tree.Child{ChildStarted: d} })
}

// onChild folds an event about a child that has no outcome yet.
func (s *calls) onChild(r *run, e *event.Event, callID, child string) error {
	if c := s.touch(callID); c != nil && c.result == nil && (c.child == nil || c.child.Child != child || c.child.Outcome != nil) {
		return fmt.Errorf("%w: %s of %s, which is no open child of %s", ErrMisfit, e.Type(), child, callID)
	}
	return s.onOpen(r, e, callID, func(c *call) {
		c.child.Apply(e.Data)
		c.running = c.child.Parked == nil
	})
}

// nextChildren keeps the children going that are under way. After a crash they
// go on where their own journals stand: what was settled there is paid for, so
// such a call is never in doubt.
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
	for _, c := range s.list {
		if c.openChild() {
			call := c.task(r)
			due.add(machine.CancelChild{
				ID: c.ref.CallID, Child: c.child.Child, Call: &call, Reason: sentence("the run that started this one was cancelled", r.Cancel.Reason),
			})
		}
	}
}

// heldChildren names the limit on time that keeps children from going on until
// it is raised, or is empty. Its end parked them.
func (s *calls) heldChildren(r *run) string {
	late := r.outOfTime()
	if r.cfg.asksAt(late) && slices.ContainsFunc(s.list, func(c *call) bool { return c.openChild() && c.child.Parked != nil }) {
		return late
	}
	return ""
}

// awaitChildren parks the run when the rest of its cycle only waits for a
// person: its siblings finish first. A resume wakes the children.
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
