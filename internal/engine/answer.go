package engine

import (
	"encoding/json"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// checkAnswer holds an answer against the run's schema. What it finds is
// journalled, so that no later version of the validator changes a run.
func checkAnswer(a machine.CheckAnswer) event.AnswerChecked {
	checked := event.AnswerChecked{Cycle: a.Cycle}
	schema, err := tool.CompileSchema(a.Schema)
	if err == nil {
		err = schema.Validate(json.RawMessage(a.Answer))
	}
	if err != nil {
		checked.Problem = err.Error()
	}
	return checked
}
