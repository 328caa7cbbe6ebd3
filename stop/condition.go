// Package stop decides whether what a cycle did ends the run: pure rules over
// a cycle's text, results and spend.
package stop

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Kind names a termination condition (ALDO-7).
type Kind string

// The kinds of conditions.
const (
	TextIncludes    Kind = "text-includes"
	ToolResult      Kind = "tool-result"
	BudgetExhausted Kind = "budget-exhausted"
)

// Condition is one declared way for a run to end.
type Condition struct {
	Kind Kind `json:"kind"`
	// Text is the substring that a text-includes condition looks for,
	// case-sensitively, in the cycle's assistant text (ALDO-31).
	Text string `json:"text,omitempty"`
	// Tool names the tool whose results a tool-result condition looks at.
	Tool  string `json:"tool,omitempty"`
	Match Match  `json:"match,omitzero"`
}

// Match is what a tool result must show; with both set, both must hold
// (ALDO-33 to 35).
type Match struct {
	ExitCode *int   `json:"exit_code,omitempty"`
	Contains string `json:"contains,omitempty"`
}

// Cycle is what a finished cycle did, as conditions see it.
type Cycle struct {
	Text    string
	Results []*event.ToolResult
	// SpentUSD is the run's cumulative spend, LimitUSD its cap (0: none).
	SpentUSD float64
	LimitUSD float64
}

// First returns the index of the first condition that the cycle meets, in
// declared order (ALDO-30), or -1.
func First(conditions []Condition, c Cycle) int {
	for i, cond := range conditions {
		if cond.met(c) {
			return i
		}
	}
	return -1
}

// IndexOf returns the index of the first condition of a kind, or -1.
func IndexOf(conditions []Condition, kind Kind) int {
	for i, cond := range conditions {
		if cond.Kind == kind {
			return i
		}
	}
	return -1
}

func (cond Condition) met(c Cycle) bool {
	switch cond.Kind {
	case TextIncludes:
		return strings.Contains(c.Text, cond.Text)
	case ToolResult:
		return cond.Evidence(c) != nil
	case BudgetExhausted:
		return c.LimitUSD > 0 && c.SpentUSD >= c.LimitUSD
	}
	return false
}

// Evidence is the result that meets a condition on results, or nil. What a tool
// did not do is no evidence: a call that was only asked for meets nothing,
// whatever the words of its refusal (HAR-14).
func (cond Condition) Evidence(c Cycle) *event.ToolResult {
	if cond.Kind != ToolResult {
		return nil
	}
	for _, r := range c.Results {
		if r.Tool == cond.Tool && observed(r) && cond.Match.meets(r) {
			return r
		}
	}
	return nil
}

// observed says that a result is known to come from the tool.
func observed(r *event.ToolResult) bool {
	switch r.ErrorType {
	case event.ErrorUnknownTool, event.ErrorUnavailable, event.ErrorInvalidArgs, event.ErrorTruncated,
		event.ErrorDenied, event.ErrorRejected, event.ErrorExpired, event.ErrorBlocked, event.ErrorHookBlocked, event.ErrorHookFailed,
		event.ErrorBudget, event.ErrorCancelled, event.ErrorInDoubt:
		return false
	}
	return true
}

func (m Match) meets(r *event.ToolResult) bool {
	if m.ExitCode != nil && (r.ExitCode == nil || *r.ExitCode != *m.ExitCode) {
		return false
	}
	return strings.Contains(r.Output, m.Contains) || slices.Contains(r.Contains, m.Contains)
}

// Sought are the texts that conditions look for in the results of a tool. Where
// a result keeps only a part of the tool's output, whoever has the whole of it
// must say which of them are there ([event.ToolResult.Contains]).
func Sought(conditions []Condition, tool string) []string {
	var texts []string
	for _, cond := range conditions {
		if cond.Kind == ToolResult && cond.Tool == tool && cond.Match.Contains != "" {
			texts = append(texts, cond.Match.Contains)
		}
	}
	return texts
}
