package event

import (
	"encoding/json"
	"time"
)

// Iteration closes one pass of an outer loop (RON-35).
type Iteration struct {
	Index         int    `json:"index"`
	Number        int    `json:"number"`
	MaxIterations int    `json:"maxIterations,omitempty"`
	Output        string `json:"output"`
	Child         string `json:"child,omitempty"`
}

// Progress is what an iteration leaves for the next (RON-36).
type Progress struct {
	Number   int    `json:"number"`
	Learning string `json:"learning"`
}

// ReviewRequested asks a person about an iteration (RON-20).
type ReviewRequested struct {
	LoopID string `json:"loopId"`
	Number int    `json:"number"`
	Output string `json:"output"`
}

// ReviewResolved is the person's answer.
type ReviewResolved struct {
	LoopID   string    `json:"loopId"`
	Approved bool      `json:"approved"`
	Approver string    `json:"approver,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"`
}

// JudgeVerdict is what a judge said of an iteration.
type JudgeVerdict struct {
	Verdict string          `json:"verdict"`
	Reason  string          `json:"reason,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Failed  bool            `json:"failed,omitempty"`
}

// StepStarted opens a step of a workflow.
type StepStarted struct {
	Step  string `json:"step"`
	Child string `json:"child,omitempty"`
}

// StepFinished closes a step.
type StepFinished struct {
	Step    string          `json:"step"`
	Status  string          `json:"status"`
	Content string          `json:"content,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Failure        `json:"error,omitempty"`
}

// StepSkipped says why a step did not run.
type StepSkipped struct {
	Step   string `json:"step"`
	Reason string `json:"reason"`
}

// MessageSent is a message between steps on its way.
type MessageSent struct {
	ID   string `json:"id"`
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// MessageDelivered says that the addressee read it.
type MessageDelivered struct {
	ID string `json:"id"`
	To string `json:"to"`
}

// MessageDropped says that nobody will, and why.
type MessageDropped struct {
	ID     string `json:"id"`
	To     string `json:"to"`
	Reason string `json:"reason"`
}
