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

// ErrMisfit is returned for an event that cannot follow on those before it.
var ErrMisfit = errors.New("tree: event does not fit the run")

// Run is the state of a run that calls no model itself: what it does is to start
// others, to run programs, to wait and to evaluate. A machine embeds it, and decides in its own Next
// what is to be done once [Run.Due] has nothing before that.
type Run struct {
	Base
	// Limits bound the run and all below it. The machine that embeds the run sets
	// them by its first event.
	Limits budget.Limits
	// OnBudget says what reaching a limit means, by the limit's name; a limit that is
	// not in it stops the run.
	OnBudget map[string]OnBudget

	children children
	commands commands
	// questions are what it asked people; stops is one that ends the run because
	// nobody decided in time.
	questions question.List
	stops     *event.Question
	waits     map[string]*wait
	values    map[string]event.ConditionEvaluated
}

type wait struct {
	until time.Time
	over  bool
}

var (
	_ machine.Funder   = (*embedded)(nil)
	_ machine.Spending = (*embedded)(nil)
)

// embedded is the least that a machine adds.
type embedded struct{ Run }

func (*embedded) Next() []machine.Action { return nil }

// Apply folds one event; those that the run knows nothing of change nothing.
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
		r.asked(d)
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

// forked goes on from another run's events as a run of its own. What that run spent
// is not this one's, and what somebody asked of it neither. The children that had
// not ended are that run's.
func (r *Run) forked() {
	r.Account, r.Parked, r.Cancel, r.stops = Account{}, nil, nil, nil
	r.children.forget()
}

// asked takes in a question, or what was decided about one.
func (r *Run) asked(d event.Data) {
	r.questions.Apply(d)
	if d, ok := d.(event.Resolving); ok && r.stops == nil {
		a := r.questions.Of(d.Resolution().ID)
		if by := a.Decided(); by != nil && by.Kind == event.ApprovalExpired && a.OnExpiry == event.ExpiryStops {
			r.stops = &a.Question
		}
	}
}

// onChild folds an event about a child. One that had parked and goes on is taken up
// again.
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

// asking reports whether the run has nothing to do but wait for a person.
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

// State says where the run stands.
func (r *Run) State() machine.State {
	s := r.Base.State(r.asking())
	s.Pending = r.questions.Open()
	if !s.Asking {
		s.Deadline = r.Deadline(r.Limits)
		s.Deadline.Asks = r.asks(s.Deadline.Setting)
	}
	return s
}

// Value is what an evaluation gave, and whether it is there.
func (r *Run) Value(id string) (event.ConditionEvaluated, bool) {
	v, ok := r.values[id]
	return v, ok
}

// Finished is how a child ended, nil while it has not.
func (r *Run) Finished(id string) *event.Outcome {
	if c := r.children.byID[id]; c != nil {
		return c.Outcome
	}
	return nil
}

// Forget drops what is kept of a child or a command that has ended: its id and its
// outcome.
func (r *Run) Forget(id string) {
	if r.Ran(id) != nil {
		delete(r.commands.byID, id)
	}
	if r.Finished(id) != nil {
		delete(r.children.byID, id)
	}
}

// Stop has a child ended that is under way, and reports whether there is one.
func (r *Run) Stop(id, reason string) bool {
	c := r.children.byID[id]
	if c == nil || c.Outcome != nil {
		return false
	}
	c.stop = reason
	r.children.wants(c)
	return true
}

// AllParked reports whether the run has children, and each of them waits for
// somebody.
func (r *Run) AllParked() bool {
	c := &r.children
	return c.parked > 0 && c.parked == len(c.open)
}

// Open is how many children have no outcome, and how many commands run.
func (r *Run) Open() int { return len(r.children.open) + r.commands.running }

// Answer is what was decided about the last question under an id, nil while nothing
// was. Of one that is [event.ApprovalExpired] nobody decided in time.
func (r *Run) Answer(id string) *event.Resolution { return r.questions.Of(id).Decided() }

// Ask asks a person, unless the same was asked: under that id, and with that digest.
func (r *Run) Ask(d event.Asking) []machine.Action {
	q := d.Question()
	if a := r.questions.Of(q.ID); a != nil && a.Digest == q.Digest {
		return nil
	}
	return []machine.Action{machine.Record{Data: d}}
}

// Start asks for a child, unless it was begun.
func (r *Run) Start(a machine.StartChild) []machine.Action {
	if r.children.byID[a.ID] != nil {
		return nil
	}
	a.Taint = r.Taint
	return []machine.Action{a}
}

// Until asks for a moment to come, which was chosen when the wait was begun.
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

// End asks for the run to end.
func (r *Run) End(d event.RunTerminatedBy) []machine.Action {
	return []machine.Action{machine.Record{Data: d}}
}

// Due is what comes before anything that the machine decides: the end of a run
// that was cancelled or is out of time, and the children that somebody has to take
// up or to end. Next adds to it while more says so.
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
		return r.children.actions(), false // they park, because there is no time
	case r.Open() == 0 && late != "":
		return r.End(event.RunTerminatedBy{Reason: event.BudgetReason(late), Limit: late}), false
	}
	return r.children.actions(), true
}

// OrPark is what a run does of which that is due: it asks what is to be decided, and
// parks where nothing is due, all its children wait for somebody, and no command
// runs.
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

// withdraw takes back all that people are asked.
func (r *Run) withdraw() (actions []machine.Action) {
	for _, q := range r.questions.Open() {
		actions = append(actions, machine.Record{Data: q.Resolve(event.Resolution{
			Kind: event.ApprovalCancelled, Approver: r.Cancel.By, Reason: r.Cancel.Reason, At: r.Now, Principal: r.Cancel.Principal,
		})})
	}
	return actions
}

// Withdraw takes back what people are asked under an id.
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

// Conclude builds the outcome of a run whose end has been recorded.
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

// Bounded is a machine that embeds [Run].
type Bounded interface {
	// Bounds are the limits of the run as they are now.
	Bounds() budget.Limits
}

// Bounds are the limits of the run as they are now.
func (r *Run) Bounds() budget.Limits { return r.Limits }
