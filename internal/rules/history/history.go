// Package history projects a run's journal to the conversation that the next
// request carries. It keeps the rule that every provider enforces: a call is
// followed by exactly one result, in call order, and reasoning, calls and
// results stay one group.
package history

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Version names the projection rules; a run's first event pins it.
const Version = "1"

// ErrOpenCalls is returned when a request is asked for while calls of the last
// assistant message have no result yet.
var ErrOpenCalls = errors.New("history: calls without a result")

// History is the conversation of one run. The zero value is empty and ready.
// It is not safe for concurrent use.
type History struct {
	messages []*llm.Message
	// open is the last assistant message while its calls, at these places
	// among its parts, wait for their results.
	open  *llm.Message
	calls []int
	// linted counts the messages that were found to be in order.
	linted int
}

// Messages is the conversation so far, checked: what a provider would refuse is
// an error here ([ErrOpenCalls], *[LintError]), before anything is paid for.
// Only what is new since the last call is looked at. The slice and its messages
// must not be changed; what it holds stays valid when the history grows.
func (h *History) Messages() ([]*llm.Message, error) {
	if h.open != nil {
		return nil, fmt.Errorf("%w: %d", ErrOpenCalls, len(h.calls))
	}
	if err := lint(h.messages, h.linted); err != nil {
		return nil, err
	}
	h.linted = len(h.messages)
	return h.messages[:len(h.messages):len(h.messages)], nil
}

// All is the conversation as it stands, also while calls are open. It is for
// showing, not for sending; see [History.Messages].
func (h *History) All() []*llm.Message { return h.messages[:len(h.messages):len(h.messages)] }

// AwaitsAnswer reports whether the conversation's last word is not the model's.
func (h *History) AwaitsAnswer() bool {
	n := len(h.messages)
	return n > 0 && h.messages[n-1].Role != llm.RoleAssistant
}

// Len is the number of messages.
func (h *History) Len() int { return len(h.messages) }

// Append adds whole messages, as when a run continues an ended one.
func (h *History) Append(messages ...*llm.Message) {
	h.messages = append(h.messages, messages...)
}

// Become puts another conversation in the place of this one, as compaction
// does between two requests. All of it is checked before the next.
func (h *History) Become(messages []*llm.Message) {
	h.messages, h.linted = messages, 0
}

// Loop adds a message that the loop says in the user's place.
func (h *History) Loop(text string) {
	m := llm.UserText(text)
	m.Origin = llm.OriginLoop
	h.Append(m)
}

// User adds a message of the user's.
func (h *History) User(text string) { h.Append(llm.UserText(text)) }

// Assistant adds a model's answer. An answer without anything that a
// provider would accept back (no text, call or item) is left out, as providers
// reject it. Its calls are open until [History.Results].
func (h *History) Assistant(parts llm.Parts, origin string) {
	if !substantial(parts) {
		return
	}
	m := &llm.Message{Role: llm.RoleAssistant, Parts: parts, Origin: origin}
	h.messages = append(h.messages, m)
	h.calls = h.calls[:0]
	for i, p := range parts {
		if _, ok := p.(llm.ToolCall); ok {
			h.calls = append(h.calls, i)
		}
	}
	if len(h.calls) > 0 {
		m.Parts = append(llm.Parts(nil), parts...)
		h.open = m
	}
}

// Call completes the n-th open call with what the journal kept beside it.
func (h *History) Call(n int, c event.ToolCall) error {
	if h.open == nil || n < 0 || n >= len(h.calls) {
		return fmt.Errorf("history: no open call %d for %s", n, c.CallID)
	}
	at := h.calls[n]
	call, _ := h.open.Parts[at].(llm.ToolCall)
	made := llm.ToolCall{Name: c.Tool, Args: c.Args}
	call.CallID, call.Args, call.ArgsText = c.CallID, made.Outer(call.Name), c.ArgsText
	h.open.Parts[at] = call
	return nil
}

// Results closes the open calls with one result each, in call order.
func (h *History) Results(results []llm.ToolResult) error {
	if h.open == nil || len(results) != len(h.calls) {
		return fmt.Errorf("history: %d results for %d open calls", len(results), len(h.calls))
	}
	parts := make(llm.Parts, len(results))
	for i, r := range results {
		call, _ := h.open.Parts[h.calls[i]].(llm.ToolCall)
		if r.CallID != call.CallID {
			return fmt.Errorf("history: result of %s where %s was called", r.CallID, call.CallID)
		}
		r.ProviderID = call.ProviderID
		parts[i] = r
	}
	h.open = nil
	h.Append(&llm.Message{Role: llm.RoleTool, Parts: parts})
	return nil
}

// substantial reports whether providers would accept an answer of these parts
// back: they refuse one that is empty, blank, or thought alone.
func substantial(parts llm.Parts) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if strings.TrimSpace(p.Text) != "" {
				return true
			}
		case llm.ToolCall, llm.Item, llm.Media:
			return true
		}
	}
	return false
}
