// Package stop decides whether a cycle ends the run. Its rules are pure functions of
// the cycle's text, results and spend.
package stop

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Kind names a termination condition.
type Kind string

// The kinds of conditions.
const (
	TextIncludes    Kind = "text-includes"
	ToolResult      Kind = "tool-result"
	BudgetExhausted Kind = "budget-exhausted"
)

// form describes a kind of condition.
type form struct {
	kind Kind
	// needs are the keys of the condition, all of which are required.
	needs []string
	// money reports that it is met when the money is used up, which is no success.
	money bool
	met   func(Condition, Cycle) bool
}

// forms holds the kinds of conditions, in the order in which they are listed.
var forms = [...]form{
	{kind: TextIncludes, needs: []string{"text"}, met: func(cond Condition, c Cycle) bool { return strings.Contains(c.Text, cond.Text) }},
	{kind: ToolResult, needs: []string{"tool", "match"}, met: func(cond Condition, c Cycle) bool { return cond.Evidence(c) != nil }},
	{kind: BudgetExhausted, money: true, met: func(_ Condition, c Cycle) bool { return c.LimitUSD > 0 && c.SpentUSD >= c.LimitUSD }},
}

func (k Kind) form() (form, bool) {
	i := slices.IndexFunc(forms[:], func(f form) bool { return f.kind == k })
	if i < 0 {
		return form{}, false
	}
	return forms[i], true
}

// Choices returns all kinds.
func (Kind) Choices() []string {
	var all []string
	for _, f := range forms {
		all = append(all, string(f.kind))
	}
	return all
}

// Known reports whether the kind exists.
func (k Kind) Known() bool { _, known := k.form(); return known }

// Needs reports whether conditions of the kind have a key, which is then required.
func (k Kind) Needs(key string) bool { f, _ := k.form(); return slices.Contains(f.needs, key) }

// OfMoney reports whether a condition of the kind is met by a run's spending, which is
// no success.
func (k Kind) OfMoney() bool { f, _ := k.form(); return f.money }

// Condition is a declared condition that ends a run.
type Condition struct {
	Kind Kind `json:"kind" yaml:"kind"`
	// Text is the substring that a text-includes condition looks for,
	// case-sensitively, in the cycle's assistant text.
	Text string `json:"text,omitempty" yaml:"text,omitempty"`
	// Tool names the tool whose results a tool-result condition looks at.
	Tool  string `json:"tool,omitempty" yaml:"tool,omitempty"`
	Match Match  `json:"match,omitzero" yaml:"match,omitempty"`
}

// Match is what a tool result must contain; with both set, both must hold.
type Match struct {
	ExitCode *int   `json:"exit_code,omitempty" yaml:"exit_code,omitempty"`
	Contains string `json:"contains,omitempty" yaml:"contains,omitempty"`
}

// Cycle is a finished cycle, as conditions see it.
type Cycle struct {
	Text    string
	Results []*event.ToolResult
	// SpentUSD is the run's cumulative spend, LimitUSD its limit (0: none).
	SpentUSD float64
	LimitUSD float64
}

// First returns the index of the first condition that the cycle meets, in
// declared order, or -1.
func First(conditions []Condition, c Cycle) int {
	for i, cond := range conditions {
		if cond.met(c) {
			return i
		}
	}
	return -1
}

func (cond Condition) met(c Cycle) bool {
	f, known := cond.Kind.form()
	return known && f.met(cond, c)
}

// Evidence returns the result that meets a condition on results, or nil. A call that
// did not run meets no condition, whatever its refusal contains.
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

// observed reports whether a result is known to come from the tool.
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

// Sought returns the texts that conditions look for in the results of a tool.
// If a result keeps only a part of the tool's output, the code that has the
// whole output must record which of them it contains
// ([event.ToolResult.Contains]).
func Sought(conditions []Condition, tool string) []string {
	var texts []string
	for _, cond := range conditions {
		if cond.Kind == ToolResult && cond.Tool == tool && cond.Match.Contains != "" {
			texts = append(texts, cond.Match.Contains)
		}
	}
	return texts
}

// Report receives an error in one key of a condition: what is expected there, and the
// problem.
type Report func(key, expected, format string, args ...any)

// keys are the keys of conditions besides the kind, with descriptions of their values.
var keys = [...][2]string{{"text", "the text to look for"}, {"tool", "the name of a tool"}, {"match", "exit_code, contains, or both"}}

// Check reports the problems of a condition from any source. It does not check whether
// the tool exists.
func (c Condition) Check(report Report) {
	switch choices := strings.Join(c.Kind.Choices(), ", "); {
	case c.Kind == "":
		report("kind", "one of "+choices, "is missing")
		return
	case !c.Kind.Known():
		report("kind", "one of "+choices, "is %q", string(c.Kind))
		return
	}
	given := map[string]bool{"text": c.Text != "", "tool": c.Tool != "", "match": c.Match != Match{}}
	for _, key := range keys {
		switch needs := c.Kind.Needs(key[0]); {
		case needs && !given[key[0]]:
			report(key[0], key[1], "is missing")
		case !needs && given[key[0]]:
			report(key[0], "no such key", "a %s condition does not have it", c.Kind)
		}
	}
	if code := c.Match.ExitCode; code != nil && (*code < 0 || *code > 255) {
		report("match.exit_code", "0 to 255", "is %v", *code)
	}
}
