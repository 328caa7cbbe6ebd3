package event

import (
	"cmp"
	"encoding/json"
	"time"
)

// ChildStarted records the intent to run a child. Its id is chosen before the child is
// created, so that the child can be found, or created, after a crash.
type ChildStarted struct {
	Child string `json:"child"`
	Kind  string `json:"kind"`
	Name  string `json:"name,omitempty"`
	// Step is the step of a workflow that the child performs, if it performs one.
	Step string `json:"step,omitempty"`
	// ID names the child among all that the run starts; it is absent for one that answers
	// a call, or that the tool of a call asked for.
	ID string `json:"id,omitempty"`
	// CallID is the call that the child answers.
	CallID string `json:"callId,omitempty"`
	// During is the call whose tool asked for the child; it ends before the call does.
	During string `json:"during,omitempty"`
}

func (ChildStarted) EventType() Type  { return TypeChildStarted }
func (d ChildStarted) OfStep() string { return d.Step }

// Action returns the name of the child among all that the run starts.
func (d ChildStarted) Action() string { return cmp.Or(d.ID, d.CallID, d.Child) }

// BeginsStep reports whether the event starts the first attempt of a step, which then
// has no step.started.
func (d ChildStarted) BeginsStep() bool { return d.Step != "" && d.ID == d.Step }

// ChildParked reports that a child has parked and waits for a person. It continues when
// its parent is resumed.
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

// ChildWaiting reports that a running child only waits for a person, or no longer does.
// This time does not count for the child or its parent. After the parent was resumed,
// no child counts as waiting until the next such event. For a parked child, Waiting
// false means that the parent resumes it.
type ChildWaiting struct {
	Child   string `json:"child"`
	CallID  string `json:"callId,omitempty"`
	Waiting bool   `json:"waiting"`
}

func (ChildWaiting) EventType() Type { return TypeChildWaiting }

// ChildFinished is the settlement of a child run, with its outcome. If the child
// answers a call, only the call's tool_result contains the texts; if it is a step, only
// the later step.finished or iteration with the same texts.
type ChildFinished struct {
	Child   string  `json:"child"`
	CallID  string  `json:"callId,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Taint is what the child had read, if it answers no call, because the run may
	// continue with some of it.
	Taint Taint `json:"taint,omitzero"`
	// Worktree is the child's worktree, if it has one.
	Worktree *Worktree `json:"worktree,omitempty"`
	// Behind reports that the texts are omitted here, because a later event contains
	// them.
	Behind bool `json:"-"`
	// Func reports that the child is a function, which has no journal, so that only
	// this event contains its output.
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

// UnmarshalJSON decodes the stored form, and the form that surfaces show.
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

func (d ChildFinished) restore(text string) Data {
	d.Behind, d.Outcome.FinalOutput, d.Outcome.LastOutput = false, text, text
	return d
}
