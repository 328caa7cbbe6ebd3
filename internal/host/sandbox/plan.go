package sandbox

import "syscall"

// programPath is the supervisor's own program as it finds it itself, which works
// whatever file system it is in.
const programPath = "/proc/self/fd/6"

// The files that a supervisor is started with, after the standard ones. It
// keeps all of them to itself.
const (
	firstExtra = 3
	// fdControl brings the plan as a line of JSON, and then orders of one byte
	// each. Its end is the order to end everything.
	fdControl = 3
	// fdStatus takes a line of JSON for each report.
	fdStatus = 4
	// fdOutput is what the command prints to.
	fdOutput = 5
	// fdProxy, behind the supervisor's own program, takes the listening sockets of the command's network.
	fdProxy = 7
)

// orderTerminate asks the command and its process group to end.
const orderTerminate = 't'

// plan is what a supervisor shall do.
type plan struct {
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	// Input says that the command reads what the supervisor itself could read.
	Input bool `json:"input,omitempty"`
	// Errors is the descriptor of the command's stderr; 0 is that of its output.
	Errors int `json:"errors,omitempty"`
	// Namespace says that the supervisor is the first process of a process
	// namespace: with its end, everything in there ends.
	Namespace bool `json:"namespace,omitempty"`
	// Unshared is what the namespaces tier builds in namespaces that are new.
	Unshared *unshared `json:"unshared,omitempty"`
	// Free restricts the command in nothing.
	Free bool `json:"free,omitempty"`
	// Families are the socket families that may be used; nil means all.
	Families []int `json:"families"`
	// Landlock are the rules of the landlock tier, or those within namespaces.
	Landlock *ruleset `json:"landlock,omitempty"`
	// OwnSockets keeps the command from abstract sockets that it did not make, in a
	// network that is the machine's.
	OwnSockets bool   `json:"own_sockets,omitempty"`
	Limits     Limits `json:"limits"`
	// Listen are the ports of the loopback to listen on: the proxy's, and then
	// those of the machine that are open to the command.
	Listen []uint16 `json:"listen,omitempty"`
}

// unshared is what a supervisor does in namespaces that are new, before anything
// else.
type unshared struct {
	// User and Group are this process's ids, to be kept inside; nil if they are
	// already right.
	User  *int `json:"user,omitempty"`
	Group *int `json:"group,omitempty"`
	// Mounts build the file system.
	Mounts []mount `json:"mounts"`
	// Loopback: the network is new.
	Loopback bool `json:"loopback,omitempty"`
}

// ruleset is what a process may do with files; all else is denied.
type ruleset struct {
	Read  []string `json:"read"`
	Write []string `json:"write"`
	// Device are files that are read and written as they are: no more may be
	// done with them.
	Device []string `json:"device"`
}

// report is what a supervisor says.
type report struct {
	// Started: the command runs.
	Started bool `json:"started,omitempty"`
	// Ended: the command has ended, with Exit or by Signal. What it left
	// behind still runs.
	Ended  bool           `json:"ended,omitempty"`
	Exit   int            `json:"exit,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
	// Limit is what was passed, so that everything was killed.
	Limit string `json:"limit,omitempty"`
	// Error: the command could not be started.
	Error string        `json:"error,omitempty"`
	Errno syscall.Errno `json:"errno,omitempty"`
}
