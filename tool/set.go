package tool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Set is the tools of one run, sorted by name. It is safe for concurrent use.
type Set struct {
	tools  map[string]*compiled
	sorted []*compiled
}

type compiled struct {
	Tool
	schema *Schema
}

// NewSet checks the tools and compiles their schemas. Names must be unique.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{tools: make(map[string]*compiled, len(tools))}
	for _, t := range tools {
		switch {
		case t.Name == "":
			return nil, fmt.Errorf("tool: a tool has no name")
		case t.Run == nil:
			return nil, fmt.Errorf("tool: %s has no Run function", t.Name)
		case s.tools[t.Name] != nil:
			return nil, fmt.Errorf("tool: %s is declared twice", t.Name)
		}
		if len(t.Schema) == 0 {
			t.Schema = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
		}
		schema, err := CompileSchema(t.Schema)
		if err != nil {
			return nil, fmt.Errorf("tool: schema of %s: %w", t.Name, err)
		}
		c := &compiled{Tool: t, schema: schema}
		s.tools[t.Name] = c
		s.sorted = append(s.sorted, c)
	}
	slices.SortFunc(s.sorted, func(a, b *compiled) int { return cmp.Compare(a.Name, b.Name) })
	return s, nil
}

// Defs are the tools as the model is told of them, in a stable order.
func (s *Set) Defs() []llm.ToolDef {
	if s == nil {
		return nil
	}
	defs := make([]llm.ToolDef, len(s.sorted))
	for i, t := range s.sorted {
		defs[i] = llm.ToolDef{Name: t.Name, Description: t.Description, Schema: t.Schema}
	}
	return defs
}

// Lookup returns a tool by name.
func (s *Set) Lookup(name string) (Tool, bool) {
	if s == nil {
		return Tool{}, false
	}
	t, ok := s.tools[name]
	if !ok {
		return Tool{}, false
	}
	return t.Tool, true
}

// Resolve establishes what policy and dispatch must know of a call before it
// is judged. It never runs the tool.
func (s *Set) Resolve(callID string, c llm.ToolCall) event.ToolCall {
	e := event.ToolCall{
		CallID: callID, ProviderID: c.ProviderID, Tool: c.Name, Args: c.Args, ArgsText: c.ArgsText,
		Effect: event.EffectAtMostOnce,
	}
	e.Digest = Digest(c.Name, c.Args, c.ArgsText)
	var t *compiled
	if s != nil {
		t = s.tools[c.Name]
	}
	if t == nil {
		e.Problem = &event.Problem{Type: event.ErrorUnknownTool, Message: s.unknown(c.Name)}
		return e
	}
	e.Effect, e.ReadOnly = cmp.Or(t.Effect, event.EffectAtMostOnce), t.ReadOnly
	if message := t.invalid(c); message != "" {
		e.Problem = &event.Problem{Type: event.ErrorInvalidArgs, Message: message}
		return e
	}
	e.Concurrent = t.Concurrent
	if t.ConcurrentFor != nil {
		e.Concurrent = t.ConcurrentFor(c.Args)
	}
	if t.Access != nil {
		e.Access = t.Access(c.Args)
	}
	if t.Describe != nil {
		e.Describe = t.Describe(c.Args)
	}
	return e
}

func (s *Set) unknown(name string) string {
	names := make([]string, 0, 8)
	if s != nil {
		for _, t := range s.sorted {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("there is no tool %q; this run has no tools", name)
	}
	return fmt.Sprintf("there is no tool %q; the tools are: %s", name, strings.Join(names, ", "))
}

func (t *compiled) invalid(c llm.ToolCall) string {
	if len(c.Args) == 0 {
		return fmt.Sprintf("the arguments of %s are not valid JSON: %s", t.Name, clip(c.ArgsText, 200))
	}
	if err := t.schema.Validate(c.Args); err != nil {
		return fmt.Sprintf("the arguments of %s do not fit its schema: %s", t.Name, err)
	}
	return ""
}

// AttemptTimeout is how long one attempt at a call may take.
func (t Tool) AttemptTimeout(args json.RawMessage) time.Duration {
	if t.TimeoutFor != nil {
		if d := t.TimeoutFor(args); d > 0 {
			return d
		}
	}
	return cmp.Or(t.Timeout, DefaultTimeout)
}

// Digest identifies a call by its tool and arguments; member order and white
// space of the arguments do not matter.
func Digest(name string, args json.RawMessage, text string) string {
	h := sha256.New()
	h.Write([]byte(name))
	h.Write([]byte{0})
	if canonical, err := canonicalJSON(args); err == nil {
		h.Write(canonical)
	} else {
		h.Write([]byte(text))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func canonicalJSON(raw json.RawMessage) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
