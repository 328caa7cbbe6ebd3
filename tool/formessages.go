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
