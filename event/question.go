package event

import (
	"encoding/json"
	"time"
)

// QuestionKind is the subject of a question.
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
// [Resolving] that of the event with the decision. Code that lists, decides or resolves
// questions needs only this pair.
type Asking interface {
	Data
	Question() Question
	// Resolved returns the event for a decision about the question.
	Resolved(Resolution) Resolving
	clone() Asking
}

// Resolving is the counterpart of [Asking].
type Resolving interface {
	Data
	Resolution() Resolution
}

// Question is a run's question to a person.
type Question struct {
	// ID names the question among all open ones of its run.
	ID   string
	Kind QuestionKind
	// Step is the step of a workflow that asks, empty for none.
	Step string
	// Digest is the digest of the subject, Policy the version of the policy that asks,
	// empty for none: a decision with other values does not count.
	Digest string
	Policy string
	// Rule is the rule that asks, empty for none, and Reason the reason.
	Rule   string
	Reason string
	// ExpiresAt is when the question expires, nil for never, and OnExpiry what then
	// happens.
	ExpiresAt *time.Time
	OnExpiry  OnExpiry
	// Offer is as in [ToolPendingApproval].
	Offer *Permission
	// Subject is the subject in a word or two, What all of it in the JSON form that
	// surfaces show.
	Subject string
	What    any
	// Takes are the ways in which a person may decide. Message reports that there is
	// none: a message to the run answers it.
	Takes   []ApprovalKind
	Message bool
	// Asking is the payload of the event that asks.
	Asking Asking
}

// OnExpiry is what happens when a question expires.
type OnExpiry string

// The values of [Question.OnExpiry].
const (
	// ExpiryRejects continues as if a person had rejected it.
	ExpiryRejects OnExpiry = "reject"
	// ExpiryStops ends the run as rejected.
	ExpiryStops OnExpiry = "stop"
)

// Late reports whether the question has expired at a time.
func (q *Question) Late(at time.Time) bool { return q.ExpiresAt != nil && !at.Before(*q.ExpiresAt) }

// Counts reports whether a resolution is valid for this question: it has the same
// subject and policy, and is in time.
func (q *Question) Counts(r Resolution) bool {
	return r.ID == q.ID && r.Digest == q.Digest && r.Policy == q.Policy && (r.Kind == ApprovalExpired || r.Kind == ApprovalCancelled || !q.Late(r.At))
}

// Resolve returns the event that decides the question.
func (q *Question) Resolve(r Resolution) Resolving {
	r.ID, r.Digest, r.Policy = q.ID, q.Digest, q.Policy
	return q.Asking.Resolved(r)
}

// Decide returns the events of a decision of a person: the one that decides the
// question and, if the person accepts the offered rule, the one that adds it. With a
// rejection the rule denies what was offered.
func (q *Question) Decide(r Resolution) []Data {
	r.Remember = r.Remember && (r.Kind == ApprovalApproved || r.Kind == ApprovalRejected) && q.Offer != nil
	events := []Data{q.Resolve(r)}
	if r.Remember {
		p := *q.Offer
		p.Deny = r.Kind == ApprovalRejected
		events = append(events, PermissionAdded{CallID: q.ID, Permission: p, By: r.Approver, Principal: r.Principal})
	}
	return events
}

// Clone returns a copy of the question that the caller may keep and change.
func (q Question) Clone() Question { return q.Asking.clone().Question() }

// Resolution is a decision about a question, with its author and time.
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
	// Command is as in [PauseRequested]. It distinguishes equal decisions, of which
	// only the first counts.
	Command int64
	// Principal is the principal that Approver names, with role and proof.
	Principal Principal
}

// Asks reports whether events of the type ask a person something.
func (t Type) Asks() bool {
	_, asks := byName()[t].zero.(Asking)
	return asks
}

// Resolves reports whether events of the type contain a decision.
func (t Type) Resolves() bool {
	_, resolves := byName()[t].zero.(Resolving)
	return resolves
}

// Voiding is the payload of an event after which an earlier question needs no decision.
type Voiding interface {
	Data
	// Voids returns the id of the question.
	Voids() string
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// Principal is the user or program that started a run, sent it a command, or decided
// about it. Events of older versions have none.
type Principal struct {
	Name string `json:"name"`
	// Role is the role in which the principal acted.
	Role  string `json:"role,omitempty"`
	Proof Proof  `json:"proof,omitempty"`
}

// Proof is how a principal was authenticated.
type Proof string

// The proofs.
const (
	// ProofUser: the operating system identified the user of the process.
	ProofUser Proof = "user"
	// ProofToken: the request contained a token with that name.
	ProofToken Proof = "token"
	// ProofNone: not authenticated, because the server was started with --no-auth.
	ProofNone Proof = "none"
)
