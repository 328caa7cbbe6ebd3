// Package machine is the contract between a state machine, which decides, and
// a driver, which acts.
//
// A machine is pure: no I/O, clock, goroutine or randomness. Apply folds an
// event into the state; Next returns the actions that are due. A decision is
// itself an action ([Record]): the driver journals and applies it, so a later
// fold reads the decision as an event and never makes it again.
package machine

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Machine is one run's state machine.
type Machine interface {
	// Apply folds one event. An error means that the journal does not fit the
	// machine; the state is then undefined. A machine may keep the event's contents
	// but not the event itself, which the caller reuses.
	Apply(*event.Event) error
	// Next returns the actions that are due, in order. It changes nothing that a
	// fold depends on, so two calls return the same. All of the actions stay due
	// while a driver performs them one after the other and applies the results; the
	// slice is valid until the next call of Next.
	Next() []Action
	// State returns the run's current state.
	State() State
}

// Capped is a machine that can reject a value of a limit.
type Capped interface {
	Machine
	// CanKeep returns an error if the machine cannot enforce a limit with a new
	// value. The caller then discards the value. It changes nothing.
	CanKeep(setting string, value float64) error
}

// Action is what a machine wants done: [Record], [CallModel], [Resolve],
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
	// Request is complete but for the provider's own model name and the encoding.
	Request llm.Request
	// Stream is false when the owner wants whole answers.
	Stream bool
	// NotBefore is the end of a durable wait, zero for none.
	NotBefore time.Time
	// Price is the target's price, nil if unknown.
	Price *llm.Price
	// Admission comes from the budget; a driver makes no call without one. It is
	// also the charge for a call without reported usage ([budget.Unreported]).
	Admission budget.Admission
	// Purpose is empty for a cycle's answer. The call's events carry it.
	Purpose event.Purpose
	// Withheld lists the provider's own tools that the request leaves out, nil for
	// none.
	Withheld *event.Withheld
}

// Deadline is when a limit on the run's time is reached if the run makes no
// progress until then; the zero value is never. A driver then ends the effects
// under way. The deadline moves with progress, with a changed limit, and by the
// time during which no process drives the run.
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
	// EditedBy is the principal that changed the model's arguments, empty for none.
	EditedBy string
}

// RunTool makes one attempt at a tool call. Its intent is tool.started. Its
// settlement is tool_result, tool.input_required if it needs the input of a person,
// tool.task with a time if it is to be asked for later, or,
// if Retries is set, tool.attempt_failed for a failure that another attempt may cure.
type RunTool struct {
	CallID  string
	Attempt int
	Key     string
	Tool    string
	Args    []byte
	// Labels are those of the call's result.
	Labels event.Labels
	// Facts are the facts by which policy judged the call.
	Facts *event.Facts
	// NotBefore is the end of a durable wait, zero for none.
	NotBefore time.Time
	Retries   bool
	// Spent is how long the earlier, failed attempts ran.
	Spent time.Duration
	// MaxResultChars bounds what the model sees of the result.
	MaxResultChars int
	// Sought are texts to look for in the whole output, of which the model may see
	// less.
	Sought []string
	// Sandbox reports whether policy allows the call in the sandbox only.
	Sandbox bool
	// Input is about what the attempt may ask a person for.
	Input Input
	// Again establishes the facts once more before the call starts. It is set if a
	// person approved the call together with the contents of the files that it runs
	// ([event.Facts.Runs]). If one of them has changed, the new facts are recorded
	// and the call does not start.
	Again *Resolve
}

// Input is the input of people to the attempts at a call.
type Input struct {
	// Answer is the answer to what the attempt before asked for, nil for none.
	Answer *event.FormAnswer
	// Task is what an earlier attempt waits for outside the run, nil for nothing.
	Task json.RawMessage
	// Patience is how long a person may take to answer, 0 for any time, and OnExpiry
	// what follows after that.
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

// Wait lets time pass. Its intent is wait.started and its settlement
// wait.finished; it stays due until then. A wait that is no longer due is
// cancelled.
type Wait struct {
	// ID names the wait among all of the run's.
	ID    string
	Until time.Time
	// Begun reports whether the intent is journalled.
	Begun bool
}

// Evaluate computes the value of an expression. It has no effect; its record is
// condition.evaluated.
type Evaluate struct {
	// ID names the evaluation among all of the run's.
	ID         string
	Step       string
	Expression string
	// Variables is a JSON object with the expression's variables by name.
	Variables json.RawMessage
}

// Observe journals an iteration together with the current contents of the run's
// workspace. It has no other effect.
type Observe struct{ Iteration event.Iteration }

// Ask puts questions to a person.
type Ask struct {
	// Questions are those of [State.Pending], which must not be changed.
	Questions []*event.Question
	// Unanswered says what to do if no person can answer here.
	Unanswered Unanswered
}

// Unanswered is how a run continues with a question that no person can answer
// here.
type Unanswered string

// The values of Unanswered.
const (
	// UnansweredPark: the run parks, and a decision resumes it.
	UnansweredPark Unanswered = ""
	// UnansweredWait: the question waits for a decision from elsewhere, and the
	// process keeps driving the run.
	UnansweredWait Unanswered = "wait"
	// UnansweredReject: the call in question is rejected.
	UnansweredReject Unanswered = "reject"
)

// RunHook runs one of the owner's hooks. It stays due until its record,
// hook.result. A hook that a crash or a park interrupts runs again, so hooks
// must tolerate a second run.
type RunHook struct {
	// ID names the hook and its subject; it is the same in every process.
	ID    string
	Stage event.HookStage
	Hook  string
	// Observer reports whether the hook's answer is recorded and otherwise ignored.
	Observer bool
	Cycle    int
	// CallID, Tool and Args describe the call, in the stages about tools.
	CallID string
	Tool   string
	Args   []byte
	// Result is the call's result, in after_tool.
	Result *event.ToolResult
	// Outcome is how the run will end, in after_run.
	Outcome *event.Outcome
	// Compaction is why the conversation is about to be compacted, or, after that,
	// the result.
	Compaction *event.HistoryCompressed
	// MaxResultChars bounds what the model sees of a result. Sought are the texts
	// that conditions look for in the whole of a replacement.
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

// Phase is what a machine does now. A driver derives the run's state from it.
type Phase string

// The phases of a machine. Queued and waiting are states of the driver's.
const (
	Running Phase = "running"
	Parked  Phase = "parked"
	Ended   Phase = "ended"
)

// State is a machine's state as drivers and surfaces need it.
type State struct {
	Phase   Phase
	Parked  *event.RunParked
	Outcome *event.Outcome
	Cycle   int
	Usage   llm.Usage
	Cost    llm.Cost
	// Deadline bounds every effect that is due or under way.
	Deadline Deadline
	// Taint is what the run has read, for the rule of two.
	Taint event.Taint
	// Asking reports whether the run continues but only waits for a person. That
	// time does not count as the run's.
	Asking bool
	// Pending are the questions without a decision. They must not be changed.
	Pending []*event.Question
}
