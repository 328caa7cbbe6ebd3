package sandbox

import (
	"os"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// unshared returns what the supervisor of a command builds in its new namespaces.
func (b *Box) unshared(v view) *unshared {
	u := &unshared{
		Mounts:   v.mounts(b.policy.Limits.MemoryBytes, b.temp, b.home),
		Loopback: b.policy.Egress.Network != egress.NetworkHost,
	}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		u.User, u.Group = &uid, &gid
	}
	return u
}

// within returns the rules for a command that runs with the mounts of a view. The
// mounts already enforce what is protected and hidden; the rules deny other writes even
// if the mounts change.
func (v view) within() *ruleset {
	r := &ruleset{Read: []string{"/"}, Write: []string{"/dev/shm", "/proc"}, Device: []string{"/dev"}}
	if v.full {
		r.Write = append(r.Write, "/")
	}
	r.Write = append(r.Write, v.hidden...)
	r.Write = append(r.Write, v.write...)
	r.Write = append(r.Write, v.grant...)
	return r
}
