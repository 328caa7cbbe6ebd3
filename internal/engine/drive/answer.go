package drive

import (
	"encoding/json"
	"errors"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// CheckAnswer holds an answer against the run's schema. What it finds is
// journalled, so that no later version of the validator changes a run.
func CheckAnswer(a machine.CheckAnswer) event.AnswerChecked {
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

// ErrRecorded goes with a result of a tool that was recorded, as far as the driver: the
// result says itself what came in, and the labels of its tool add nothing.
var ErrRecorded = errors.New("drive: the result of a record")
