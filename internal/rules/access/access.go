// Package access is the only authorizer: it decides what a principal may do. HTTP,
// sockets and the command line call it with the principal that they have authenticated.
// There is no default role: a principal without a role may do nothing.
package access

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
)

// Role is what a principal may do. Each role includes the one before it.
type Role string

// The roles. Anyone is the role of operations that need no authentication, such
// as the health check.
const (
	Anyone Role = "anyone"
	// A viewer reads runs and changes nothing.
	Viewer Role = "viewer"
	// An editor starts runs of existing files, and decides about them.
	Editor Role = "editor"
	// An admin supplies files, which determine what a run may do.
	Admin Role = "admin"
)

// Roles returns the roles that a principal can have, from least to most powerful.
func Roles() []Role { return []Role{Viewer, Editor, Admin} }

// Known reports whether the role exists.
func (r Role) Known() bool { return r == Anyone || slices.Contains(Roles(), r) }

// Includes reports whether a role includes another one. An unknown role includes
// nothing, and no role includes an unknown one.
func (r Role) Includes(need Role) bool {
	if need == Anyone {
		return true
	}
	at := slices.Index(Roles(), need)
	return at >= 0 && slices.Index(Roles(), r) >= at
}

// Authorise returns nil if the principal has a role that includes need, and a
// [*DeniedError] otherwise.
func Authorise(p event.Principal, need Role) error {
	if role := Role(p.Role); !role.Includes(need) {
		return &DeniedError{Name: p.Name, Role: role, Need: need}
	}
	return nil
}

// DeniedError is returned for an operation that the principal's role does not allow.
type DeniedError struct {
	Name       string
	Role, Need Role
}

// Policy returns the error text that RondoFlow uses.
func (e *DeniedError) Policy() string {
	what := "running or modifying workflows"
	switch e.Need {
	case Viewer:
		what = "reading runs"
	case Admin:
		what = "what an admin does"
	}
	return "Your role does not permit " + what
}

// Error begins with [DeniedError.Policy].
func (e *DeniedError) Error() string {
	has := "no role"
	if e.Role.Known() {
		has = "the role " + string(e.Role)
	}
	return fmt.Sprintf("%s: %s has %s, and this needs %s", e.Policy(), cmp.Or(e.Name, "nobody"), has, e.Need)
}
