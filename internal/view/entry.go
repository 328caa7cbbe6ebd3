package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// entryFor returns the entry that an event belongs to, creates it if necessary, and
// updates its state. It returns nil for an event that only a note can show.
func (v *View) entryFor(e *event.Event) *Entry {
	v.answers(e)
	switch d := e.Data.(type) {
	case event.CycleStart:
		v.end(v.cycle, e, Done)
		clear(v.waiting)
		v.position, v.cycle = d, v.begin(e, Cycle, nil, Position(d))
		return v.cycle
	case event.ModelRequested, event.ModelRetrying:
		return v.cycle
	case event.ModelResponse:
		return v.answer(e, d)
	case event.ModelAttemptFailed:
		v.spend(v.cycle, e, d.Usage, d.Cost)
		return v.cycle
	case event.ToolResults:
		v.end(v.cycle, e, Done)
		return nil
	case event.ToolCall:
		return v.call(e, d)
	case event.PolicyDecision:
		return v.calls[d.CallID]
	case event.HookResult:
		return v.calls[d.CallID]
	case event.PermissionAdded:
		return v.calls[d.CallID]
	case event.ServerChanged:
		return v.cycle
	case event.ToolStarted:
		return v.calls[d.CallID]
	case event.ToolAttemptFailed:
		return v.calls[d.CallID]
	case event.ToolRetrying:
		return v.calls[d.CallID]
	case event.ToolResult:
		return v.settle(e, d)
	case event.Asking:
		return v.ask(e, d.Question())
	case event.Resolving:
		return v.resolve(e, d.Resolution())
	}
	if n, is := v.entryForChild(e); is {
		return n
	}
	return v.entryForStep(e)
}

// answer handles an answer of the model, which ends its cycle if it has no calls.
func (v *View) answer(e *event.Event, d event.ModelResponse) *Entry {
	v.spend(v.cycle, e, d.Usage, d.Cost)
	if v.cycle == nil || d.Purpose != "" {
		return v.cycle
	}
	if text := llm.Parts(d.Parts).Text(); strings.TrimSpace(text) != "" {
		v.cycle.Line = firstLine(text, lineWidth)
	}
	if len(d.ToolCalls) == 0 {
		v.end(v.cycle, e, Done)
	}
	return v.cycle
}

// call handles a call of the cycle, or one whose arguments a person changed.
func (v *View) call(e *event.Event, d event.ToolCall) *Entry {
	v.open[d.CallID] = d
	n := v.calls[d.CallID]
	if n == nil {
		n = v.begin(e, Call, v.cycle, "")
		n.Ref, v.calls[d.CallID] = d.CallID, n
		if v.cycle != nil && v.cycle.Line == "" {
			v.cycle.Line = firstLine(Label(d), lineWidth)
		}
	}
	n.Name = firstLine(Label(d), 100)
	return n
}

// settle handles the result of a call.
func (v *View) settle(e *event.Event, d event.ToolResult) *Entry {
	delete(v.open, d.CallID)
	n := v.calls[d.CallID]
	if n == nil {
		return nil
	}
	state, line := Done, d.Output
	if d.IsError {
		state, line = Failed, Complaint(d.Output)
	}
	switch d.ErrorType {
	case event.ErrorRejected, event.ErrorExpired:
		state = Rejected
	case event.ErrorDenied:
		state = Denied
	case event.ErrorCancelled, event.ErrorNotStarted:
		state = Cancelled
	}
	n.Line = firstLine(line, lineWidth)
	v.end(n, e, state)
	return n
}

// entryForChild is [View.entryFor] for events about child runs; it reports whether the
// event is one.
func (v *View) entryForChild(e *event.Event) (n *Entry, is bool) {
	switch d := e.Data.(type) {
	case event.ChildStarted:
		return v.child(e, d), true
	case event.ChildParked:
		n = v.waits(e, d.Child, true, &d)
	case event.ChildWaiting:
		n = v.waits(e, d.Child, d.Waiting, nil)
	case event.ChildFinished:
		return v.childEnded(e, d), true
	case event.RunResumed:
		for _, c := range slices.Clone(v.parked) {
			v.waits(e, c.Run, false, nil)
		}
		return nil, true
	case event.BudgetCommitted:
		v.paid(e, d)
		return nil, true
	case event.JudgeVerdict:
		c := v.runs[d.Child]
		if c == nil {
			return nil, false
		}
		if n = c.entry; d.Failed && n.State == Done {
			v.again(n, e)
			v.end(n, e, Failed)
		}
		n.Line = firstLine(judgeSaid(d), lineWidth)
	default:
		return nil, false
	}
	return n, true
}

func errorOf(f *event.Failure) string {
	if f == nil {
		return ""
	}
	return f.Message
}

// entryForStep is [View.entryFor] for events about the steps of a workflow.
func (v *View) entryForStep(e *event.Event) *Entry {
	switch d := e.Data.(type) {
	case event.StepStarted:
		return v.started(e, d)
	case event.CommandStarted:
		if DoesStep(d.ID) {
			n := v.step(e, d.Step)
			v.name(n, strings.Join(d.Argv, " "))
			return n
		}
	case event.CommandFinished:
		if DoesStep(d.ID) {
			return v.step(e, d.Step)
		}
	case event.StepSkipped:
		n := v.step(e, d.Step)
		v.name(n, d.Reason)
		v.end(n, e, Skip)
		return n
	case event.StepFinished:
		return v.finished(e, d)
	case event.Iteration:
		return v.passed(e, d)
	case event.Progress:
		if n := v.steps[v.passOf(d.Step, d.Number-1)]; n != nil {
			v.name(n, d.Learning)
			return n
		}
	}
	return nil
}

// name sets the first line of an entry unless the text is empty.
func (v *View) name(n *Entry, text string) {
	if n != nil && text != "" {
		n.Line = firstLine(text, lineWidth)
	}
}

// step returns the entry of a step or a pass, and creates it at the first event about
// it. A run that is a single loop has no entry for the loop, because its own entry
// represents it.
func (v *View) step(e *event.Event, id string) *Entry {
	if n := v.steps[id]; n != nil || id == "" {
		return n
	}
	loop, index := v.pass(id)
	if loop == nil {
		if v.Steps.Ledger != nil && above(id) == "" {
			return nil
		}
		n := v.begin(e, Step, v.step(e, v.within(id)), firstLine(id, 100))
		n.Ref, v.steps[id] = id, n
		return n
	}
	n := v.begin(e, Iteration, v.step(e, loop.Step), v.numbered(loop, index))
	n.Ref, v.steps[id], v.steps[loop.Step+passes] = id, n, n
	return n
}

// within returns the step or the pass that contains a step, "" for a step of the run's
// own plan.
func (v *View) within(id string) string {
	for id = above(id); id != ""; id = above(id) {
		if loop, _ := v.pass(id); loop != nil || v.Steps.byID[id] != nil || v.steps[id] != nil {
			return id
		}
	}
	return ""
}

// pass returns the loop and the index of the pass with an id, nil if the id is not a
// pass's.
func (v *View) pass(id string) (loop *StepLine, index int) {
	of := above(id)
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimLeft(id[len(of):], ".["), "]"))
	if err != nil || of == "" {
		return nil, 0
	}
	if l := v.Steps.byID[of]; l != nil && l.loop != nil {
		return l, n
	}
	// A loop within a loop has no line, but its passes are numbered.
	return &StepLine{Step: of}, n
}

// passOf returns the id of a pass by its index.
func (v *View) passOf(loop string, index int) string {
	if id := fmt.Sprintf("%s[%d]", loop, index); v.steps[id] != nil {
		return id
	}
	return fmt.Sprintf("%s.%d", loop, index)
}

// numbered returns the name of a pass.
func (v *View) numbered(loop *StepLine, index int) string {
	what, of := "iteration", loop.Of
	if loop.loop != nil && loop.loop.Items != nil {
		what = "item"
	} else if of == 0 && loop.loop != nil {
		of = loop.loop.Max
	}
	if of == 0 {
		return fmt.Sprintf("%s %d", what, index+1)
	}
	return fmt.Sprintf("%s %d/%d", what, index+1, of)
}

// started handles the start of an attempt at a step.
func (v *View) started(e *event.Event, d event.StepStarted) *Entry {
	n := v.step(e, d.Step)
	if n == nil {
		return nil
	}
	if d.Attempt > 1 {
		v.again(n, e)
		n.Name = fmt.Sprintf("%s, attempt %d", firstLine(d.Step, 100), d.Attempt)
	}
	if d.Child != "" {
		v.childOf(d.Child, n)
	}
	return n
}

// finished handles the end of an attempt at a step. A step may have failed although its
// run completed.
func (v *View) finished(e *event.Event, d event.StepFinished) *Entry {
	n := v.step(e, d.Step)
	if n == nil {
		return nil
	}
	v.name(n, cmp.Or(errorOf(d.Error), d.Content))
	state := map[event.StepStatus]State{
		event.StepStatusCompleted: Done, event.StepStatusFailed: Failed, event.StepStatusSkipped: Skip, event.StepStatusCancelled: Cancelled,
	}[d.Status]
	if !n.open() && n.State != state {
		line := n.Line
		v.again(n, e)
		n.Line = line
	}
	v.end(n, e, state)
	return n
}

// passed handles the end of a pass.
func (v *View) passed(e *event.Event, d event.Iteration) *Entry {
	n := v.step(e, v.passOf(d.Step, d.Index))
	if n == nil {
		return nil
	}
	v.name(n, d.Output)
	if l := v.Steps.byID[d.Step]; l != nil {
		n.Name = v.numbered(l, d.Index)
	}
	state := Done
	if n.Failures > 0 {
		state = Failed
	}
	v.end(n, e, state)
	return n
}
