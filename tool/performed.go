package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/event"
)

// SendName is the tool with which a step of a workflow sends a message to its
// coordinator.
const SendName = "send_message"

// ForSteps returns the tools with which the agent of a workflow's step sends messages.
func ForSteps() []Tool {
	return []Tool{
		posting(SendName, "Send a message to the coordinator of the workflow: how you get on, what you need, what others should know. "+
			"It answers, if at all, with a message in your inbox.", "", field{"text", "what to say"}),
	}
}

// ForCoordinator returns the tools of the agent that receives messages of steps.
func ForCoordinator() []Tool {
	forward := posting("forward_to_agent", "Send a message to a step: by its id, like loop.0.worker, or by its bare name where only one step has it.",
		event.MessageInfo, field{"target", "the step's id or name"}, field{"text", "what to say"})
	forward.Schema = kinded(forward.Schema)
	final := posting("finalize", "Close your inbox, with your closing word for the whole workflow. Nothing more is sent to you.", event.MessageFinal, field{"text", "the closing word"})
	ends := final.Run
	final.Run = func(ctx context.Context, c Call) (Result, error) {
		r, err := ends(ctx, c)
		r.EndsRun = err == nil
		return r, err
	}
	return []Tool{
		forward,
		posting("narrate", "Tell the people who watch the workflow what goes on.", event.MessageNarration, field{"text", "what to tell them"}),
		final,
	}
}

type field struct{ name, about string }

// posting returns a tool that posts a message. The parent run carries the message of a
// call once, however often the call runs.
func posting(name, description string, kind event.MessageKind, fields ...field) Tool {
	properties, required := map[string]any{}, []string{}
	for _, f := range fields {
		properties[f.name] = map[string]any{"type": "string", "description": f.about, "minLength": 1}
		required = append(required, f.name)
	}
	return Tool{
		Name: name, Description: description, Effect: event.EffectIdempotent, ReadOnly: true, Labels: &event.Labels{},
		Schema: object(properties, required),
		Run: func(ctx context.Context, c Call) (Result, error) {
			var said struct {
				Target, Text string
				Kind         event.MessageKind
			}
			if err := json.Unmarshal(c.Args, &said); err != nil {
				return Result{}, fmt.Errorf("%s: %w", name, err)
			}
			if c.Post == nil {
				return Result{}, &Error{Type: event.ErrorUnavailable, Message: "no run is there to hear it"}
			}
			if said.Kind == "" {
				said.Kind = kind
			}
			told, err := c.Post(ctx, said.Target, said.Text, said.Kind)
			return Result{Output: told}, err
		},
	}
}

func object(properties map[string]any, required []string) json.RawMessage {
	raw, _ := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	return raw
}

// kinded adds the kind of a message to a schema.
func kinded(schema json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]any
		Required   []string
	}
	_ = json.Unmarshal(schema, &s)
	s.Properties["kind"] = map[string]any{
		"enum": []event.MessageKind{event.MessageInfo, event.MessageContextUpdate, event.MessageCancel}, "description": "cancel ends the step; info, the default, and context_update tell it something",
	}
	return object(s.Properties, s.Required)
}

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

// ResultName is the tool with which an agent submits a structured result.
const ResultName = "submit_result"

// ForResult declares the tool with which an agent submits its result; schema describes
// the tool's arguments. A valid call ends the run once the other calls of the same
// answer are done; an invalid one returns the errors to the model.
func ForResult(schema json.RawMessage) Tool {
	return Tool{
		Name: ResultName, Schema: schema, Effect: event.EffectPure, ReadOnly: true, Concurrent: true, Labels: &event.Labels{},
		Description: "Give the result of your task, once, when the work is done. This ends the task.",
		Run: func(context.Context, Call) (Result, error) {
			return Result{Output: `{"status": "ok"}`, EndsRun: true}, nil
		},
	}
}
