package tree

import (
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/question"
)

// ErrMisfit is returned for an event that cannot follow the ones before it.
var ErrMisfit = errors.New("tree: event does not fit the run")

// Run is the state of a run that calls no model itself: it starts children, runs
// programs, waits and evaluates expressions. A machine embeds it. The machine's Next
// makes its own decisions only when [Run.Due] allows more.
type Run struct {
	Base
	// Limits apply to the run and all runs below it. The embedding machine sets them
	// from its first event.
	Limits budget.Limits
	// OnBudget maps a limit's name to the action when it is reached. A limit that it
	// omits stops the run.
	OnBudget map[string]OnBudget

	children children
	commands commands
	// questions are the run's questions to people. stops is a question that expired and
	// so ends the run.
	questions question.List
	stops     *event.Question
	waits     map[string]*wait
	values    map[string]event.ConditionEvaluated
}

type wait struct {
	until time.Time
	over  bool
}

// Apply folds one event. An unknown event changes nothing.
func (r *Run) Apply(e *event.Event) error {
	if r.Outcome != nil {
		return fmt.Errorf("%w: %s after the run has ended", ErrMisfit, e.Type())
	}
	if _, first := e.Data.(event.RunStarted); first == (r.ID != "") {
		return fmt.Errorf("%w: %s", ErrMisfit, e.Type())
	}
	r.Fold(e, r.asking())
	switch d := e.Data.(type) {
	case event.RunForked:
		r.forked()
	case event.RunResumed:
		r.children.resume()
		r.commands.resume()
	case event.ChildStarted:
		r.children.add(d)
	case event.ChildParked:
		return r.onChild(e, d.Child)
	case event.ChildWaiting:
		return r.onChild(e, d.Child)
	case event.ChildFinished:
		r.Taint = r.Taint.With(d.Taint)
		return r.onChild(e, d.Child)
	case event.WaitStarted:
		if r.waits == nil {
			r.waits = map[string]*wait{}
		}
		r.waits[d.ID] = &wait{until: d.Until}
	case event.WaitFinished:
		if w := r.waits[d.ID]; w == nil || w.over {
			return fmt.Errorf("%w: the wait %s is not open", ErrMisfit, d.ID)
		}
		r.waits[d.ID].over = true
	case event.PolicyDecision:
		return r.applyCommand(e, d.CallID)
	case event.CommandStarted:
		return r.applyCommand(e, d.ID)
	case event.CommandFinished:
		return r.applyCommand(e, d.ID)
	case event.ConditionEvaluated:
		if r.values == nil {
			r.values = map[string]event.ConditionEvaluated{}
		}
		r.values[d.ID] = d
	case event.Asking, event.Resolving, event.InputReceived:
		r.noteQuestion(d)
	case event.BudgetReserved:
		return r.Reserve(d)
	case event.BudgetCommitted:
		return r.used(d)
	case event.BudgetRaised:
		if err := r.Limits.Set(d.Setting, d.Value); err == nil {
			r.Overrun = ""
		}
	}
	return nil
}

// forked turns another run's state into the start of a new run. It drops the other
// run's spending, pending requests and open children.
func (r *Run) forked() {
	r.Account, r.Parked, r.Cancel, r.stops = Account{}, nil, nil, nil
	r.children.forget()
}

// noteQuestion folds a question or a decision about one.
func (r *Run) noteQuestion(d event.Data) {
	r.questions.Apply(d)
	if d, ok := d.(event.Resolving); ok && r.stops == nil {
		a := r.questions.Of(d.Resolution().ID)
		if by := a.Decided(); by != nil && by.Kind == event.ApprovalExpired && a.OnExpiry == event.ExpiryStops {
			r.stops = &a.Question
		}
	}
}

// onChild folds an event about a child. A parked child that continues becomes
// due.
func (r *Run) onChild(e *event.Event, id string) error {
	c := r.children.open[id]
	if c == nil {
		return fmt.Errorf("%w: %s of %s, which is no open child", ErrMisfit, e.Type(), id)
	}
	before := c.Parked
	r.children.change(c, e.Data)
	switch {
	case c.Outcome != nil:
		delete(r.children.open, id)
	case before != nil && c.Parked == nil:
		r.children.wants(c)
	}
	return nil
}

func (r *Run) used(d event.BudgetCommitted) error {
	exceeded, err := r.Commit(d, r.Limits)
	if w, over := r.Limits.Overrun(r.Account.Spent); exceeded && over {
		r.Overrun = w.Setting
	}
	return err
}

// asking reports whether the run only waits for a person.
func (r *Run) asking() bool {
	c := &r.children
	return (c.waiting > 0 || r.questions.Asks()) && c.waiting+c.parked == len(c.open) && r.commands.running == 0
}

// Admit implements [machine.Funder].
func (r *Run) Admit(c budget.Call, asked budget.Amount) machine.Grant {
	return r.Account.Admit(c, r.Limits, asked, r.asks)
}

// Spent implements [machine.Spending].
func (r *Run) Spent() budget.Spent { return r.Account.Spent }

// State implements [machine.Machine].
func (r *Run) State() machine.State {
	s := r.Base.State(r.asking())
	s.Pending = r.questions.Open()
	if !s.Asking {
		s.Deadline = r.Deadline(r.Limits)
		s.Deadline.Asks = r.asks(s.Deadline.Setting)
	}
	return s
}

// Value returns the value of an evaluation, and whether it is known.
func (r *Run) Value(id string) (event.ConditionEvaluated, bool) {
	v, ok := r.values[id]
	return v, ok
}

// Finished returns how a child ended, nil before it has.
func (r *Run) Finished(id string) *event.Outcome {
	if c := r.children.byID[id]; c != nil {
		return c.Outcome
	}
	return nil
}

// Forget removes the id and the outcome of a child or command that has ended.
func (r *Run) Forget(id string) {
	if r.Ran(id) != nil {
		delete(r.commands.byID, id)
	}
	if r.Finished(id) != nil {
		delete(r.children.byID, id)
	}
}

// Stop ends a child that is under way.
func (r *Run) Stop(id, reason string) {
	if c := r.children.byID[id]; c != nil && c.Outcome == nil {
		c.stop = reason
		r.children.wants(c)
	}
}

// AllParked reports whether the run has children and each of them waits for a
// person.
func (r *Run) AllParked() bool {
	c := &r.children
	return c.parked > 0 && c.parked == len(c.open)
}

// Open returns the number of children without an outcome plus the number of running
// commands.
func (r *Run) Open() int { return len(r.children.open) + r.commands.running }

// Answer returns the decision about the last question with an id, or nil. An expired
// question has the decision [event.ApprovalExpired].
func (r *Run) Answer(id string) *event.Resolution { return r.questions.Of(id).Decided() }

// Ask asks a person a question, unless a question with the same id and digest was asked
// before.
func (r *Run) Ask(d event.Asking) []machine.Action {
	q := d.Question()
	if a := r.questions.Of(q.ID); a != nil && a.Digest == q.Digest {
		return nil
	}
	return []machine.Action{machine.Record{Data: d}}
}

// Start starts a child unless it has started.
func (r *Run) Start(a machine.StartChild) []machine.Action {
	if r.children.byID[a.ID] != nil {
		return nil
	}
	a.Taint = r.Taint
	return []machine.Action{a}
}

// Until waits until a time. A wait that has started keeps its original time.
func (r *Run) Until(id string, at time.Time) []machine.Action {
	w := r.waits[id]
	switch {
	case w == nil:
		return []machine.Action{machine.Wait{ID: id, Until: at}}
	case w.over:
		return nil
	}
	return []machine.Action{machine.Wait{ID: id, Until: w.until, Begun: true}}
}

// End ends the run.
func (r *Run) End(d event.RunTerminatedBy) []machine.Action {
	return []machine.Action{machine.Record{Data: d}}
}

// Due returns the actions that precede the embedding machine's own decisions: the end
// of a run that was cancelled or is out of time, and due actions for children. If more
// is true, the machine adds its own actions.
func (r *Run) Due() (actions []machine.Action, more bool) {
	late := r.Limits.OutOfTime(r.Account.Spent)
	switch {
	case r.Parked != nil || r.Outcome != nil:
		return nil, false
	case r.commands.cutOff() && (r.Terminated != nil || r.Cancel != nil || late != ""):
		return r.commands.lost(), false
	case r.Terminated != nil && r.Open() == 0:
		return []machine.Action{machine.Record{Data: event.RunCompleted{Outcome: r.Conclude()}}}, false
	case r.Cancel != nil && r.questions.Asks():
		return r.withdraw(), false
	case (r.Cancel != nil || r.stops != nil) && r.Open() > 0:
		return r.cancelled(), false
	case r.Cancel != nil:
		return r.End(event.RunTerminatedBy{Reason: event.ReasonCancelled, Detail: r.Cancel.Reason}), false
	case r.stops != nil:
		return r.End(event.RunTerminatedBy{Reason: event.ReasonRejected, Detail: "nobody decided about " + r.stops.ID + " in time"}), false
	case r.parksAt(late) != "":
		return []machine.Action{machine.Record{Data: ParkAt(late, late+" is used up", 0)}}, false
	case late != "" && r.asks(late):
		return r.children.actions(), false // the children park, because the time is used up
	case r.Open() == 0 && late != "":
		return r.End(event.RunTerminatedBy{Reason: event.BudgetReason(late), Limit: late}), false
	}
	return r.children.actions(), true
}

// OrPark completes the actions of a run. It asks the pending questions, and parks the
// run if nothing is due, all its children wait for a person, and no command is running.
func (r *Run) OrPark(due []machine.Action) []machine.Action {
	if r.Parked != nil || r.Outcome != nil || r.Terminated != nil || r.Cancel != nil || r.stops != nil {
		return due
	}
	idle := len(due) == 0 && r.children.parked == len(r.children.open) && r.commands.running == 0
	switch open := r.questions.Open(); {
	case len(open) > 0 && idle:
		return []machine.Action{machine.Ask{Questions: open}}
	case len(open) > 0:
		return append(due, machine.Ask{Questions: open, Unanswered: machine.UnansweredWait})
	case !idle || !r.AllParked():
		return due
	}
	return []machine.Action{machine.Record{Data: Park(r.ID, r.children.halted())}}
}

// withdraw withdraws all pending questions because the run was cancelled.
func (r *Run) withdraw() (actions []machine.Action) {
	for _, q := range r.questions.Open() {
		actions = append(actions, machine.Record{Data: q.Resolve(event.Resolution{
			Kind: event.ApprovalCancelled, Approver: r.Cancel.By, Reason: r.Cancel.Reason, At: r.Now, Principal: r.Cancel.Principal,
		})})
	}
	return actions
}

// Withdraw withdraws the question with an id.
func (r *Run) Withdraw(id, reason string) []machine.Action {
	asked := r.questions.Of(id)
	if !asked.Open() {
		return nil
	}
	return []machine.Action{machine.Record{Data: asked.Resolve(event.Resolution{Kind: event.ApprovalCancelled, Reason: reason, At: r.Now})}}
}

func (r *Run) cancelled() (actions []machine.Action) {
	for _, c := range r.children.order {
		if c.Outcome == nil {
			actions = append(actions, c.cancel())
		}
	}
	return actions
}

// Conclude returns the outcome of a run whose end is recorded.
func (r *Run) Conclude() event.Outcome {
	o := event.Outcome{
		Status: event.StatusFailed, Reason: r.Terminated.Reason, Limit: r.Terminated.Limit, LimitRun: r.Terminated.LimitRun, Kind: r.Terminated.Kind, Index: r.Terminated.Index, Error: r.Terminated.Error, Step: r.Terminated.Step, AtIteration: r.Terminated.AtIteration,
		FinalOutput: r.Terminated.Output, LastOutput: r.Terminated.Output, Usage: r.Costs.Usage(),
	}
	if r.Costs.Calls() > 0 {
		cost := r.Costs.Cost()
		o.Cost = &cost
	}
	switch {
	case r.Terminated.Reason == event.ReasonFinalAnswer, r.Terminated.Reason == event.ReasonConditionMet:
		o.Status, o.OK, o.Completed = event.StatusCompleted, true, true
	case r.Terminated.Reason == event.ReasonCancelled:
		o.Status = event.StatusCancelled
	case r.Terminated.Reason == event.ReasonStuck:
		o.Status = event.StatusStopped
	case r.Terminated.Limit != "":
		o.Status, o.OK = event.StatusStopped, r.OnBudget[r.Terminated.Limit] == BudgetOK
	}
	return o
}

// Bounds returns the current limits of the run.
func (r *Run) Bounds() budget.Limits { return r.Limits }
