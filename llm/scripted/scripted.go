// Package scripted implements a model that answers from a script. It is the offline
// default, and lets users test their agents.
//
// A script is a YAML list of turns; the n-th model call of a run gets the n-th turn,
// also after a crash, because the call contains the number of answers before it. Turns
// for a step or an agent continue from one of its runs to the next.
package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// Turn is one scripted answer.
type Turn struct {
	// For names the step or the agent that the answer is for: the n-th call by the runs
	// of a tree under that name gets the n-th turn for it. Empty means all runs that no
	// turn of the script names; each of them begins with the first turn.
	For       string
	Text      string
	Reasoning string
	ToolCalls []Call
	// Usage is reported as the call's usage; nil generates a plausible one.
	Usage *llm.Usage
	// Finish overrides the finish reason, which is otherwise "tool" with
	// calls and "end" without.
	Finish llm.Finish
	// Error makes the call fail, after the rest of the turn.
	Error *Failure
	// Delay is the time before the answer.
	Delay  time.Duration
	Expect *Expectation
}

// Call is one tool call of a turn. Arguments is JSON; Malformed, if set, is sent
// instead, as a fragment that is not valid JSON.
type Call struct {
	Name      string
	Arguments json.RawMessage
	Malformed string
}

// Failure is a scripted error.
type Failure struct {
	Status     int
	Class      llm.Class
	Message    string
	RetryAfter *time.Duration
	// Partial is the text that arrives before the failure.
	Partial string
}

// Expectation describes a request; one that differs fails the run with a message about
// the difference.
type Expectation struct {
	// Contains and Excludes apply to the whole request as text.
	Contains []string
	Excludes []string
	// System applies to the system text, Last to the newest message.
	System []string
	Last   []string
	// Tools are names that must be offered; Messages is the exact count, 0
	// for any.
	Tools    []string
	Messages int
}

// Model answers from a script. It is safe for concurrent use.
type Model struct {
	name  string
	turns []Turn
	// named holds the indexes of the turns by the name that they are for.
	named map[string][]int
}

// New returns a model that answers with the turns in order.
func New(name string, turns ...Turn) *Model {
	m := &Model{name: name, turns: turns, named: map[string][]int{}}
	for i, t := range turns {
		m.named[t.For] = append(m.named[t.For], i)
	}
	return m
}

var (
	_ llm.Streamer = (*Model)(nil)
	_ llm.Encoder  = (*Model)(nil)
)

// Encode returns the request in the form that is journalled; it is never sent.
func (m *Model) Encode(req *llm.Request) (*llm.Encoded, error) { return wire.Plain(req) }

// Generate returns the whole answer.
func (m *Model) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return m.Stream(ctx, req, func(llm.Delta) {})
}

// Stream emits the answer word by word.
func (m *Model) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	n, err := m.turn(ctx, req)
	if err != nil {
		return nil, err
	}
	t := m.turns[n]
	if diff := t.Expect.differs(req); diff != "" {
		return nil, m.fail(llm.ClassInvalid, fmt.Sprintf("turn %d expects another request: %s", n+1, diff))
	}
	if err := wait(ctx, t.Delay); err != nil {
		return nil, m.fail(llm.ClassNetwork, err.Error())
	}
	if t.Error != nil {
		return m.broken(n, t, req, emit), m.failure(t.Error)
	}
	return m.answer(n, t, req, emit), nil
}

// turn returns the index of the turn for a call.
func (m *Model) turn(ctx context.Context, req *llm.Request) (int, error) {
	all := m.named[""]
	caller, known := llm.CallerOf(ctx)
	if known && len(all) < len(m.turns) {
		for _, name := range caller.Names() {
			if own := m.named[name]; name != "" && len(own) > 0 {
				return m.nextTurn(ctx, caller, name, own)
			}
		}
	}
	if n := req.Ordinal; n < len(all) {
		return all[n], nil
	}
	return 0, m.fail(llm.ClassInvalid, fmt.Sprintf(
		"the run asks for turn %d and the script ends after %d; the calls of all models of a run are counted together", req.Ordinal+1, len(all)))
}

// nextTurn returns the index of the next turn for a name.
func (m *Model) nextTurn(ctx context.Context, caller llm.Caller, name string, turns []int) (int, error) {
	n, err := caller.Turn(ctx, name)
	if err != nil {
		return 0, m.fail(llm.ClassInvalid, err.Error())
	}
	if n >= len(turns) {
		return 0, m.fail(llm.ClassInvalid, fmt.Sprintf("the runs of %s ask for turn %d, and the script has %d for it", name, n+1, len(turns)))
	}
	return turns[n], nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Model) fail(class llm.Class, message string) error {
	return &llm.Error{Class: class, Provider: "scripted/" + m.name, Message: message}
}

// broken returns the part of an answer that arrives before it fails, nil for none.
func (m *Model) broken(n int, t Turn, req *llm.Request, emit func(llm.Delta)) *llm.Response {
	t.Text += t.Error.Partial
	if t.Text == "" && t.Reasoning == "" && len(t.ToolCalls) == 0 && t.Usage == nil {
		return nil
	}
	if t.Usage == nil {
		t.Usage = &llm.Usage{Estimated: true}
	}
	return m.answer(n, t, req, emit)
}

func (m *Model) failure(f *Failure) error {
	e := &llm.Error{Class: f.Class, Provider: "scripted/" + m.name, Status: f.Status, Message: f.Message}
	if e.Message == "" {
		e.Message = "scripted failure"
	}
	if f.RetryAfter != nil {
		e.RetryAfter, e.HasRetryAfter = *f.RetryAfter, true
	}
	return e
}

func (m *Model) answer(n int, t Turn, req *llm.Request, emit func(llm.Delta)) *llm.Response {
	r := &llm.Response{Model: m.name, ID: fmt.Sprintf("turn-%d", n+1), Finish: t.Finish}
	if t.Reasoning != "" {
		emitWords(t.Reasoning, len(r.Parts), llm.DeltaReasoning, emit)
		r.Parts = append(r.Parts, llm.Reasoning{Text: t.Reasoning})
	}
	if t.Text != "" {
		emitWords(t.Text, len(r.Parts), llm.DeltaText, emit)
		r.Parts = append(r.Parts, llm.Text{Text: t.Text})
	}
	for i, c := range t.ToolCalls {
		call := llm.ToolCall{ProviderID: fmt.Sprintf("call_%d_%d", n+1, i+1), Name: c.Name, Args: c.Arguments, ArgsText: c.Malformed}
		emit(llm.Delta{Kind: llm.DeltaToolCall, Index: len(r.Parts), Tool: c.Name, Text: string(c.Arguments) + c.Malformed})
		r.Parts = append(r.Parts, call)
	}
	if r.Finish == "" {
		r.Finish = llm.FinishEnd
		if len(t.ToolCalls) > 0 {
			r.Finish = llm.FinishTool
		}
	}
	r.RawFinish = string(r.Finish)
	if t.Usage != nil {
		r.Usage = *t.Usage
	} else {
		r.Usage = estimate(req, r)
	}
	return r
}

// estimate returns a usage of realistic size.
func estimate(req *llm.Request, r *llm.Response) llm.Usage {
	in := len(req.System)
	for _, msg := range req.Messages {
		in += textSize(msg.Parts)
	}
	return llm.Usage{Input: int64(in/4 + 1), Output: int64(textSize(r.Parts)/4 + 1)}
}

func textSize(parts llm.Parts) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			n += len(p.Text)
		case llm.Reasoning:
			n += len(p.Text)
		case llm.ToolCall:
			n += len(p.Name) + len(p.Args) + len(p.ArgsText)
		case llm.ToolResult:
			n += len(p.Output)
		}
	}
	return n
}

func emitWords(s string, index int, kind llm.DeltaKind, emit func(llm.Delta)) {
	for s != "" {
		end := strings.IndexByte(s[1:], ' ') + 1
		if end <= 0 {
			end = len(s)
		}
		emit(llm.Delta{Kind: kind, Index: index, Text: s[:end]})
		s = s[end:]
	}
}
