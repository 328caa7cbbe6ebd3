package plan_test

import (
	"testing"

	"github.com/pawlrun/pawl/internal/rules/plan"
)

// ided has a step of each kind that has others in it.
func ided() *plan.Plan {
	inner := plan.Plan{Steps: []plan.Step{{ID: "b"}}}
	return &plan.Plan{Steps: []plan.Step{
		{ID: "a"},
		{ID: "sub", Plan: &inner},
		{ID: "again", Loop: &plan.Loop{Body: inner}},
		{ID: "each", Loop: &plan.Loop{Items: &plan.Items{}, Body: plan.Plan{Steps: []plan.Step{{ID: "c", Plan: &inner}}}}},
		{ID: "self", Loop: &plan.Loop{Single: true, Body: plan.Plan{Steps: []plan.Step{{}}}}},
	}}
}

func TestThePlanHasAnID(t *testing.T) {
	for id, has := range map[string]bool{
		"a": true, "b": true, "c": true, "sub.b": true, "again.0.b": true, "again.12.b": true, "each[0].c": true, "each[3].c.b": true, "self": true, "self.4": true,
		"": false, "d": false, "a.b": false, "sub": true, "sub.c": false, "again.b": false, "again.x.b": false, "again.-1.b": false, "again.0": false, "again[0].b": false,
		"each.0.c": false, "each[0]": false, "each[].c": false, "self.4.b": false, "self.": false,
	} {
		if got := ided().Has(id); got != has {
			t.Errorf("that it has %q is %t", id, got)
		}
	}
}

func FuzzThePlanHasAnID(f *testing.F) {
	f.Add("each[3].c.b")
	f.Fuzz(func(_ *testing.T, id string) { ided().Has(id) })
}
