package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// ToolPendingApproval asks for an approval, bound to the exact arguments and to the
// policy that asks.
type ToolPendingApproval struct {
	CallID string          `json:"callId"`
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args,omitempty"`
	Digest string          `json:"digest"`
	Reason string          `json:"reason,omitempty"`
	// Rule is the rule that asked, and Risk the harm that the call can do.
	Rule string `json:"rule,omitempty"`
	Risk Risk   `json:"risk,omitempty"`
	// Policy is the version of the policy that asks. A decision under another
	// version does not count.
	Policy string `json:"policy,omitempty"`
	// ExpiresAt is the end of the time for a decision; nil if there is none. OnExpiry
	// is what then happens to the run, empty for [ExpiryRejects].
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	OnExpiry  OnExpiry   `json:"onExpiry,omitempty"`
	// Runs are the files that the call runs, as in [Facts]. Digest includes their
	// content.
	Runs []RunFile `json:"runs,omitempty"`
	// Offer is the rule that a person may add for the rest of the run with the
	// approval; absent if no such rule would answer the question.
	Offer *Permission `json:"offer,omitempty"`
	// Fixed reports that the arguments cannot be edited: they belong to a command of
	// the run's machine, whose id is CallID and whose step is Step.
	Fixed bool   `json:"fixed,omitempty"`
	Step  string `json:"step,omitempty"`
}

// OfStep returns the step of a command.
func (d ToolPendingApproval) OfStep() string { return d.Step }

func (ToolPendingApproval) EventType() Type { return TypeToolPendingApproval }

// Permission permits calls of a tool for the rest of a run, if the question is one that
// every call of the tool raises, or the permission is for a whole line; or it denies them.
type Permission struct {
	Tool string `json:"tool"`
	// Command is a pattern for the simple commands of a command line that do more than
	// read: words, and a star at the end for any further ones.
	Command string `json:"command,omitempty"`
	// Path is a pattern for all files that the call names.
	Path string `json:"path,omitempty"`
	// Line is a whole command line. It also permits what that line does to protected
	// paths and outside the workspace, and its unreadable parts in a sandbox.
	Line string `json:"line,omitempty"`
	// Deny reports that the calls are denied.
	Deny bool `json:"deny,omitempty"`
}

// String returns the permission for people: the tool and the pattern.
func (p Permission) String() string {
	switch {
	case p.Line != "":
		return p.Tool + ", exactly the line " + p.Line
	case p.Command != "":
		return p.Tool + ", command " + p.Command
	}
	return p.Tool + ", path " + p.Path
}

// PermissionAdded is a rule that a person added for the rest of the run, together with
// an approval or a rejection. The decision itself covers only its own call.
type PermissionAdded struct {
	CallID     string     `json:"callId"`
	Permission Permission `json:"permission"`
	By         string     `json:"by"`
	// Principal is as in [CancelRequested].
	Principal Principal `json:"principal,omitzero"`
}

func (PermissionAdded) EventType() Type { return TypePermissionAdded }

// ApprovalKind is how a question was decided.
type ApprovalKind string

// The kinds of decisions.
const (
	ApprovalApproved ApprovalKind = "approved"
	ApprovalRejected ApprovalKind = "rejected"
	ApprovalExpired  ApprovalKind = "expired"
	// ApprovalEdited: the call may run with other arguments, after those have been
	// validated, resolved and judged like the model's.
	ApprovalEdited ApprovalKind = "edited"
	// ApprovalAnswered: the input that a form asks for was given.
	ApprovalAnswered ApprovalKind = "answered"
	// ApprovalContinue: the loop continues with another iteration.
	ApprovalContinue ApprovalKind = "continue"
	// ApprovalCancelled: the decision is no longer needed.
	ApprovalCancelled ApprovalKind = "cancelled"
)

// ToolApprovalResolved is a decision about a pending call.
type ToolApprovalResolved struct {
	CallID string       `json:"callId"`
	Kind   ApprovalKind `json:"kind"`
	// Digest is the digest of the arguments in the question.
	Digest   string    `json:"digest"`
	Approver string    `json:"approver"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
	// Policy is the version of the policy under which it was decided.
	Policy string `json:"policy,omitempty"`
	// Args are the arguments that replace the model's, if Kind is [ApprovalEdited].
	Args json.RawMessage `json:"args,omitempty"`
	// Remember reports that the offered rule was accepted, or, with a rejection, its
	// opposite. The rule is a separate event, [PermissionAdded].
	Remember bool `json:"remember,omitempty"`
	// Command is as in [PauseRequested]. It distinguishes equal decisions, of which
	// only the first counts.
	Command int64 `json:"command,omitempty"`
	// Principal is the principal that Approver names, with role and proof.
	Principal Principal `json:"principal,omitzero"`
}

func (ToolApprovalResolved) EventType() Type { return TypeToolApprovalResolved }

// AskedDigest identifies the subject of a question: a call by its digest, with the
// content of the files that it runs.
func AskedDigest(call string, runs []RunFile) string {
	if len(runs) == 0 {
		return call
	}
	h := sha256.New()
	h.Write([]byte(call))
	for _, f := range runs {
		h.Write([]byte("\x00" + f.Path + "\x00" + f.Digest))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Question returns the question about the call.
func (d ToolPendingApproval) Question() Question {
	takes := []ApprovalKind{ApprovalApproved, ApprovalRejected, ApprovalEdited}
	if d.Fixed {
		takes = takes[:2]
	}
	return Question{
		ID: d.CallID, Kind: QuestionCall, Step: d.Step, Digest: d.Digest, Policy: d.Policy, Rule: d.Rule, Reason: d.Reason, ExpiresAt: d.ExpiresAt,
		OnExpiry: d.OnExpiry, Offer: d.Offer, Subject: d.Tool, What: CallAsked{Tool: d.Tool, Args: d.Args, Runs: d.Runs},
		Takes: takes, Asking: d,
	}
}

func (d ToolPendingApproval) clone() Asking {
	d.Args, d.ExpiresAt, d.Runs = bytes.Clone(d.Args), clone(d.ExpiresAt), slices.Clone(d.Runs)
	return d
}

// Resolved returns the decision about the call.
func (ToolPendingApproval) Resolved(r Resolution) Resolving {
	return ToolApprovalResolved{
		CallID: r.ID, Kind: r.Kind, Digest: r.Digest, Approver: r.Approver, Reason: r.Reason, At: r.At, Policy: r.Policy,
		Args: r.Args, Remember: r.Remember, Command: r.Command, Principal: r.Principal,
	}
}

// Resolution returns the decision as that about a question.
func (d ToolApprovalResolved) Resolution() Resolution {
	return Resolution{
		ID: d.CallID, Of: QuestionCall, Kind: d.Kind, Digest: d.Digest, Approver: d.Approver, Reason: d.Reason, At: d.At, Policy: d.Policy,
		Args: d.Args, Remember: d.Remember, Command: d.Command, Principal: d.Principal,
	}
}
