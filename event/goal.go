package event

import (
	"encoding/json"
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
		Subject: "after iteration " + strconv.Itoa(d.Number), What: GoalAsked{Number: d.Number, Question: d.Asks}, Message: true, Asking: d,
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

// Checkpoint marks a point that a fork or a reader may want to return to.
type Checkpoint struct {
	Label string `json:"label"`
	// Step is the step of the loop, and Number the last iteration before it.
	Step   string `json:"step,omitempty"`
	Number int    `json:"iteration,omitempty"`
	// Child is the run that was asked, and Verdict its verdict; absent if there is
	// none.
	Child   string  `json:"child,omitempty"`
	Verdict Verdict `json:"verdict,omitempty"`
	// Questions are the questions of a goal's checkpoint.
	Questions []CheckpointQuestion `json:"questions,omitempty"`
	// Plan is the goal's plan at that point.
	Plan json.RawMessage `json:"plan,omitempty"`
}

// CheckpointQuestion is a question of a checkpoint, and its answer.
type CheckpointQuestion struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

func (Checkpoint) EventType() Type { return "checkpoint" }

// OfStep returns the step of the loop.
func (d Checkpoint) OfStep() string { return d.Step }

// The two questions of a goal's checkpoint that a model answers.
const (
	AskObjective = "Is the objective still valid?"
	AskHuman     = "Is a person needed before the next step?"
)

// Answer returns the answer to a question, empty for none.
func (d Checkpoint) Answer(question string) string {
	for _, q := range d.Questions {
		if q.Question == question {
			return q.Answer
		}
	}
	return ""
}
