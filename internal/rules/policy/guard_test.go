package policy_test

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/internal/rules/policy"
)

// A sandbox asks about every file of a workspace before each command.
func TestANameIsReadOnceForAllPatterns(t *testing.T) {
	patterns := []policy.Pattern{"**/*.pem", "conf/production.yaml"}
	asked := func(g policy.Guard) float64 {
		return testing.AllocsPerRun(100, func() {
			if name := "Some/Dir/Untidy. Name"; g.Protects(name) || !g.Below(name) {
				t.Errorf("%s is protected, or nothing below it may be", name)
			}
		})
	}
	two, hundred := asked(policy.NewGuard(patterns...)), asked(policy.NewGuard(slices.Repeat(patterns, 50)...))
	if hundred > two {
		t.Errorf("%v allocations for 2 patterns and %v for 100", two, hundred)
	}
}

func TestAGuardProtectsWhatOneOfItsPatternsGuards(t *testing.T) {
	g := policy.NewGuard("conf/production.yaml", ".git/**")
	for name, want := range map[string]bool{
		"CONF/production.yaml": true, ".git/hooks/x": true, "conf/other.yaml": false, ".github/x": false,
	} {
		if got := g.Protects(name); got != want {
			t.Errorf("%s is protected: %t", name, got)
		}
	}
	for dir, want := range map[string]bool{"conf": true, ".git": true, "build": false} {
		if got := g.Below(dir); got != want {
			t.Errorf("something below %s may be protected: %t", dir, got)
		}
	}
	if none := policy.NewGuard(); none.Protects("a") || none.Below(".") {
		t.Error("no patterns protect something")
	}
}
