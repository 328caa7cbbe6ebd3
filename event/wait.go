package event

import (
	"encoding/json"
	"time"
)

// WaitStarted is the intent of a wait. It continues when another process
// resumes the run.
type WaitStarted struct {
	// ID names the wait among all of the run's.
	ID    string    `json:"id"`
	Until time.Time `json:"until"`
}

func (WaitStarted) EventType() Type { return "wait.started" }

// WaitFinished says that the time of a wait has come.
type WaitFinished struct {
	ID string `json:"id"`
}

func (WaitFinished) EventType() Type { return "wait.finished" }

// ConditionEvaluated is what an expression gave over the values that it was
// evaluated with: a fold takes it from here and evaluates nothing again.
type ConditionEvaluated struct {
	// ID names the evaluation among all of the run's.
	ID         string `json:"id"`
	Step       string `json:"step,omitempty"`
	Expression string `json:"expression"`
	// Value is what it gave, as JSON; Error is why it gave nothing.
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
	// ErrorType is the kind of the error, where that has one: missing_key, for
	// example.
	ErrorType string `json:"errorType,omitempty"`
}

func (ConditionEvaluated) EventType() Type  { return "condition.evaluated" }
func (d ConditionEvaluated) OfStep() string { return d.Step }
