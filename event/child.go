package event

import "time"

// ChildStarted records the intent to run a child. Its id is chosen before the
// child is made, so that whoever goes on after a crash finds it, or makes it.
type ChildStarted struct {
	Child string `json:"child"`
	Kind  string `json:"kind"`
	Name  string `json:"name,omitempty"`
	// CallID is the call that the child answers.
	CallID string `json:"callId,omitempty"`
}

// ChildParked says that a child waits for somebody. It goes on when its parent
// is resumed.
type ChildParked struct {
	Child  string     `json:"child"`
	CallID string     `json:"callId,omitempty"`
	Reason ParkReason `json:"reason"`
	// Detail, CallIDs, Until, Limit, ParentLimit and AtLeast are the child's own,
	// as in [RunParked].
	Detail      string     `json:"detail,omitempty"`
	CallIDs     []string   `json:"callIds,omitempty"`
	Until       *time.Time `json:"until,omitempty"`
	Limit       string     `json:"limit,omitempty"`
	ParentLimit string     `json:"parentLimit,omitempty"`
	AtLeast     float64    `json:"atLeast,omitempty"`
}

// ChildWaiting says that a child, which goes on, has nothing to do but wait for
// a person, or no longer. That time is neither its own nor its parent's. After
// the parent was resumed no child waits until one says so again. Of a child that
// has parked it says, with Waiting false, that the parent takes it up again.
type ChildWaiting struct {
	Child   string `json:"child"`
	CallID  string `json:"callId,omitempty"`
	Waiting bool   `json:"waiting"`
}

// ChildFinished is the settlement of a child run, with its own outcome.
type ChildFinished struct {
	Child   string  `json:"child"`
	CallID  string  `json:"callId,omitempty"`
	Outcome Outcome `json:"outcome"`
}
