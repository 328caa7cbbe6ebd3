package event

import (
	"strconv"
	"time"
)

// GoalBlocked asks a person for something that a goal needs to continue. A message to
// the run answers it.
type GoalBlocked struct {
	// ID names the question among all of the run.
	ID   string `json:"id"`
	Step string `json:"step,omitempty"`
	// Number is the number of iterations so far, and Asks the question.
	Number int    `json:"iteration"`
	Asks   string `json:"question"`
	// Digest is the digest of the question.
	Digest string `json:"digest"`
	// ExpiresAt is when the question expires, nil for never, and OnExpiry what then
	// happens to the run.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	OnExpiry  OnExpiry   `json:"onExpiry,omitempty"`
}

func (GoalBlocked) EventType() Type  { return "goal.blocked" }
func (d GoalBlocked) OfStep() string { return d.Step }

// GoalUnanswered records that the question needs no answer any more: it expired, or the
// run does not need the answer.
type GoalUnanswered struct {
	ID       string       `json:"id"`
	Step     string       `json:"step,omitempty"`
	Kind     ApprovalKind `json:"kind"`
	Digest   string       `json:"digest"`
	Approver string       `json:"approver,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	At       time.Time    `json:"at"`
	// Command is as in [PauseRequested], and Principal as in [ToolApprovalResolved].
	Command   int64     `json:"command,omitempty"`
	Principal Principal `json:"principal,omitzero"`
}

func (GoalUnanswered) EventType() Type  { return "goal.unanswered" }
func (d GoalUnanswered) OfStep() string { return d.Step }

// Question returns the question about what the goal needs.
func (d GoalBlocked) Question() Question {
	return Question{
		ID: d.ID, Kind: QuestionGoal, Step: d.Step, Digest: d.Digest, Reason: d.Asks, ExpiresAt: d.ExpiresAt, OnExpiry: d.OnExpiry,
		Subject: "after iteration " + strconv.Itoa(d.Number), What: GoalAsked{Number: d.Number, Question: d.Asks}, Message: true, Asked: d,
	}
}

func (d GoalBlocked) clone() Asking {
	d.ExpiresAt = clone(d.ExpiresAt)
	return d
}

// GoalAsked is the question of a goal.
type GoalAsked struct {
	Number   int    `json:"iteration"`
	Question string `json:"question"`
}

// Resolved returns the end of the question without an answer.
func (d GoalBlocked) Resolved(r Resolution) Resolving {
	return GoalUnanswered{
		ID: r.ID, Step: d.Step, Kind: r.Kind, Digest: r.Digest, Approver: r.Approver, Reason: r.Reason, At: r.At, Command: r.Command, Principal: r.Principal,
	}
}

// Resolution returns the end as that of a question.
func (d GoalUnanswered) Resolution() Resolution {
	return Resolution{
		ID: d.ID, Of: QuestionGoal, Kind: d.Kind, Digest: d.Digest, Approver: d.Approver, Reason: d.Reason, At: d.At, Command: d.Command, Principal: d.Principal,
	}
}
