package event

import (
	"bytes"
	"encoding/json"
	"net/url"
	"time"
)

// Form is a tool's request to a person, which it needs to finish a call.
type Form struct {
	Message string `json:"message"`
	// Schema is the JSON Schema of the answer, an object. It is absent if the person
	// must do something at URL, which Pawl shows and never opens.
	Schema json.RawMessage `json:"schema,omitempty"`
	URL    string          `json:"url,omitempty"`
	// Command is what the person runs before the answer, which has no fields then. It
	// needs a person, so no setting of the run answers the form.
	Command string `json:"command,omitempty"`
	// Consent names something that a person allows by answering the form, which has no
	// fields then. A setting of the run that answers each question answers it, too.
	Consent string `json:"consent,omitempty"`
	// State is returned to the tool with the answer. People do not see it.
	State json.RawMessage `json:"state,omitempty"`
}

// Host returns the host of the form's URL, empty without one.
func (f Form) Host() string {
	u, err := url.Parse(f.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// FormAnswer is a person's answer to a [Form].
type FormAnswer struct {
	// Kind is [ApprovalAnswered] or [ApprovalRejected]. Input is the answer in the
	// first case, which matches the form's schema, and Reason the reason in the second.
	Kind   ApprovalKind
	Input  json.RawMessage
	Reason string
	// State is the form's State.
	State json.RawMessage
}

// ToolInputRequired settles an attempt at a call that needs a person's input, unless a
// person answered at once (Live). Another attempt, with the same key, receives the
// answer.
type ToolInputRequired struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	Tool    string `json:"tool"`
	Form    Form   `json:"form"`
	// Digest is the digest of the form and of the attempt.
	Digest string `json:"digest"`
	// ExpiresAt and OnExpiry are as in [ToolPendingApproval].
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	OnExpiry  OnExpiry   `json:"onExpiry,omitempty"`
	// Live reports that the attempt continued, and received the answer.
	Live bool `json:"live,omitempty"`
	// DurationMs is the duration of the attempt.
	DurationMs int64 `json:"durationMs,omitempty"`
}

func (ToolInputRequired) EventType() Type { return TypeToolInputRequired }

// ToolInputResolved is the answer to a [ToolInputRequired].
type ToolInputResolved struct {
	CallID   string       `json:"callId"`
	Kind     ApprovalKind `json:"kind"`
	Digest   string       `json:"digest"`
	Approver string       `json:"approver"`
	Reason   string       `json:"reason,omitempty"`
	At       time.Time    `json:"at"`
	// Input is the answer, if Kind is [ApprovalAnswered].
	Input json.RawMessage `json:"input,omitempty"`
	// Command is as in [PauseRequested], and Principal as in [ToolApprovalResolved].
	Command   int64     `json:"command,omitempty"`
	Principal Principal `json:"principal,omitzero"`
}

func (ToolInputResolved) EventType() Type { return TypeToolInputResolved }

// Question returns the question about the form.
func (d ToolInputRequired) Question() Question {
	return Question{
		ID: d.CallID, Kind: QuestionForm, Digest: d.Digest, Reason: d.Form.Message, ExpiresAt: d.ExpiresAt, OnExpiry: d.OnExpiry,
		Subject: d.Tool, What: FormAsked{Tool: d.Tool, Schema: d.Form.Schema, Host: d.Form.Host(), URL: d.Form.URL, Command: d.Form.Command, Consent: d.Form.Consent},
		Takes: []ApprovalKind{ApprovalAnswered, ApprovalRejected}, Asking: d,
	}
}

func (d ToolInputRequired) clone() Asking {
	d.Form.Schema, d.Form.State, d.ExpiresAt = bytes.Clone(d.Form.Schema), bytes.Clone(d.Form.State), clone(d.ExpiresAt)
	return d
}

// FormAsked is the request of a form. Host is the host of URL.
type FormAsked struct {
	Tool    string          `json:"tool"`
	Schema  json.RawMessage `json:"schema,omitempty"`
	Host    string          `json:"host,omitempty"`
	URL     string          `json:"url,omitempty"`
	Command string          `json:"command,omitempty"`
	Consent string          `json:"consent,omitempty"`
}

// Resolved returns the answer to the form.
func (ToolInputRequired) Resolved(r Resolution) Resolving {
	return ToolInputResolved{
		CallID: r.ID, Kind: r.Kind, Digest: r.Digest, Approver: r.Approver, Reason: r.Reason, At: r.At, Input: r.Args,
		Command: r.Command, Principal: r.Principal,
	}
}

// Resolution returns the answer as the decision about a question.
func (d ToolInputResolved) Resolution() Resolution {
	return Resolution{
		ID: d.CallID, Of: QuestionForm, Kind: d.Kind, Digest: d.Digest, Approver: d.Approver, Reason: d.Reason, At: d.At, Args: d.Input,
		Command: d.Command, Principal: d.Principal,
	}
}

// ToolTask records that a call continues outside the run, as a task that the tool can
// ask about. It is journalled before the tool waits. An attempt after a crash asks
// about the same task and does not start another, whatever the effect class of the tool
// is.
type ToolTask struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	// Task is the data that the tool needs to ask about it.
	Task json.RawMessage `json:"task"`
	// Until is when the next attempt asks about it, if this one has ended.
	Until *time.Time `json:"until,omitempty"`
}

func (ToolTask) EventType() Type { return TypeToolTask }
