package event

import (
	"encoding/json"
	"time"
)

// QuestionKind is what a question is about.
type QuestionKind string

// The kinds of questions.
const (
	QuestionCall   QuestionKind = "call"
	QuestionReview QuestionKind = "review"
	QuestionGoal   QuestionKind = "goal"
	QuestionLimit  QuestionKind = "limit"
	QuestionForm   QuestionKind = "form"
)

// Asking is the payload of an event by which a run asks a person something, and
// [Resolving] that of the event with the decision. The two are one pair: what
// lists, decides or resolves questions needs no more than them.
type Asking interface {
	Data
	Question() Question
	// Resolved is the event that a decision about the question becomes.
	Resolved(Resolution) Resolving
	clone() Asking
}

// Resolving is the other half of [Asking].
type Resolving interface {
	Data
	Resolution() Resolution
}

// Question is what a run asks a person.
type Question struct {
	// ID names the question among all that its run has open.
	ID   string
	Kind QuestionKind
	// Step is the step of a workflow that asks, empty for none.
	Step string
	// Digest is that of what is asked about, Policy the version of the policy that
	// asks, empty for none: a decision on another one is none.
	Digest string
	Policy string
	// Rule asks, empty where no rule does, and Reason says why.
	Rule   string
	Reason string
	// ExpiresAt is when a decision comes too late, nil for never, and OnExpiry what
	// becomes of the question then.
	ExpiresAt *time.Time
	OnExpiry  OnExpiry
	// Offer is as in [ToolPendingApproval].
	Offer *Permission
	// Subject says in a word or two what is asked about, What says all of it, as
	// surfaces show it in JSON.
	Subject string
	What    any
	// Takes are the ways in which a person may decide. Message says that there is none:
	// a message to the run answers it.
	Takes   []ApprovalKind
	Message bool
	// Asked is the payload of the event that asks.
	Asked Asking
}

// OnExpiry is what becomes of a question that expires.
type OnExpiry string

// The values of [Question.OnExpiry].
const (
	// ExpiryRejects continues as if a person had rejected it.
	ExpiryRejects OnExpiry = "reject"
	// ExpiryStops ends the run as rejected.
	ExpiryStops OnExpiry = "stop"
)

// Late reports whether a decision at that time comes too late.
func (q *Question) Late(at time.Time) bool { return q.ExpiresAt != nil && !at.Before(*q.ExpiresAt) }

// Counts reports whether a resolution is one of this question: about what it asks,
// under the policy that asks, and in time.
func (q *Question) Counts(r Resolution) bool {
	return r.ID == q.ID && r.Digest == q.Digest && r.Policy == q.Policy && (r.Kind == ApprovalExpired || r.Kind == ApprovalCancelled || !q.Late(r.At))
}

// Resolve is the event by which the question is decided in that way.
func (q *Question) Resolve(r Resolution) Resolving {
	r.ID, r.Digest, r.Policy = q.ID, q.Digest, q.Policy
	return q.Asked.Resolved(r)
}

// Clone returns a copy of the question that the caller may keep and change.
func (q Question) Clone() Question { return q.Asked.clone().Question() }

// Resolution is what was decided about a question, by whom and when.
type Resolution struct {
	// ID, Of, Digest and Policy are the question's id, kind, digest and policy.
	ID       string
	Of       QuestionKind
	Kind     ApprovalKind
	Digest   string
	Policy   string
	Approver string
	Reason   string
	At       time.Time
	// Args and Remember are as in [ToolApprovalResolved]. Args are also the answer to a
	// form.
	Args     json.RawMessage
	Remember bool
	// Command is as in [PauseRequested]: it tells equal decisions apart, of which
	// only the first counts.
	Command int64
	// Principal is who Approver names, with role and proof.
	Principal Principal
}

// Asks reports whether events of the type ask a person something.
func (t Type) Asks() bool {
	_, asks := byName()[t].zero.(Asking)
	return asks
}

// Resolves reports whether events of the type say what was decided.
func (t Type) Resolves() bool {
	_, resolves := byName()[t].zero.(Resolving)
	return resolves
}

// Voiding is the payload of an event after which an earlier question needs no
// decision.
type Voiding interface {
	Data
	// Voids is the id of the question.
	Voids() string
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
