// Package access is the one authoriser: it says what a principal may do. HTTP,
// sockets and the command line ask it, each with the principal that it has
// proven.
//
// Nobody may do what nobody has given a role to: there is no default.
package access

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
)

// Role is what somebody may do. Each role may do what the one before it may.
type Role string

// The roles. Anyone is the role of what needs no proof of who asks: that the
// server is alive.
const (
	Anyone Role = "anyone"
	// A viewer reads runs, and changes none.
	Viewer Role = "viewer"
	// An editor starts runs of the files that there are, and decides about them.
	Editor Role = "editor"
	// An admin brings files of their own, which decide what a run may do.
	Admin Role = "admin"
)

// Roles returns the roles that a principal can have, the least first.
func Roles() []Role { return []Role{Viewer, Editor, Admin} }

// Known reports whether there is such a role.
func (r Role) Known() bool { return r == Anyone || slices.Contains(Roles(), r) }

// Includes reports whether a role may do what another one is needed for. What is
// no role may do nothing, and nobody may do what is for no role.
func (r Role) Includes(need Role) bool {
	if need == Anyone {
		return true
	}
	at := slices.Index(Roles(), need)
	return at >= 0 && slices.Index(Roles(), r) >= at
}

// Authorise is nil for what a principal may do, and a [*DeniedError] for what not.
func Authorise(p event.Principal, need Role) error {
	if role := Role(p.Role); !role.Includes(need) {
		return &DeniedError{Name: p.Name, Role: role, Need: need}
	}
	return nil
}

// DeniedError is returned for what the role of a principal does not allow.
type DeniedError struct {
	Name       string
	Role, Need Role
}

// Policy is the sentence that people of RondoFlow know (RON-56).
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
