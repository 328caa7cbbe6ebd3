package drive

import (
	"encoding/json"
	"errors"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// CheckAnswer validates an answer against the run's schema. The result is
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

// ErrRecorded marks a recorded result of a tool. The result contains its own
// labels, so the labels of its tool add nothing.
var ErrRecorded = errors.New("drive: the result of a record")
