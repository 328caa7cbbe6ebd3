package perform

import (
	"encoding/json"
	"testing"

	"github.com/pawlrun/pawl/internal/files/expr"
	"github.com/pawlrun/pawl/internal/machine"
)

// The machine decides by the recorded kind, not by the text of an error.
func TestTheKindOfAnExpressionsErrorIsRecorded(t *testing.T) {
	env := &Performer{Env: Env{Evaluate: expr.New().Evaluate}}
	for expression, want := range map[string]string{
		"steps.plan-it.result.ready": "true", "steps.plan-it.result.late": "missing_key", "steps.other.status": "missing_key",
		"steps.plan-it + 1": "wrong_type", "nobody": "unknown_name",
	} {
		variables := json.RawMessage(`{"steps": {"plan-it": {"result": {"ready": true}}}}`)
		if got := env.EvaluateExpression(t.Context(), machine.Evaluate{Expression: expression, Variables: variables}); string(got.Value)+got.ErrorType != want {
			t.Errorf("%s: got %+v, want %s", expression, got, want)
		}
	}
}
