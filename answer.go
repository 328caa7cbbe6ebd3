package pawl

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/tool"
)

// ErrNoAnswer is returned by [State.Decode] for a run that has no final answer.
var ErrNoAnswer = errors.New("pawl: the run has no final answer")

// SchemaOf returns the JSON Schema of a Go type, for [Agent.Schema]. Fields are
// named and described by their json and jsonschema tags.
func SchemaOf[T any]() (json.RawMessage, error) {
	schema, err := tool.SchemaOf[T]()
	if err != nil {
		return nil, fmt.Errorf("pawl: %w", err)
	}
	return schema, nil
}

// Decode decodes the final answer of an agent with a Schema into v. The error wraps
// [ErrNoAnswer] for a run that ended otherwise.
func (s State) Decode(v any) error {
	if s.Outcome == nil || !s.Outcome.Completed {
		return ErrNoAnswer
	}
	if err := json.Unmarshal([]byte(s.Outcome.FinalOutput), v); err != nil {
		return fmt.Errorf("pawl: decode the final answer: %w", err)
	}
	return nil
}

// checkSchema reports an invalid schema, and settings that could end a run before there
// is an answer to validate.
func (a Agent) checkSchema(report func(field, format string, args ...any)) {
	if len(a.Schema) == 0 {
		return
	}
	var root struct {
		Type string `json:"type"`
	}
	if _, err := tool.CompileSchema(a.Schema); err != nil {
		report("Schema", "%v", err)
		return
	} else if err := json.Unmarshal(a.Schema, &root); err != nil || root.Type != "object" {
		report("Schema", "is not that of an object, and no provider answers by another")
	}
	if a.Conversation.OnNoToolCall != "" && a.Conversation.OnNoToolCall != agent.NoToolCallFinish {
		report("OnNoToolCall", "is %q, and with a Schema an answer without a call must end the run", a.Conversation.OnNoToolCall)
	}
	early := func(c Condition) bool { return c.Kind.Known() && !c.Kind.OfMoney() }
	if i := slices.IndexFunc(a.Termination.Conditions, early); i >= 0 {
		report(fmt.Sprintf("Conditions[%d]", i), "would end the run before there is an answer to hold to the Schema")
	}
}
