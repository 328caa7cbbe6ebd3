package tool

import (
	"encoding/json"

	"github.com/pawlrun/pawl/event"
)

// Task holds the arguments of an agent that is offered as a tool.
type Task struct {
	Task string `json:"task"`
}

var taskSchema = json.RawMessage(`{"type":"object","properties":{"task":{"type":"string","minLength":1,` +
	`"description":"What the agent is to do, with everything that it must know: it sees nothing of this conversation."}},` +
	`"required":["task"],"additionalProperties":false}`)

// ForAgent declares an agent as a tool. A call's arguments are a [Task]; its result is
// the final output of the agent's run. The agent's own tools determine the properties
// of the call: it changes nothing, and may run beside others, if that holds for all of
// them; it can send if one of them can. An agent's output is untrusted text, like any
// text that is not the owner's.
func ForAgent(name, description string, own *Set) Tool {
	t := Tool{
		Name: name, Description: description, Schema: taskSchema, Effect: event.EffectAtMostOnce, Agent: true,
		ReadOnly: true, Concurrent: true, Labels: &event.Labels{Untrusted: true},
	}
	if own == nil {
		return t
	}
	for _, c := range own.sorted {
		t.ReadOnly = t.ReadOnly && c.ReadOnly
		t.Concurrent = t.Concurrent && c.Concurrent
		switch {
		case c.LabelsFor != nil:
			t.Labels.Private, t.Labels.Outgoing = true, true
		case c.Labels != nil:
			t.Labels.Private = t.Labels.Private || c.Labels.Private
			t.Labels.Outgoing = t.Labels.Outgoing || c.Labels.Outgoing
		default:
			t.Labels.Outgoing = t.Labels.Outgoing || !c.ReadOnly
		}
	}
	return t
}
