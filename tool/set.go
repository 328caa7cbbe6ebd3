package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// Set holds the tools of one run, sorted by name. It is safe for concurrent use.
type Set struct {
	tools  map[string]*compiled
	sorted []*compiled
}

type compiled struct {
	Tool
	schema *declared
}

// NewSet checks the tools and compiles their schemas. Names must be unique and free of
// white space, and a schema must describe an object, because every provider sends one.
// It returns all errors at once, joined.
func NewSet(tools ...Tool) (*Set, error) { return (*Set)(nil).Again(tools...) }

// Again is [NewSet] for another run of the same agent: it does not compile again the
// schema of a tool that s already has. A nil set has none.
func (s *Set) Again(tools ...Tool) (*Set, error) {
	next := &Set{tools: make(map[string]*compiled, len(tools))}
	var problems []error
	for _, t := range tools {
		if err := next.add(t, s.lookup(t.Name)); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	slices.SortFunc(next.sorted, func(a, b *compiled) int { return cmp.Compare(a.Name, b.Name) })
	return next, nil
}

func (s *Set) add(t Tool, before *compiled) error {
	c, err := newCompiled(t, before)
	if err != nil {
		return err
	}
	if s.tools[t.Name] != nil {
		return fmt.Errorf("tool: %s is declared twice", t.Name)
	}
	if other := s.search(); t.Search && other != "" {
		return fmt.Errorf("tool: %s and %s are both declared to search for tools; only one can", other, t.Name)
	}
	s.tools[t.Name] = c
	s.sorted = append(s.sorted, c)
	return nil
}

var effects = []event.Effect{
	"", event.EffectPure, event.EffectIdempotent, event.EffectReconcilable, event.EffectAtMostOnce,
}

var risks = []event.Risk{
	"", event.RiskRead, event.RiskWrite, event.RiskExecute, event.RiskDelete, event.RiskSend, event.RiskPermission,
	event.RiskFinancial, event.RiskUnknown,
}

func newCompiled(t Tool, before *compiled) (*compiled, error) {
	switch {
	case t.Name == "":
		return nil, errors.New("tool: a tool has no name")
	case strings.ContainsFunc(t.Name, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) }):
		return nil, fmt.Errorf("tool: the name %q has white space or control characters in it", t.Name)
	case t.Run == nil && !t.Agent:
		return nil, fmt.Errorf("tool: %s has no Run function", t.Name)
	case t.Run != nil && t.Agent:
		return nil, fmt.Errorf("tool: %s is an agent and has a Run function, which is never called", t.Name)
	case !slices.Contains(effects, t.Effect):
		return nil, fmt.Errorf("tool: %s declares the unknown effect class %q", t.Name, t.Effect)
	case !slices.Contains(risks, t.Risk):
		return nil, fmt.Errorf("tool: %s declares the unknown risk %q", t.Name, t.Risk)
	case t.Search && t.Deferred:
		return nil, fmt.Errorf("tool: %s searches for tools and is deferred itself, so it can never be found", t.Name)
	}
	if len(t.Schema) == 0 {
		t.Schema = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	}
	schema := t.declared
	switch {
	case before != nil && bytes.Equal(before.Schema, t.Schema):
		schema = before.schema
	case schema == nil || !bytes.Equal(schema.raw, t.Schema):
		schema = &declared{raw: t.Schema}
		if _, err := schema.compile(); err != nil {
			return nil, fmt.Errorf("tool: schema of %s: %w", t.Name, err)
		}
	}
	return &compiled{Tool: t, schema: schema}, nil
}

// declared is a schema that is compiled once for all sets with its tool. A schema of
// [New] is known to be valid, so it is compiled at the first validation; any other in
// the first set.
type declared struct {
	raw      json.RawMessage
	once     sync.Once
	compiled *Schema
	err      error
}

func (d *declared) compile() (*Schema, error) {
	d.once.Do(func() { d.compiled, d.err = compileObject(d.raw) })
	return d.compiled, d.err
}

func (d *declared) fit(raw json.RawMessage, v any) (json.RawMessage, error) {
	s, err := d.compile()
	if err != nil {
		return nil, err
	}
	return s.fit(raw, v)
}

func compileObject(raw json.RawMessage) (*Schema, error) {
	schema, err := CompileSchema(raw)
	if err != nil {
		return nil, err
	}
	var root struct{ Type any }
	if err := json.Unmarshal(raw, &root); err != nil || root.Type != "object" {
		return nil, errors.New(`"type" must be "object" at its root`)
	}
	return schema, nil
}

// Defs returns the definitions of the tools for the model, in a stable order.
func (s *Set) Defs() []llm.ToolDef {
	if s == nil {
		return nil
	}
	defs := make([]llm.ToolDef, len(s.sorted))
	for i, t := range s.sorted {
		defs[i] = llm.ToolDef{Name: t.Name, Description: t.Description, Schema: t.Schema, Deferred: t.Deferred, Search: t.Search}
	}
	return defs
}

// Lookup returns a tool by name.
func (s *Set) Lookup(name string) (Tool, bool) {
	t := s.lookup(name)
	if t == nil {
		return Tool{}, false
	}
	return t.Tool, true
}

// Resolve establishes what policy and dispatch must know about a call before it is
// judged. It never runs the tool. A call without any argument text has the arguments
// {}, because some providers omit an empty object.
func (s *Set) Resolve(callID string, c llm.ToolCall) event.ToolCall {
	c = s.inner(c)
	e := event.ToolCall{
		CallID: callID, ProviderID: c.ProviderID, Tool: c.Name, Args: c.Args, ArgsText: c.ArgsText,
		Effect: event.EffectAtMostOnce,
	}
	if len(e.Args) == 0 && strings.TrimSpace(e.ArgsText) == "" {
		e.Args = json.RawMessage("{}")
	}
	args, err := parse(e.Args)
	if err != nil {
		e.Digest = Digest(e.Tool, e.Args, e.ArgsText)
	} else {
		e.Digest = digest(e.Tool, args)
	}
	t := s.lookup(c.Name)
	if t == nil {
		e.Problem = &event.Problem{Type: event.ErrorUnknownTool, Message: s.unknown(c.Name)}
		return e
	}
	e.Effect, e.ReadOnly, e.Polling, e.Agent = t.effect(), t.ReadOnly, t.Polling, t.Agent
	switch {
	case err != nil:
		if _, wrong := parse([]byte(e.ArgsText)); len(e.Args) == 0 && wrong != nil {
			err = wrong
		}
		e.Problem = t.invalid("are not valid JSON: " + err.Error() + fragment(cmp.Or(e.ArgsText, string(e.Args))))
	default:
		corrected, err := t.schema.fit(e.Args, args)
		if corrected != nil {
			e.Args, e.Sent = corrected, e.Args
			e.Digest = Digest(e.Tool, e.Args, "")
		}
		if err != nil {
			e.Problem = t.invalid("do not fit its schema: " + err.Error() + notObject(args, e.Args))
		} else {
			e.Problem = t.declare(&e)
		}
	}
	return e
}

// inner returns the call that a call of [llm.CallTool] contains, if the set has both
// tools; everything after that concerns the inner call. It returns any other call
// unchanged.
func (s *Set) inner(c llm.ToolCall) llm.ToolCall {
	if inner, ok := c.Inner(); ok && s.lookup(llm.CallTool) != nil && s.lookup(inner.Name) != nil {
		return inner
	}
	return c
}

// declare calls the tool's functions for the facts of a call. A call is not run if one
// of them panics, or if one writes into the arguments, because later ones would
// describe another call.
func (t *compiled) declare(e *event.ToolCall) (problem *event.Problem) {
	defer func() {
		if p := recover(); p != nil {
			problem = &event.Problem{Type: event.ErrorPanic, Message: fmt.Sprintf("what %s declares of this call panicked: %v", t.Name, p)}
		}
	}()
	args := bytes.Clone(e.Args)
	defer func() {
		if problem == nil && !bytes.Equal(args, e.Args) {
			problem = &event.Problem{Type: event.ErrorTool, Message: "what " + t.Name + " declares of this call changed the arguments that it was asked about"}
		}
	}()
	if t.Check != nil {
		if err := t.Check(args); err != nil {
			return problemOf(err)
		}
	}
	e.Concurrent = t.Concurrent
	if t.ConcurrentFor != nil {
		e.Concurrent = t.ConcurrentFor(args)
	}
	if t.Access != nil {
		e.Access = t.Access(args)
	}
	if t.Facts != nil {
		facts := t.Facts(args)
		facts.Remote = t.Remote
		e.Facts = &facts
	}
	if t.Risk != "" {
		if e.Facts == nil {
			e.Facts = &event.Facts{}
		}
		e.Facts.Risk = t.Risk
	}
	e.Labels = t.labels(args, e.Facts)
	if t.Describe != nil {
		e.Describe = label(t.Describe(args))
	}
	return nil
}

// problemOf returns the tool's error as the reason not to run a call.
func problemOf(err error) *event.Problem {
	if typed, ok := errors.AsType[*Error](err); ok {
		return &event.Problem{Type: typed.Type, Message: typed.Message}
	}
	return &event.Problem{Type: event.ErrorTool, Message: err.Error()}
}

func (t *compiled) invalid(what string) *event.Problem {
	return &event.Problem{Type: event.ErrorInvalidArgs, Message: "the arguments of " + t.Name + " " + what}
}

// notObject quotes arguments that are not an object. Other arguments are already in the
// conversation.
func notObject(args any, raw json.RawMessage) string {
	if _, ok := args.(map[string]any); ok {
		return ""
	}
	return fragment(string(raw))
}

func fragment(text string) string {
	if text == "" {
		return ""
	}
	return "; they were: " + clip(text, 200)
}

// label makes a text safe for one line of a terminal: a model's text must not move the
// cursor, ring the bell or reverse the line.
func label(s string) string {
	const maxLabel = 200
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, clip(s, 4*maxLabel))
	if runes := []rune(s); len(runes) > maxLabel {
		s = string(runes[:maxLabel]) + "…"
	}
	return strings.TrimSpace(s)
}

// search returns the name of the tool that finds deferred tools, "" for none.
func (s *Set) search() string {
	for _, t := range s.sorted {
		if t.Search {
			return t.Name
		}
	}
	return ""
}

func (s *Set) lookup(name string) *compiled {
	if s == nil {
		return nil
	}
	return s.tools[name]
}

func (s *Set) unknown(name string) string {
	name = clip(name, 100)
	if s == nil || len(s.sorted) == 0 {
		return fmt.Sprintf("there is no tool %q; this run has no tools", name)
	}
	var names []string
	others := ""
	for _, t := range s.sorted {
		if t.Deferred && s.lookup(llm.CallTool) != nil {
			others = "; others are called by " + llm.CallTool
			continue
		}
		names = append(names, t.Name)
	}
	return fmt.Sprintf("there is no tool %q; the tools are: %s%s", name, quoted(names), others)
}

// AttemptTimeout returns the time limit of one attempt at a call.
func (t Tool) AttemptTimeout(args json.RawMessage) time.Duration {
	if d := t.askedTimeout(args); d > 0 {
		return d
	}
	if t.Timeout > 0 {
		return t.Timeout
	}
	return DefaultTimeout
}

func (t Tool) askedTimeout(args json.RawMessage) (d time.Duration) {
	defer func() {
		if recover() != nil {
			d = 0
		}
	}()
	if t.TimeoutFor == nil {
		return 0
	}
	return t.TimeoutFor(bytes.Clone(args))
}

// clip cuts a text to n bytes, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
