package access_test

import (
	"testing"

	"github.com/pawlrun/pawl/internal/rules/access"
)

// Each role may do what the roles below it may, and what is no role nothing.
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
