package event

import (
	"bytes"
	"encoding/json"
	"net/url"
	"time"
)

// Form is what a tool asks a person for before it can finish a call.
type Form struct {
	Message string `json:"message"`
	// Schema is the JSON Schema of the answer, an object. It is absent if the person
	// is to do something at URL, which Pawl shows and never opens.
	Schema json.RawMessage `json:"schema,omitempty"`
	URL    string          `json:"url,omitempty"`
	// Command is what the person runs before the answer, which has no fields then. It
	// needs a person, so no setting of the run answers the form.
	Command string `json:"command,omitempty"`
	// State is given back to the tool with the answer. People do not see it.
	State json.RawMessage `json:"state,omitempty"`
}

// Host is the host of the form's URL, empty without one.
func (f Form) Host() string {
	u, err := url.Parse(f.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// FormAnswer is what a person answered to a [Form].
type FormAnswer struct {
	// Kind is [ApprovalAnswered] or [ApprovalRejected], Input the answer in the first
	// case, which fits the form's schema, and Reason why in the second.
	Kind   ApprovalKind
	Input  json.RawMessage
	Reason string
	// State is that of the form.
	State json.RawMessage
}

// ToolInputRequired settles an attempt at a call that cannot go on without the input
// of a person, unless a person answered at once (Live). A further attempt, with the same key, gets the answer.
type ToolInputRequired struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	Tool    string `json:"tool"`
	Form    Form   `json:"form"`
	// Digest is that of the form and of the attempt.
	Digest string `json:"digest"`
	// ExpiresAt and OnExpiry are as in [ToolPendingApproval].
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	OnExpiry  OnExpiry   `json:"onExpiry,omitempty"`
	// Live says that the attempt went on, and was given the answer.
	Live bool `json:"live,omitempty"`
	// DurationMs is how long the attempt lasted.
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
	// Input is the answer, where Kind is [ApprovalAnswered].
	Input json.RawMessage `json:"input,omitempty"`
	// Command is as in [PauseRequested], and Principal as in [ToolApprovalResolved].
	Command   int64     `json:"command,omitempty"`
	Principal Principal `json:"principal,omitzero"`
}

func (ToolInputResolved) EventType() Type { return TypeToolInputResolved }

// Question is about the form.
func (d ToolInputRequired) Question() Question {
	return Question{
		ID: d.CallID, Kind: QuestionForm, Digest: d.Digest, Reason: d.Form.Message, ExpiresAt: d.ExpiresAt, OnExpiry: d.OnExpiry,
		Subject: d.Tool, What: FormAsked{Tool: d.Tool, Schema: d.Form.Schema, Host: d.Form.Host(), URL: d.Form.URL, Command: d.Form.Command},
		Takes: []ApprovalKind{ApprovalAnswered, ApprovalRejected}, Asked: d,
	}
}

func (d ToolInputRequired) clone() Asking {
	d.Form.Schema, d.Form.State, d.ExpiresAt = bytes.Clone(d.Form.Schema), bytes.Clone(d.Form.State), clone(d.ExpiresAt)
	return d
}

// FormAsked is what a form asks for. Host is that of URL.
type FormAsked struct {
	Tool    string          `json:"tool"`
	Schema  json.RawMessage `json:"schema,omitempty"`
	Host    string          `json:"host,omitempty"`
	URL     string          `json:"url,omitempty"`
	Command string          `json:"command,omitempty"`
}

// Resolved is the answer to the form.
func (ToolInputRequired) Resolved(r Resolution) Resolving {
	return ToolInputResolved{
		CallID: r.ID, Kind: r.Kind, Digest: r.Digest, Approver: r.Approver, Reason: r.Reason, At: r.At, Input: r.Args,
		Command: r.Command, Principal: r.Principal,
	}
}

// Resolution is the answer, as the decision about any question.
func (d ToolInputResolved) Resolution() Resolution {
	return Resolution{
		ID: d.CallID, Of: QuestionForm, Kind: d.Kind, Digest: d.Digest, Approver: d.Approver, Reason: d.Reason, At: d.At, Args: d.Input,
		Command: d.Command, Principal: d.Principal,
	}
}

// ToolTask says that a call goes on outside the run, as a task that the tool can ask for.
// It is journalled before the tool waits. An attempt after a crash asks for the same task
// and begins no second one, whatever the effect of the tool is.
type ToolTask struct {
	CallID  string `json:"callId"`
	Attempt int    `json:"attempt"`
	// Task is what the tool needs to ask for it.
	Task json.RawMessage `json:"task"`
	// Until is when the next attempt asks for it, if this one has ended.
	Until *time.Time `json:"until,omitempty"`
}

func (ToolTask) EventType() Type { return TypeToolTask }
