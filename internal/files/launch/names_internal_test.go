package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/files/spec"
)

// The file's rules also apply to tools whose names are known only when a run begins.
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
