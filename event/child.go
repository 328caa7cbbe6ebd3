package event

import (
	"cmp"
	"encoding/json"
	"time"
)

// ChildStarted records the intent to run a child. Its id is chosen before the
// child is created, so that after a crash the child is found, or created.
type ChildStarted struct {
	Child string `json:"child"`
	Kind  string `json:"kind"`
	Name  string `json:"name,omitempty"`
	// Step is the step of a workflow that the child is, where it is one.
	Step string `json:"step,omitempty"`
	// ID names the child among all that the run starts, where it answers no call.
	ID string `json:"id,omitempty"`
	// CallID is the call that the child answers.
	CallID string `json:"callId,omitempty"`
}

func (ChildStarted) EventType() Type  { return TypeChildStarted }
func (d ChildStarted) OfStep() string { return d.Step }

// Action names the child among all that the run starts.
func (d ChildStarted) Action() string { return cmp.Or(d.ID, d.CallID) }

// BeginsStep reports whether the event opens the first attempt of a step, which no
// step.started opens then.
func (d ChildStarted) BeginsStep() bool { return d.Step != "" && d.ID == d.Step }

// ChildParked says that a child has parked and waits for a person. It continues
// when its parent is resumed.
type ChildParked struct {
	Child  string     `json:"child"`
	CallID string     `json:"callId,omitempty"`
	Reason ParkReason `json:"reason"`
	// Detail, CallIDs, Until, Limit, ParentLimit, LimitRun and AtLeast are the
	// child's own, as in [RunParked].
	Detail      string     `json:"detail,omitempty"`
	CallIDs     []string   `json:"callIds,omitempty"`
	Until       *time.Time `json:"until,omitempty"`
	Limit       string     `json:"limit,omitempty"`
	ParentLimit string     `json:"parentLimit,omitempty"`
	LimitRun    string     `json:"limitRun,omitempty"`
	AtLeast     float64    `json:"atLeast,omitempty"`
}

func (ChildParked) EventType() Type { return TypeChildParked }

// ChildWaiting says that a running child only waits for a person, or no longer
// does. This time does not count for it or for its parent. After the parent was
// resumed, no child counts as waiting until it says so again. For a parked
// child, Waiting false says that the parent resumes it.
type ChildWaiting struct {
	Child   string `json:"child"`
	CallID  string `json:"callId,omitempty"`
	Waiting bool   `json:"waiting"`
}

func (ChildWaiting) EventType() Type { return TypeChildWaiting }

// ChildFinished is the settlement of a child run, with its outcome. If the
// child answers a call, the texts are only in the call's tool_result; if it is a step,
// only in the step.finished or iteration behind it that says the same.
type ChildFinished struct {
	Child   string  `json:"child"`
	CallID  string  `json:"callId,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Taint is what the child had taken in, where it answers no call: what the run
	// continues with may hold it.
	Taint Taint `json:"taint,omitzero"`
	// Worktree is where the child worked, of one that has a worktree of its own.
	Worktree *Worktree `json:"worktree,omitempty"`
	// Behind says that the texts are left out here, because an event behind this one
	// has them.
	Behind bool `json:"-"`
	// Func says that the child is a function, which has no journal: here alone is
	// what it said.
	Func bool `json:"-"`
}

func (ChildFinished) EventType() Type { return TypeChildFinished }

type childFinished ChildFinished

type storedChildFinished[O any] struct {
	childFinished
	Outcome O `json:"outcome"`
}

func (d ChildFinished) stored(shown bool) any {
	if d.Behind {
		return storedChildFinished[untoldOutcome]{childFinished(d), untoldOutcome{Outcome: d.Outcome}}
	}
	if o, ok := d.Outcome.abridge(); ok && !shown {
		return storedChildFinished[abridgedOutcome]{childFinished(d), o}
	}
	return d
}

// UnmarshalJSON reads the event as it is stored, or as surfaces show it.
func (d *ChildFinished) UnmarshalJSON(b []byte) error {
	var s storedChildFinished[untoldOutcome]
	err := json.Unmarshal(b, &s)
	*d = ChildFinished(s.childFinished)
	d.Outcome, d.Behind = s.Outcome.whole(), s.Outcome.FinalOutput == nil
	return err
}

func (d ChildFinished) leaveOut(text string) (Data, bool) {
	o := &d.Outcome
	if d.CallID != "" || d.Func || o.FinalOutput != text || o.LastOutput != text {
		return d, false
	}
	d.Behind, o.FinalOutput, o.LastOutput = true, "", ""
	return d, true
}

func (d ChildFinished) leftOut() bool { return d.Behind }

func (d ChildFinished) tell(text string) Data {
	d.Behind, d.Outcome.FinalOutput, d.Outcome.LastOutput = false, text, text
	return d
}
