// Package machine is the contract between a state machine, which decides, and
// a driver, which acts.
//
// A machine is pure: no I/O, clock, goroutine or randomness. Apply folds an
// event into the state; Next says which actions are due. A decision is itself
// an action ([Record]): the driver journals it and applies it, so that a later
// fold meets the decision as an event and never makes it again.
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
	// Apply folds one event. An error means that the journal does not fit
	// the machine; the state is then undefined. What the event holds may be kept,
	// but not the event itself: the next one may come in its place.
	Apply(*event.Event) error
	// Next returns the actions that are due, in order. It changes nothing
	// that a fold depends on: called twice it says the same. All of them stay
	// due while a driver performs them one after the other, applying what each
	// gives; the slice is valid until the next call of Next.
	Next() []Action
	// State says where the run stands.
	State() State
}

// Capped is a machine that knows which limits it could not keep to.
type Capped interface {
	Machine
	// CanKeep says why a limit could not be kept with a new value, which then is
	// not given to it. It changes nothing.
	CanKeep(setting string, value float64) error
}

// Action is what a machine wants done: [Record], [CallModel], [Resolve],
// [RunHook], [RunTool], [RunCommand], [StartChild], [CancelChild], [Deliver],
// [Reserve], [CheckAnswer], [Wait], [Evaluate] or [Ask].
type Action interface{ action() }

// Record asks for a decision to be journalled.
type Record struct{ Data event.Data }

// CallModel asks for one attempt at a model call. Its intent is
// model.requested; its settlement model.response or model.attempt_failed.
type CallModel struct {
	Cycle   int
	Attempt int
	// Target is the model as "provider/model".
	Target string
	// Request lacks only the provider's own model name and the encoding.
	Request llm.Request
	// Stream is false when the owner asked for whole answers.
	Stream bool
	// NotBefore is the end of a durable wait, zero for none.
	NotBefore time.Time
	// Price is the target's price, nil when it has none that is known.
	Price *llm.Price
	// Admission is that of the budget; without one no driver makes the call. A
	// call whose usage nobody reports is charged by it ([budget.Unreported]).
	Admission budget.Admission
	// Purpose is empty for a cycle's answer; its events carry it.
	Purpose event.Purpose
	// Withheld are the provider's own tools that the request does not name, nil
	// where it names all of the run's.
	Withheld *event.Withheld
}

// Deadline is when a limit on the run's time is used up if the run goes on from
// here and nothing new comes of it; the zero value is never. A driver then ends
// the effects under way. It moves when something new comes, when a limit is
// changed, and with the time that nobody drives the run.
type Deadline struct {
	At time.Time
	// Setting is the limit, as owners know it.
	Setting string
	// Asks says that the run then parks until the limit is raised, and its
	// children with it; else it ends, and they do.
	Asks bool
}

// Resolve asks for the facts about a call that policy and dispatch need: is
// the tool known, do the arguments validate, what does it touch. It has no
// effect; its record is tool_call.
type Resolve struct {
	CallID string
	Call   llm.ToolCall
	// EditedBy is who gave the call other arguments than the model did.
	EditedBy string
}

// RunTool asks for one attempt at a tool call. Its intent is tool.started; its
// settlement is tool_result, or tool.attempt_failed for a failure that another
// attempt may cure, where Retries says that there may be one.
type RunTool struct {
	CallID  string
	Attempt int
	Key     string
	Tool    string
	Args    []byte
	// Labels say what the call's result is.
	Labels event.Labels
	// Facts are what the call was judged by.
	Facts *event.Facts
	// NotBefore is the end of a durable wait, zero for none.
	NotBefore time.Time
	Retries   bool
	// Spent is how long the attempts ran that failed before this one.
	Spent time.Duration
	// MaxResultChars bounds what the model sees of the result.
	MaxResultChars int
	// Sought are texts to look for in the whole of the result's output, where the
	// model sees less of it.
	Sought []string
	// Sandbox says that policy lets the call run in the sandbox only.
	Sandbox bool
	// Again establishes the facts once more before the call starts, because a person
	// approved it with the content of the files that it runs ([event.Facts.Runs]). If
	// one of them has changed, the new facts are recorded and the call does not start.
	// It is nil where no approval depends on a file.
	Again *Resolve
}

// CheckAnswer asks whether what would end the run validates against its schema.
// It has no effect; its record is answer.checked.
type CheckAnswer struct {
	Cycle  int
	Schema json.RawMessage
	Answer string
}

// Wait asks for time to pass. Its intent is wait.started and its settlement
// wait.finished; it stays due until that is there. It is cancelled by not being due
// any more.
type Wait struct {
	// ID names the wait among all of the run's.
	ID    string
	Until time.Time
	// Begun says that its intent is journalled.
	Begun bool
}

// Evaluate asks for what an expression gives over values. It has no effect; its
// record is condition.evaluated.
type Evaluate struct {
	// ID names the evaluation among all of the run's.
	ID         string
	Step       string
	Expression string
	// Variables is a JSON object of the values by their names.
	Variables json.RawMessage
}

// Observe asks for an iteration to be journalled with what the run's workspace holds
// now. It has no effect beside that.
type Observe struct{ Iteration event.Iteration }

// Ask asks a person what is to be decided.
type Ask struct {
	// Questions are those of [State.Pending], which must not be changed.
	Questions []*event.Question
	// Unanswered is what to do where nobody can be asked, or whoever is asked
	// cannot decide.
	Unanswered Unanswered
}

// Unanswered is what becomes of a question that nobody can be asked here.
type Unanswered string

// The ways to go on without an answer.
const (
	// UnansweredPark: the run parks, and a decision resumes it.
	UnansweredPark Unanswered = ""
	// UnansweredWait: the question waits for a decision from elsewhere, and the
	// run stays in its process.
	UnansweredWait Unanswered = "wait"
	// UnansweredReject: what was asked is rejected.
	UnansweredReject Unanswered = "reject"
)

// RunHook asks for one of the owner's hooks to run. It stays due until its
// record, hook.result, is there: a hook that a crash or a park cut short runs
// again, so hooks must be fit to run twice.
type RunHook struct {
	// ID names the hook and what it is about, the same in every process.
	ID    string
	Stage event.HookStage
	Hook  string
	// Observer says that nothing may follow from the hook but its record.
	Observer bool
	Cycle    int
	// CallID, Tool and Args are the call's, in the stages about tools.
	CallID string
	Tool   string
	Args   []byte
	// Result is the call's, in after_tool.
	Result *event.ToolResult
	// Outcome is how the run will end, in after_run.
	Outcome *event.Outcome
	// Compaction is why the conversation is to become shorter, and after it
	// what has become of it.
	Compaction *event.HistoryCompressed
	// MaxResultChars bounds what the model sees of a result. Sought are the texts
	// that conditions look for in all that the hook puts in its place.
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

// Phase is what a machine does now; a driver makes the state of a run of it.
type Phase string

// The phases that a machine knows of; queued and waiting are the driver's.
const (
	Running Phase = "running"
	Parked  Phase = "parked"
	Ended   Phase = "ended"
)

// State is a machine's condition, as drivers and surfaces need it.
type State struct {
	Phase   Phase
	Parked  *event.RunParked
	Outcome *event.Outcome
	Cycle   int
	Usage   llm.Usage
	Cost    llm.Cost
	// Deadline bounds every effect that is due or under way.
	Deadline Deadline
	// Taint is what the run has taken in, for the rule of two.
	Taint event.Taint
	// Asking says that the run goes on and has nothing to do but wait for a
	// person, whose time is not the run's.
	Asking bool
	// Pending are the questions that wait for a decision. They must not be changed.
	Pending []*event.Question
}
