package access_test

import (
	"testing"

	"github.com/pawlrun/pawl/internal/rules/access"
)

// Each role includes the roles below it, and an unknown role includes nothing.
func TestARoleIncludesThoseBelowIt(t *testing.T) {
	for role, may := range map[access.Role]map[access.Role]bool{
		access.Viewer: {access.Viewer: true},
		access.Editor: {access.Viewer: true, access.Editor: true},
		access.Admin:  {access.Viewer: true, access.Editor: true, access.Admin: true},
		access.Anyone: {},
		"":            {},
		"owner":       {},
	} {
		for _, need := range append(access.Roles(), "", "owner") {
			if got := role.Includes(need); got != may[need] {
				t.Errorf("%q for %q: %t", role, need, got)
			}
		}
		if !role.Includes(access.Anyone) {
			t.Errorf("%q may not do what anyone may", role)
		}
	}
}
