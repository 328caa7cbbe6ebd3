// Package eval says of an ended run whether it did what was wanted: by a short
// extract of the run, and by evaluators that look at it. It is pure: what a model has
// to judge, an evaluator says as a question, and reads the answer.
package eval

import (
	"errors"
	"fmt"
	"iter"

	"github.com/pawlrun/pawl/event"
)

// Extract is what evaluators see of a run.
type Extract struct {
	// Text is the run's final output.
	Text string `json:"text"`
	// FinalToolResult is the last result of a tool, nil where no tool was called.
	FinalToolResult *ToolResult `json:"finalToolResult"`
	Cycles          int         `json:"cycles"`
	// TerminatedBy is the kind of the condition that ended the run, else the reason of
	// its outcome.
	TerminatedBy string `json:"terminatedBy"`
}

// ToolResult is the result of a call as the model saw it.
type ToolResult struct {
	CallID   string `json:"callId"`
	Tool     string `json:"tool"`
	Output   string `json:"output"`
	IsError  bool   `json:"isError"`
	ExitCode *int   `json:"exitCode,omitempty"`
}

// ErrNotEnded is returned for a run that has no outcome.
var ErrNotEnded = errors.New("eval: the run has not ended")

// Of reads the extract of a run from its events. Commands that the run started without
// a model count as results of a tool "command": a workflow has no others of its own.
func Of(events iter.Seq2[*event.Event, error]) (Extract, error) {
	var x Extract
	for e, err := range events {
		if err != nil {
			return Extract{}, fmt.Errorf("eval: read the run: %w", err)
		}
		switch d := e.Data.(type) {
		case event.ToolResult:
			x.FinalToolResult = &ToolResult{d.CallID, d.Tool, d.Output, d.IsError, d.ExitCode}
		case event.CommandFinished:
			x.FinalToolResult = &ToolResult{d.ID, "command", d.Output, d.ErrorType != "" || d.Signal != "", d.ExitCode}
		case event.RunCompleted:
			end := OfOutcome(d.Outcome)
			end.FinalToolResult = x.FinalToolResult
			return end, nil
		}
	}
	return Extract{}, ErrNotEnded
}

// OfOutcome is the extract of a run of which no more than its outcome is known.
func OfOutcome(o event.Outcome) Extract {
	x := Extract{Text: o.FinalOutput, Cycles: o.Cycles, TerminatedBy: string(o.Reason)}
	if o.Reason == event.ReasonConditionMet && o.Kind != "" {
		x.TerminatedBy = o.Kind
	}
	return x
}
