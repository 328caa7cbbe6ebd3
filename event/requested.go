package event

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// CancelRequested asks the run to end; everything in progress is stopped first.
type CancelRequested struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Principal is the principal that By names, with role and proof.
	Principal Principal `json:"principal,omitzero"`
}

func (CancelRequested) EventType() Type { return TypeCancelRequested }

// PauseRequested asks the run to park at the next boundary.
type PauseRequested struct {
	By string `json:"by,omitempty"`
	// Command is the inbox number of the command; absent if the input came from
	// elsewhere, or an older version wrote the event.
	Command int64 `json:"command,omitempty"`
	// Principal is as in [CancelRequested].
	Principal Principal `json:"principal,omitzero"`
}

func (PauseRequested) EventType() Type { return TypePauseRequested }

// InputReceived is a message that was sent during the run. It is added to the
// conversation between two cycles.
type InputReceived struct {
	Text string `json:"text"`
	// Media are images and files that accompany the text, or are sent alone.
	Media []llm.Media `json:"media,omitempty"`
	By    string      `json:"by,omitempty"`
	// Command is as in [PauseRequested].
	Command int64 `json:"command,omitempty"`
	// Later reports that the message waits for the end of the run, and is read by the
	// one that continues it.
	Later bool `json:"later,omitempty"`
	// Replaces is the command of a message that this one replaces, if it is not read
	// yet; without a text it takes that message back.
	Replaces int64 `json:"replaces,omitempty"`
	// Mode is the mode of the permissions from here on, "" for the one so far. It may
	// come without a message.
	Mode string `json:"mode,omitempty"`
	// MessageID is the id of a message that another run of the tree sent. Taint marks the
	// untrusted and private text that this run had read.
	MessageID string `json:"messageId,omitempty"`
	Taint     Taint  `json:"taint,omitzero"`
	// Principal is as in [CancelRequested].
	Principal Principal `json:"principal,omitzero"`
}

func (InputReceived) EventType() Type { return TypeInputReceived }

// Message returns the message for the conversation, or nil if it is empty.
func (d InputReceived) Message() *llm.Message {
	m := &llm.Message{Role: llm.RoleUser}
	if strings.TrimSpace(d.Text) != "" {
		m.Parts = append(m.Parts, llm.Text{Text: d.Text})
	}
	for _, f := range d.Media {
		m.Parts = append(m.Parts, f)
	}
	if len(m.Parts) == 0 {
		return nil
	}
	return m
}

// BudgetRaised replaces one limit of a running run.
type BudgetRaised struct {
	Setting string `json:"setting"`
	// Value is the new limit; -1 removes it.
	Value float64 `json:"value"`
	By    string  `json:"by,omitempty"`
	// Command is as in [PauseRequested].
	Command int64 `json:"command,omitempty"`
	// Principal is as in [CancelRequested].
	Principal Principal `json:"principal,omitzero"`
}

func (BudgetRaised) EventType() Type { return TypeBudgetRaised }
