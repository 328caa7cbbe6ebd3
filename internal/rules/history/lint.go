package history

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// Rule is a requirement that every provider has for conversations.
type Rule string

// The rules that [Lint] checks.
const (
	// RuleOrphanCall: a call without a result in the next message.
	RuleOrphanCall Rule = "orphan-call"
	// RuleOrphanResult: a result without a call in the message before it.
	RuleOrphanResult Rule = "orphan-result"
	// RuleDuplicateResult: a second result of one call.
	RuleDuplicateResult Rule = "duplicate-result"
	// RuleResultOrder: results in another order than their calls.
	RuleResultOrder Rule = "result-order"
	// RuleDuplicateCall: two calls of one answer with the same id.
	RuleDuplicateCall Rule = "duplicate-call"
	// RuleEmptyMessage: a message without content to send.
	RuleEmptyMessage Rule = "empty-message"
	// RuleRole: a part that the message's role does not allow.
	RuleRole Rule = "role"
)

// LintError describes a violation of a rule.
type LintError struct {
	Rule Rule
	// Message is the index of the message.
	Message int
	// CallID is the call in question, empty if there is none.
	CallID string
	Detail string
}

// Error describes the violation.
func (e *LintError) Error() string {
	s := fmt.Sprintf("history: message %d breaks %s: %s", e.Message, e.Rule, e.Detail)
	if e.CallID != "" {
		s += " (call " + e.CallID + ")"
	}
	return s
}

// Lint checks a whole conversation. The error is a *[LintError].
func Lint(messages []*llm.Message) error { return lint(messages, 0) }

// lint checks the messages starting at from, which must not lie between a call and its
// result.
func lint(messages []*llm.Message, from int) error {
	var calls []llm.ToolCall // open calls of the last message
	for i, m := range messages[from:] {
		i += from
		if len(calls) > 0 && m != nil && m.Role != llm.RoleTool {
			return orphan(i, calls[0])
		}
		var err *LintError
		if calls, err = lintMessage(m, calls); err != nil {
			err.Message = i
			return err
		}
	}
	if len(calls) > 0 {
		return orphan(len(messages), calls[0])
	}
	return nil
}

// lintMessage checks one message that follows the calls in before, and returns the
// message's own calls.
func lintMessage(m *llm.Message, before []llm.ToolCall) ([]llm.ToolCall, *LintError) {
	if m == nil {
		return nil, &LintError{Rule: RuleEmptyMessage, Detail: "there is no message"}
	}
	switch m.Role {
	case llm.RoleUser:
		return nil, lintUser(m)
	case llm.RoleAssistant:
		return lintAssistant(m)
	case llm.RoleTool:
		return nil, lintResults(m, before)
	case llm.RoleSystem:
		return nil, lintSystem(m)
	}
	return nil, &LintError{Rule: RuleRole, Detail: fmt.Sprintf("unknown role %q", m.Role)}
}

func orphan(i int, c llm.ToolCall) error {
	return &LintError{
		Rule: RuleOrphanCall, Message: i - 1, CallID: c.CallID,
		Detail: "a call of " + c.Name + " has no result in the next message",
	}
}

func lintUser(m *llm.Message) *LintError {
	said := false
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			said = said || strings.TrimSpace(p.Text) != ""
		case llm.Media:
			said = true
		default:
			return &LintError{Rule: RuleRole, Detail: fmt.Sprintf("a user's message holds a %T", p)}
		}
	}
	if !said {
		return &LintError{Rule: RuleEmptyMessage, Detail: "a user's message says nothing"}
	}
	return nil
}

// lintSystem checks a system message. Only the loop may write one.
func lintSystem(m *llm.Message) *LintError {
	for _, p := range m.Parts {
		if _, ok := p.(llm.Text); !ok {
			return &LintError{Rule: RuleRole, Detail: fmt.Sprintf("a system message holds a %T", p)}
		}
	}
	switch {
	case m.Origin != llm.OriginLoop:
		return &LintError{Rule: RuleRole, Detail: "a system message does not come from the loop"}
	case strings.TrimSpace(m.Text()) == "":
		return &LintError{Rule: RuleEmptyMessage, Detail: "a system message says nothing"}
	}
	return nil
}

func lintAssistant(m *llm.Message) ([]llm.ToolCall, *LintError) {
	if !substantial(m.Parts) {
		return nil, &LintError{Rule: RuleEmptyMessage, Detail: "an assistant's message holds neither text nor call"}
	}
	var calls []llm.ToolCall
	var seen map[string]bool // nil until there are two calls
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.ToolResult:
			return nil, &LintError{Rule: RuleRole, CallID: p.CallID, Detail: "an assistant's message holds a result"}
		case llm.ToolCall:
			if len(calls) == 1 {
				seen = map[string]bool{calls[0].CallID: true}
			}
			if seen[p.CallID] {
				return nil, &LintError{Rule: RuleDuplicateCall, CallID: p.CallID, Detail: "two calls have this id"}
			}
			if calls = append(calls, p); seen != nil {
				seen[p.CallID] = true
			}
		}
	}
	return calls, nil
}

// lintResults checks that the results match the calls, one each, in the same order.
func lintResults(m *llm.Message, calls []llm.ToolCall) *LintError {
	answered := 0
	for _, p := range m.Parts {
		r, ok := p.(llm.ToolResult)
		if !ok {
			return &LintError{Rule: RuleRole, Detail: fmt.Sprintf("a message of results holds a %T", p)}
		}
		if answered < len(calls) && calls[answered].CallID == r.CallID {
			answered++
			continue
		}
		err := &LintError{Rule: RuleOrphanResult, CallID: r.CallID, Detail: "a result of a call that was not made"}
		for i, c := range calls {
			if c.CallID != r.CallID {
				continue
			}
			err.Rule, err.Detail = RuleResultOrder, "a result comes before those of earlier calls"
			if i < answered {
				err.Rule, err.Detail = RuleDuplicateResult, "a call has a second result"
			}
		}
		return err
	}
	switch {
	case answered < len(calls):
		return &LintError{
			Rule: RuleOrphanCall, CallID: calls[answered].CallID,
			Detail: "a call of " + calls[answered].Name + " has no result",
		}
	case len(m.Parts) == 0:
		return &LintError{Rule: RuleEmptyMessage, Detail: "a message of results holds none"}
	}
	return nil
}
