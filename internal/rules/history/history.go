// Package history folds a run's journal to the conversation that the next request
// sends. It keeps the invariant that every provider enforces: each call is followed by
// exactly one result, in call order, and reasoning, calls and results stay together.
package history

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Version names the rules of the fold. A run's first event records it.
const Version = "1"

// ErrOpenCalls is returned by [History.Messages] while calls of the last answer have no
// results.
var ErrOpenCalls = errors.New("history: calls without a result")

// History is the conversation of one run. The zero value is empty and ready to use. A
// History is not safe for concurrent use.
type History struct {
	messages []*llm.Message
	// open is the last answer while its calls have no results, and calls are the
	// indexes of those calls in its parts.
	open  *llm.Message
	calls []int
	// linted is the number of messages that passed [Lint].
	linted int
}

// Messages returns the conversation, checked for what a provider would reject, so that
// no invalid request is sent. The error is [ErrOpenCalls] or a *[LintError]. Messages
// checks only the messages that are new since the last call. The caller must not change
// the slice or its messages; the slice stays valid when the history grows.
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

// All returns the conversation even while calls are open. It is for display; use
// [History.Messages] for requests.
func (h *History) All() []*llm.Message { return h.messages[:len(h.messages):len(h.messages)] }

// AwaitsAnswer reports whether the last message is not an answer of the model.
func (h *History) AwaitsAnswer() bool {
	n := len(h.messages)
	return n > 0 && h.messages[n-1].Role != llm.RoleAssistant
}

// Len returns the number of messages.
func (h *History) Len() int { return len(h.messages) }

// Append adds whole messages, such as those of an ended run that this run continues.
func (h *History) Append(messages ...*llm.Message) {
	h.messages = append(h.messages, messages...)
}

// Become replaces the conversation, as compaction does between two requests. The next
// call of Messages checks all of it.
func (h *History) Become(messages []*llm.Message) {
	h.messages, h.linted = messages, 0
}

// Loop adds a message from the loop, with the user's role.
func (h *History) Loop(text string) {
	m := llm.UserText(text)
	m.Origin = llm.OriginLoop
	h.Append(m)
}

// User adds a message from the user.
func (h *History) User(text string) { h.Append(llm.UserText(text)) }

// Assistant adds a model's answer. It skips an answer without text, calls or items,
// because providers reject it. The calls of the answer are open until
// [History.Results].
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

// Call completes the n-th open call with the fields that the journal stores separately.
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

// Results adds one result for each open call, in call order, and closes the calls.
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

// substantial reports whether providers accept an answer with these parts. They reject
// an answer that is empty, blank or only reasoning.
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
