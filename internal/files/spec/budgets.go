package spec

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/stop"
)

// Budgets are the limits of a run; 0 means the default, [budget.None] that there is no
// limit.
type Budgets struct {
	budget.Limits `yaml:",inline"`
	// Actions sets for each limit what reaching it means.
	Actions BudgetActions `yaml:"actions,omitempty"`
}

// BudgetActions maps the name of a limit to what reaching it means: stop, ok (a
// stop that counts as success) or ask (the run parks, and continues once the limit
// is raised).
type BudgetActions map[string]string

func (*BudgetActions) Expected() string { return "a mapping from a limit to stop, ok or ask" }

// JSONSchema returns the schema of the mapping.
func (*BudgetActions) JSONSchema() map[string]any {
	properties := map[string]any{}
	for _, setting := range budget.Stopping() {
		properties[setting] = map[string]any{
			"enum": []string{"stop", "ok", "ask"}, "description": "What reaching " + setting + " means: stop (the default), ok or ask.",
		}
	}
	return map[string]any{
		"type": "object", "properties": properties, "additionalProperties": false,
	}
}

func (b *Budgets) Validate(r *decode.Report, a *Agent) {
	for _, s := range budget.Table() {
		b.bounds(r, "budgets."+s.Name, s)
	}
	for _, setting := range slices.Sorted(maps.Keys(b.Actions)) {
		path := "budgets.actions." + setting
		if setting == budget.CycleCap {
			r.At(path, "on_limit", "is the cycle cap; on_limit says what reaching it means")
			continue
		}
		if !slices.Contains(budget.Stopping(), setting) {
			r.At(path, "one of "+strings.Join(budget.Stopping(), ", "), "is no limit that ends a run")
			continue
		}
		decode.OneOf(r, path, b.Actions[setting], "stop", "ok", "ask")
		if action := b.Actions[setting]; (action == "stop" || action == "ask") && budget.IsMoney(setting) && a.endsOnBudget() {
			r.At(path, "ok, or a file without the condition budget-exhausted",
				"is %q, and the condition budget-exhausted ends the run as ok when the money is used up", action)
		}
	}
}

// bounds checks that a limit, if given, has an allowed value.
func (b *Budgets) bounds(r *decode.Report, path string, s budget.Setting) {
	given, number := s.Value(b.Limits)
	if number && given == 0 && !r.Has(path) {
		return
	}
	switch p := s.Place(&b.Limits).(type) {
	case *int:
		decode.Limit(r, path, p, int(s.Low), int(s.High))
	case *int64:
		decode.Limit(r, path, p, int64(s.Low), math.MaxInt64)
	case *float64:
		if s.Kind == budget.Money {
			decode.Money(r, path, p)
		} else {
			decode.Limit(r, path, p, s.Low, s.High)
		}
	case **int:
		decode.Within(r, path, *p, int(s.Low), int(s.High))
	}
}

// endsOnBudget reports whether a condition of the file concerns money.
func (a *Agent) endsOnBudget() bool {
	return a.Iteration != nil && slices.ContainsFunc(a.Iteration.TerminationConditions, func(c stop.Condition) bool { return c.Kind.OfMoney() })
}
