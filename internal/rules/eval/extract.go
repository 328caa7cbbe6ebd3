// Package eval judges whether an ended run reached its goal. An evaluator works on a
// short extract of the run. The package is pure: if a model has to judge, the evaluator
// returns a question for it and interprets the answer.
package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Extract is the part of a run that evaluators use.
type Extract struct {
	// Text is the run's final output.
	Text string `json:"text"`
	// FinalToolResult is the last tool result, nil if the run called no tool.
	FinalToolResult *ToolResult `json:"finalToolResult"`
	Cycles          int         `json:"cycles"`
	// TerminatedBy is the kind of the condition that ended the run, or else the reason
	// of its outcome.
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

// Of reads the extract of a run from its events. A command that the run started without
// a model counts as a result of the tool "command"; a workflow has no other results of
// its own.
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

// OfOutcome returns the extract of a run of which only the outcome is known.
func OfOutcome(o event.Outcome) Extract {
	x := Extract{Text: o.FinalOutput, Cycles: o.Cycles, TerminatedBy: string(o.Reason)}
	if o.Reason == event.ReasonConditionMet && o.Kind != "" {
		x.TerminatedBy = o.Kind
	}
	return x
}

// Variables returns what an expression of [CEL] refers to, as a JSON object: the
// extract, and the cost of the run in USD.
func (x Extract) Variables(usd float64) json.RawMessage {
	cost := strconv.FormatFloat(usd, 'f', -1, 64)
	if !strings.Contains(cost, ".") {
		cost += ".0" // it is a fraction to the expression, even if it is 0
	}
	text, err := json.Marshal(struct {
		Extract
		Cost json.RawMessage `json:"cost"`
	}{x, json.RawMessage(cost)})
	if err != nil {
		return json.RawMessage("{}") // texts and numbers are always valid JSON
	}
	return text
}
