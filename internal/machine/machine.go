// Package machine defines the contract between a state machine, which decides, and a
// driver, which acts. A machine is pure: it uses no I/O, clock, goroutine or
// randomness. Apply folds an event into the state, and Next returns the actions that
// are due. A decision is itself an action ([Record]): the driver journals and applies
// it, so a later fold reads the decision as an event and never makes it again.
package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Machine is one run's state machine.
type Machine interface {
	// Apply folds one event. An error means that the journal does not match the
	// machine; the state is then undefined. A machine may retain the event's contents
	// but not the event itself, because the caller reuses it.
	Apply(*event.Event) error
	// Next returns the actions that are due, in order. It does not change the folded
	// state, so two calls return the same actions. All of them stay due while a driver
	// performs them one after the other and applies the results. The slice is valid
	// until the next call of Next.
	Next() []Action
	// State returns the run's current state.
	State() State
}

// Capped is a machine that can reject a value of a limit.
type Capped interface {
	Machine
	// CanKeep returns an error if the machine cannot enforce a limit with the new
	// value. The caller then discards the value. CanKeep changes nothing.
	CanKeep(setting string, value float64) error
}

// MaxDeaths is how often in a row the driver's process may die while one call or command
// is under way before it is not made again: the call may be what kills the process.
const MaxDeaths = 20

// Action is something that a machine wants done: [Record], [CallModel], [Resolve],
// [RunHook], [RunTool], [RunCommand], [StartChild], [CancelChild], [Deliver],
// [Reserve], [CheckAnswer], [Wait], [Evaluate], [Observe] or [Ask].
type Action interface{ action() }

// Record journals a decision.
type Record struct{ Data event.Data }

// CallModel makes one attempt at a model call. Its intent is model.requested;
// its settlement model.response or model.attempt_failed.
type CallModel struct {
	Cycle   int
	Attempt int
	// Target is the model as "provider/model".
	Target string
	// Request is complete except for the provider's own model name and the encoding.
	Request llm.Request
	// Streamed reports whether the call requests a stream instead of one complete answer.
	Streamed bool
	// NotBefore is the end of a durable wait, zero for none.
	NotBefore time.Time
	// Price is the target's price, nil if unknown.
	Price *llm.Price
	// Admission comes from the budget; a driver makes no call without one. It is also
	// the charge for a call without reported usage ([budget.Unreported]).
	Admission budget.Admission
	// Purpose is empty for a cycle's answer. The call's events carry it.
	Purpose event.Purpose
	// Withheld lists the provider's own tools that the request leaves out, nil for
	// none.
	Withheld *event.Withheld
}

// Deadline is the time at which a time limit of the run is reached if the run makes no
// progress; the zero value means never. At that time a driver ends the effects under
// way. The deadline moves with progress, with a changed limit, and by the time during
// which no process drives the run.
type Deadline struct {
	At time.Time
	// Setting is the limit's name in files and flags.
	Setting string
	// Asks reports whether the run and its children then park until the limit is
	// raised. Otherwise they end.
	Asks bool
}

// Resolve establishes the facts about a call that policy and dispatch need:
// whether the tool is known, whether the arguments validate, and what the call
// touches. It has no effect; its record is tool_call.
type Resolve struct {
	CallID string
	Call   llm.ToolCall
	// EditedBy is the principal that changed the model's arguments, or empty.
	EditedBy string
}

// RunTool makes one attempt at a tool call. Its intent is tool.started. Its settlement
// is tool_result; tool.input_required if it needs a person's input; tool.task with a
// time if the driver must poll it later; or, if Retries is set, tool.attempt_failed for
// a failure that another attempt may fix.
type RunTool struct {
	CallID  string
	Attempt int
	Key     string
	Tool    string
	Args    []byte
	// Labels are the labels of the call's result.
	Labels event.Labels
	// Facts are the facts that policy used to judge the call.
	Facts *event.Facts
	// NotBefore is the end of a durable wait, zero for none.
	NotBefore time.Time
	Retries   bool
	// Spent is the total duration of the earlier, failed attempts.
	Spent time.Duration
	// MaxResultChars limits the result as the model sees it.
	MaxResultChars int
	// Sought are texts to search for in the whole output, which may be longer than what
	// the model sees.
	Sought []string
	// Sandbox reports whether policy allows the call only in the sandbox.
	Sandbox bool
	// Input is the input that the attempt may request from a person.
	Input Input
	// Again establishes the facts again before the call starts. It is set if a person
	// approved the call together with the contents of the files that it runs
	// ([event.Facts.Runs]). If one of them has changed, the driver records the new
	// facts and does not start the call.
	Again *Resolve
}

// Input is people's input to the attempts at a call.
type Input struct {
	// Answer is the answer to the previous attempt's request, nil for none.
	Answer *event.FormAnswer
	// Task identifies the external task that an earlier attempt waits for, nil for
	// none.
	Task json.RawMessage
	// Patience is the time that a person has to answer, 0 for no limit. OnExpiry is the
	// action after that.
	Patience time.Duration
	OnExpiry event.OnExpiry
}

// CheckAnswer validates the final answer against its schema. It has no effect;
// its record is answer.checked.
type CheckAnswer struct {
	Cycle  int
	Schema json.RawMessage
	Answer string
}

// Wait waits until a time. Its intent is wait.started and its settlement wait.finished;
// it stays due until then. A driver cancels a wait that is no longer due.
type Wait struct {
	// ID identifies the wait among all waits of the run.
	ID    string
	Until time.Time
	// Begun reports whether the intent is journalled.
	Begun bool
}

// Evaluate computes the value of an expression. It has no effect; its record is
// condition.evaluated.
type Evaluate struct {
	// ID identifies the evaluation among all evaluations of the run.
	ID         string
	Step       string
	Expression string
	// Variables is a JSON object that maps the expression's variables to their values.
	Variables json.RawMessage
}

// Observe journals an iteration together with the current contents of the run's
// workspace. It has no other effect.
type Observe struct{ Iteration event.Iteration }

// Ask puts questions to a person.
type Ask struct {
	// Questions are those of [State.Pending]. They must not be changed.
	Questions []*event.Question
	// Unanswered determines what happens if no person can answer here.
	Unanswered Unanswered
}

// Unanswered determines how a run continues with a question that no person can answer
// here.
type Unanswered string

// The values of Unanswered.
const (
	// UnansweredPark: the run parks, and a decision resumes it.
	UnansweredPark Unanswered = ""
	// UnansweredWait: the question waits for a decision from elsewhere while the
	// process keeps driving the run.
	UnansweredWait Unanswered = "wait"
	// UnansweredReject: the call that the question is about is rejected.
	UnansweredReject Unanswered = "reject"
)

// RunHook runs one of the owner's hooks. It stays due until its record, hook.result. A
// hook that a crash or a park interrupts runs again, so hooks must tolerate repetition.
type RunHook struct {
	// ID names the hook and its subject; it is the same in every process.
	ID    string
	Stage event.HookStage
	Hook  string
	// Observer reports whether the hook's answer is recorded but otherwise ignored.
	Observer bool
	Cycle    int
	// CallID, Tool and Args describe the call in the stages about tools.
	CallID string
	Tool   string
	Args   []byte
	// Result is the call's result, in after_tool.
	Result *event.ToolResult
	// Outcome is the outcome of the run, in after_run.
	Outcome *event.Outcome
	// Compaction is the reason for a compaction before it, and its result afterwards.
	Compaction *event.HistoryCompressed
	// MaxResultChars limits the result as the model sees it. Sought are the texts that
	// conditions search for in a whole replacement.
	MaxResultChars int
	Sought         []string
}

func (Record) action()      {}
func (CallModel) action()   {}
func (Resolve) action()     {}
func (RunHook) action()     {}
func (RunTool) action()     {}
func (CheckAnswer) action() {}
func (Ask) action()         {}
func (Wait) action()        {}
func (Evaluate) action()    {}
func (Observe) action()     {}

// Phase is the current activity of a machine. A driver derives the run's state from it.
type Phase string

// The phases of a machine. Queued and waiting are states that only a driver knows.
const (
	Running Phase = "running"
	Parked  Phase = "parked"
	Ended   Phase = "ended"
)

// State is the part of a machine's state that drivers and surfaces need.
type State struct {
	Phase   Phase
	Parked  *event.RunParked
	Outcome *event.Outcome
	Cycle   int
	Usage   llm.Usage
	Cost    llm.Cost
	// Deadline limits every effect that is due or under way.
	Deadline Deadline
	// Taint is the taint of the run, for the rule of two.
	Taint event.Taint
	// Asking reports whether the run continues but only waits for a person. That time
	// does not count against the run's limits.
	Asking bool
	// Pending are the questions without a decision. They must not be changed.
	Pending []*event.Question
}

// Deliver delivers messages to a child that is under way, oldest first. The child
// journals each message once as input.received, and the run then journals
// message.delivered. Deliver stays due until each message is journalled that way.
type Deliver struct {
	Child string
	// Messages contain their ids. They must not be changed.
	Messages []event.InputReceived
}

func (Deliver) action() {}

// Post is a message from a child to other children.
type Post struct {
	// ID identifies the message. A child that repeats the message after a crash uses
	// the same id.
	ID   string
	To   string
	Text string
	Kind event.MessageKind
	// Taint is the taint of the child.
	Taint event.Taint
}

// Messenger is a machine that routes messages between the runs that it started.
type Messenger interface {
	Machine
	// Post returns the events and the reply for a message from a child. It changes
	// nothing; the caller must journal the events immediately. It returns no events for
	// a message that the run already has.
	Post(child string, p Post) (become []event.Data, reply string)
	// Undelivered returns the messages for a child whose delivery is not journalled.
	Undelivered(child string) []event.InputReceived
	// Deliverable reports whether a message is undelivered, and returns the child's id
	// as other children know it.
	Deliverable(child, id string) (to string, ok bool)
}

// Repeater is a machine that can repeat the start of a child: a crash may have
// come between child.started and the child's first event.
type Repeater interface {
	Machine
	// Again returns the action that started the child.
	Again(child string) StartChild
}

// ErrUnsupported is returned for a journal that this version does not understand or
// whose machine it lacks.
var ErrUnsupported = errors.New("machine: journal needs a newer version")

// Table maps machine versions, as recorded in a run's first event, to constructors. A
// new machine decodes its configuration from that event.
type Table map[string]func() Machine

// Make returns a new machine of the given version.
func (t Table) Make(version string) (Machine, error) {
	if empty := t[version]; empty != nil {
		return empty(), nil
	}
	return nil, fmt.Errorf("%w: machine %s", ErrUnsupported, version)
}
