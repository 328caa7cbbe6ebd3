package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// classMissing is the failure class of a step whose text refers to a missing value.
const classMissing = "missing_value"

// named is a value that a step's text refers to by name.
type named struct {
	text string
	// from is the step or iteration that produced it, empty for the plan or the run's
	// input. whole is as in [stepEnd].
	from  string
	whole bool
	// of is the step that produced the content or result.
	of      *node
	content bool
}

// filled returns a step's text with names replaced by their values, formatted by shown.
// It does not replace names inside a value.
func (m *Machine) filled(n *node, text string, shown func(named) string) (string, error) {
	if !m.cfg.Plan.Templates {
		return text, nil
	}
	var b strings.Builder
	for _, p := range plan.Pieces(text) {
		b.WriteString(p.Text)
		if len(p.Path) == 0 {
			continue
		}
		v, ok := m.named(n, p.Path)
		if !ok {
			return "", fmt.Errorf("there is no value {{%s}}", strings.Join(p.Path, "."))
		}
		b.WriteString(shown(v))
	}
	return b.String(), nil
}

// named looks up a path in the values visible to a step.
func (m *Machine) named(n *node, path []string) (v named, ok bool) {
	switch p := n.in.element(); {
	case path[0] == "input" && len(path) == 1:
		return named{text: m.task}, true
	case path[0] == "index" && len(path) == 1 && p != nil:
		return named{text: strconv.Itoa(p.index)}, true
	case path[0] == "item" && p != nil:
		if p.of.plan.Items.Expression != "" {
			v.from = "item"
		}
		v.text, ok = textAt(p.item, path[1:])
		return v, ok
	case path[0] == "steps" && len(path) > 2:
		return n.awaited(path[1]).named(path[2], path[3:])
	}
	return v, false
}

// named looks up a path in the values of an ended step.
func (n *node) named(field string, path []string) (v named, ok bool) {
	if n == nil {
		return v, false
	}
	switch v = (named{from: n.id, whole: n.whole, of: n}); field {
	case "content":
		v.text, v.content, ok = n.content, true, len(path) == 0
	case "status":
		v.text, v.from, ok = string(n.status), "", len(path) == 0
	case "result":
		v.from += ".result"
		v.text, ok = textAt(n.result, path)
	case "results":
		v.from, v.whole = v.from+".results", true
		v.text, ok = textAt(n.results, path)
	}
	return v, ok
}

// awaited returns the step with an id that a step or one of its enclosing steps depends
// on, nil for none.
func (n *node) awaited(id string) *node {
	for at := n; at != nil; at = at.in.in {
		for i := range at.vertex.waitsFor() {
			if s := at.in.steps[i]; s.step().ID == id {
				return s
			}
		}
	}
	return nil
}

// element returns the enclosing pass over an item, nil for none.
func (s *scope) element() *pass {
	for at := s; at.in != nil; at = at.in.in {
		if at.pass != nil && at.pass.of.plan.Items != nil {
			return at.pass
		}
	}
	return nil
}

// textAt returns the value at a path of a JSON value. A string is returned as it is,
// any other value as JSON.
func textAt(raw json.RawMessage, path []string) (text string, ok bool) {
	for _, key := range path {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		if json.Unmarshal(raw, &object) == nil && object != nil {
			raw = object[key]
		} else if i, err := strconv.Atoi(key); err == nil && json.Unmarshal(raw, &list) == nil && i >= 0 && i < len(list) {
			raw = list[i]
		} else {
			return "", false
		}
	}
	if len(raw) == 0 {
		return "", false
	}
	if raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "", false
	}
	return b.String(), true
}

// missing returns the failure of a step whose texts refer to a missing value, nil if
// nothing is missing.
func (m *Machine) missing(n *node) *event.Failure {
	for _, text := range n.step().Texts() {
		if _, err := m.filled(n, text, func(named) string { return "" }); err != nil {
			return &event.Failure{Class: classMissing, Message: err.Error()}
		}
	}
	return nil
}

// instruct inserts values into a step's instructions. It fences results of other steps,
// and the rest of the task does not repeat them.
func (m *Machine) instruct(t *Material, n *node, text string) {
	left, inlined := MostOfAll, map[string]bool{}
	filled, err := m.filled(n, text, func(v named) string {
		if v.from == "" {
			return v.text
		}
		most := min(MostOfOne, left)
		if v.whole {
			most = left
		}
		kept, note := newest(v.text, most)
		left -= len(kept)
		if v.content {
			inlined[v.of.id] = true
		}
		t.Fenced = true
		return note + t.Fence.Wrap(v.from, kept)
	})
	if err != nil { // a step with a missing value does not start
		filled = text
	}
	t.Instructions, t.Used = filled, MostOfAll-left
	for i := range t.Sections {
		if s := &t.Sections[i]; inlined[s.From] && s.Content != "" {
			s.Content, s.Note = "", "What it said stands in the instructions."
		}
	}
}

// argv returns the arguments of a command with values inserted. Each argument remains a
// single argument.
func (m *Machine) argv(n *node, argv []string) ([]string, error) {
	filled := make([]string, len(argv))
	for i, arg := range argv {
		if filled[i] = arg; i == 0 {
			continue
		}
		var err error
		if filled[i], err = m.filled(n, arg, func(v named) string { return v.text }); err != nil {
			return nil, err
		}
	}
	return filled, nil
}

// The variables that contain the run's input and item for a command.
const (
	InputVariable = "PAWL_INPUT"
	ItemVariable  = "PAWL_ITEM"
)

// mostVariable limits the size of a variable in bytes, because an operating system
// rejects longer ones.
const mostVariable = 100_000

// environment returns the additional variables for a step's commands.
func (m *Machine) environment(n *node) (env []string) {
	if m.cfg.Edition == 0 {
		return nil
	}
	set := func(name, text string) {
		if len(text) <= mostVariable && !strings.ContainsRune(text, 0) {
			env = append(env, name+"="+text)
		}
	}
	set(InputVariable, m.task)
	if p := n.in.element(); p != nil {
		text, _ := textAt(p.item, nil)
		set(ItemVariable, text)
	}
	return env
}

// handed returns the combined taint of the values that a command gets: the run's input,
// the item, and the values in its arguments.
func (m *Machine) handed(n *node, argv []string) event.Taint {
	if m.cfg.Edition == 0 {
		return event.Taint{}
	}
	taint := m.given
	if p := n.in.element(); p != nil && p.of.plan.Items.Expression != "" {
		taint = taint.With(m.takesIn(p.of.of))
	}
	if !m.cfg.Plan.Templates {
		return taint
	}
	for _, arg := range argv {
		for _, path := range plan.Named(arg) {
			if path[0] != "steps" || len(path) < 2 {
				continue
			}
			if of := n.awaited(path[1]); of != nil {
				taint = taint.With(of.taint)
			}
		}
	}
	return taint
}
