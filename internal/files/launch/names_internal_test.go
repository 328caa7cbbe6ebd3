package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/files/spec"
)

// What a file says of a tool holds for one whose name comes only when a run begins.
func TestRulesHoldForToolsThatAreNotBuiltIn(t *testing.T) {
	a := &spec.Agent{Tools: spec.Tools{
		Approvals: map[string]string{"docs.search": "always", "docs.read": "never", "docs.put": "protected_paths"},
		Risks:     map[string]string{"docs.drop": "delete"},
	}}
	r := rules(a, Options{Flags: Flags{Workspace: t.TempDir()}})
	got := [][]string{r.Gates, r.Open, r.GateProtected}
	if diff := cmp.Diff([][]string{{"docs.search"}, {"docs.read"}, {"docs.put"}}, got); diff != "" {
		t.Error(diff)
	}
	if r.HighRisk["docs.drop"] != "delete" {
		t.Errorf("risks %v", r.HighRisk)
	}
}
