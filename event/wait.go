package event

import (
	"encoding/json"
	"time"
)

// WaitStarted is the intent of a wait. It continues when another process resumes the
// run.
type WaitStarted struct {
	// ID names the wait among all of the run.
	ID    string    `json:"id"`
	Until time.Time `json:"until"`
}

func (WaitStarted) EventType() Type { return "wait.started" }

// WaitFinished records that the time of a wait has come.
type WaitFinished struct {
	ID string `json:"id"`
}

func (WaitFinished) EventType() Type { return "wait.finished" }

// ConditionEvaluated is the result of an expression. A fold reads it and never
// evaluates the expression again.
type ConditionEvaluated struct {
	// ID names the evaluation among all of the run.
	ID         string `json:"id"`
	Step       string `json:"step,omitempty"`
	Expression string `json:"expression"`
	// Value is the result, as JSON; Error is the error.
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
	// ErrorType is the kind of the error, if it has one: missing_key, for example.
	ErrorType string `json:"errorType,omitempty"`
}

func (ConditionEvaluated) EventType() Type  { return "condition.evaluated" }
func (d ConditionEvaluated) OfStep() string { return d.Step }
