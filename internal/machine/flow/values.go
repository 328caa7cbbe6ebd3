package flow

import (
	"encoding/json"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
)

// Value is the result of a step for expressions and functions.
type Value struct {
	Content string           `json:"content"`
	Status  event.StepStatus `json:"status"`
	Result  json.RawMessage  `json:"result,omitempty"`
	// Results are the results of a loop over items, in order: for each item its result,
	// its content if it has no result, or null if it did not complete.
	Results json.RawMessage `json:"results,omitempty"`
}

// Values are the values for expressions and functions.
type Values struct {
	// Steps are the dependencies of a step, by id, and the steps of an ended iteration.
	Steps map[string]Value `json:"steps"`
	// Item and Index are the step's item, nil for none.
	Item  json.RawMessage `json:"item,omitempty"`
	Index *int            `json:"index,omitempty"`
	// Iteration counts from 0; it is nil outside of loops. Content, Result and Status
	// belong to the last ended iteration.
	Iteration *int             `json:"iteration,omitempty"`
	Content   string           `json:"content"`
	Result    json.RawMessage  `json:"result,omitempty"`
	Status    event.StepStatus `json:"status,omitempty"`
	// Input is the workflow's input, for functions that are steps, and in a team.
	Input string `json:"input,omitempty"`
	// Round is the number of a team's round, starting at 1, and Previous the result of
	// the previous round.
	Round    int    `json:"round,omitempty"`
	Previous *Value `json:"previous,omitempty"`
}

// variables returns the values for a step's own expressions: its direct and indirect
// dependencies, and its pass.
func (n *node) variables() json.RawMessage { return encoded(n.values()) }

func (n *node) values() Values {
	v := n.in.surroundings()
	for i := range n.vertex.waitsFor() {
		v.set(n.in.steps[i])
	}
	return v
}

func (v *Values) set(n *node) {
	v.Steps[n.step().ID] = Value{n.content, n.status, n.result, n.results}
}

// surroundings adds the item or the iteration of a scope, and the result of the
// previous pass.
func (s *scope) surroundings() Values {
	v := Values{Steps: map[string]Value{}}
	for at := s; at.in != nil; at = at.in.in {
		p := at.pass
		if p == nil {
			continue
		}
		index := p.index
		if p.of.plan.Items != nil {
			v.Item, v.Index = p.item, &index
			break
		}
		if v.Iteration = &index; index > 0 {
			before := p.of.passes[index-1]
			v.Content, v.Result, v.Status = before.content, before.result, before.status
		}
		break
	}
	return v
}

// variables returns the values for checking an ended pass.
func (m *Machine) variables(s *scope) json.RawMessage {
	v := s.surroundings()
	if !s.pass.of.plan.Single {
		for _, n := range s.steps {
			v.set(n)
		}
	}
	end := s.pass.of.passes[s.pass.index]
	v.Content, v.Result, v.Status = end.content, end.result, end.status
	if m.cfg.Plan.Team {
		v.Input, v.Round, v.Previous = m.task, s.pass.index+1, &Value{Content: end.content, Status: end.status, Result: end.result}
	}
	return encoded(v)
}

func encoded(v Values) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

// missingKey is the error type of an expression that refers to a missing key.
const missingKey = "missing_key"

// Failure classes.
const (
	classDependency = "dependency_failed"
	classTimeout    = "timeout"
	classNoResult   = "no_result"
)

func (m *Machine) evaluate(n *node, id, expression string, variables func() json.RawMessage, then func(event.ConditionEvaluated)) {
	n.request = "evaluate " + id
	m.requests.add(n.request, func() []machine.Action {
		return []machine.Action{machine.Evaluate{ID: id, Step: n.id, Expression: expression, Variables: variables()}}
	}, func(d event.Data) {
		n.request = ""
		then(d.(event.ConditionEvaluated))
	})
}

func (m *Machine) conditional(n *node, d event.ConditionEvaluated) {
	switch holds, err := truth(d); {
	case d.ErrorType == missingKey:
		m.skip(n, "its condition names what is not there: "+d.Error, false)
	case err != "":
		m.finish(n, event.StepFinished{Status: event.StepStatusFailed, Error: conditionError(d.Expression, err)})
	case holds:
		m.queue(n)
	default:
		m.skip(n, "its condition is false", false)
	}
}

// truth returns the value of a condition, or in err the reason why it has none.
func truth(d event.ConditionEvaluated) (holds bool, err string) {
	if d.Error != "" {
		return false, d.Error
	}
	if json.Unmarshal(d.Value, &holds) != nil {
		return false, "it gave " + string(d.Value) + ", which is neither true nor false"
	}
	return holds, ""
}

func conditionError(expression, err string) *event.Failure {
	return &event.Failure{Class: string(event.ReasonConditionError), Message: expression + ": " + err}
}
