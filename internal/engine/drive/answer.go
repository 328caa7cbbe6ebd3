package drive

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// CheckDecision returns an error if an answer is not a decision.
func CheckDecision(q *event.Question, a event.Resolution) error {
	switch {
	case a.Kind == event.ApprovalExpired:
	case !slices.Contains(q.Takes, a.Kind):
		return fmt.Errorf("the answer is %q, none of %s", a.Kind, InWords(q.Takes))
	case a.Kind == event.ApprovalAnswered:
		return wrongInput(q, a)
	case a.Kind == event.ApprovalEdited && !json.Valid(a.Args):
		return errors.New("the arguments of the answer are no JSON")
	case a.Kind == event.ApprovalEdited && NestedTooDeep(a.Args):
		return fmt.Errorf("the arguments of the answer are nested deeper than %d levels", MaxNesting)
	}
	return nil
}

// InWords joins the ways to decide to a list in a sentence.
func InWords(kinds []event.ApprovalKind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// wrongInput returns what is wrong with the answer to a form.
func wrongInput(q *event.Question, a event.Resolution) error {
	d, _ := q.Asked.(event.ToolInputRequired)
	if err := tool.CheckInput(d.Form.Schema, a.Args); err != nil {
		return fmt.Errorf("the answer to %s: %w", q.ID, err)
	}
	return nil
}
