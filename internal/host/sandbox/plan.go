package sandbox

import (
	"os"
	"syscall"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// programPath is the path of the supervisor's own program, which is valid in any file
// system.
const programPath = "/proc/self/fd/6"

// The files that a supervisor is started with, after the standard ones. The command
// does not inherit them.
const (
	firstExtra = 3
	// fdControl carries the plan as a line of JSON, and then orders of one byte each.
	// Its end is the order to kill everything.
	fdControl = 3
	// fdStatus receives a line of JSON for each report.
	fdStatus = 4
	// fdOutput is the command's output.
	fdOutput = 5
	// fdProxy, after the supervisor's own program, receives the listening sockets of
	// the command's network.
	fdProxy = 7
)

// orderTerminate asks the command and its process group to end.
const orderTerminate = 't'

// plan holds the instructions for a supervisor.
type plan struct {
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	// Input reports that the command gets the supervisor's stdin.
	Input bool `json:"input,omitempty"`
	// Errors is the descriptor of the command's stderr; 0 means its output.
	Errors int `json:"errors,omitempty"`
	// Namespace reports that the supervisor is the first process of a process
	// namespace, so that its end kills all others.
	Namespace bool `json:"namespace,omitempty"`
	// Unshared is what the namespaces tier builds in new namespaces.
	Unshared *unshared `json:"unshared,omitempty"`
	// Free reports that the command is not restricted.
	Free bool `json:"free,omitempty"`
	// Families are the allowed socket families; nil means all.
	Families []int `json:"families"`
	// Landlock holds the rules of the landlock tier, or those within namespaces.
	Landlock *ruleset `json:"landlock,omitempty"`
	// OwnSockets keeps the command from abstract sockets of other processes, if it
	// shares the machine's network.
	OwnSockets bool   `json:"own_sockets,omitempty"`
	Limits     Limits `json:"limits"`
	// Listen are the loopback ports to listen on: the proxy's, and then the ports of
	// the machine that are open to the command.
	Listen []uint16 `json:"listen,omitempty"`
}

// unshared is what a supervisor does first in new namespaces.
type unshared struct {
	// User and Group are this process's ids outside, to be mapped inside; nil if they
	// are already right.
	User  *int `json:"user,omitempty"`
	Group *int `json:"group,omitempty"`
	// Mounts build the file system.
	Mounts []mount `json:"mounts"`
	// Loopback reports that the network is new.
	Loopback bool `json:"loopback,omitempty"`
}

// ruleset is what a process may do with files; everything else is denied.
type ruleset struct {
	Read  []string `json:"read"`
	Write []string `json:"write"`
	// Device are files that may only be read and written.
	Device []string `json:"device"`
}

// report is a supervisor's report.
type report struct {
	// Started reports that the command runs.
	Started bool `json:"started,omitempty"`
	// Ended reports that the command has ended, with Exit or by Signal. Processes that
	// it left behind may still run.
	Ended  bool           `json:"ended,omitempty"`
	Exit   int            `json:"exit,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
	// Limit is the exceeded limit for which everything was killed.
	Limit string `json:"limit,omitempty"`
	// Error is why the command could not be started.
	Error string        `json:"error,omitempty"`
	Errno syscall.Errno `json:"errno,omitempty"`
}

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
