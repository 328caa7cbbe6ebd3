package sandbox

import (
	"errors"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// ErrUnavailable is returned if a tier does not work on this machine, or does not
// enforce a policy.
var ErrUnavailable = errors.New("sandbox: unavailable")

// Filesystem is what commands may write.
type Filesystem string

// The values of Filesystem.
const (
	// FilesystemReadOnly: only temporary files.
	FilesystemReadOnly Filesystem = "repo-readonly"
	// FilesystemReadWrite: the workspace, except what is protected in it.
	FilesystemReadWrite Filesystem = "repo-readwrite"
	// FilesystemFull: everything that this process may write, except what is protected
	// in the workspace. Only the paths of Hidden are hidden.
	FilesystemFull Filesystem = "full"
)

// Policy limits what the commands of a box may access. Paths are absolute.
type Policy struct {
	Workspace  string
	Filesystem Filesystem
	// Egress limits which machines may be reached; here an empty network means none. A
	// proxy enforces a list of hosts; programs find it by the usual variables
	// (HTTPS_PROXY). network: host is everything that this machine reaches.
	Egress egress.Rules
	// Protected decides what is read-only in the workspace; nil protects nothing.
	Protected Protection
	// Open lists what every command may also write, as its owner configured.
	Open []Grant
	// Readable are files and directories outside of the workspace that commands may
	// read, even in hidden places.
	Readable []string
	// Hidden are files and directories that commands cannot read.
	Hidden []string
	// Environment is the environment that locates programs in the home directory; nil
	// means os.Environ.
	Environment []string
	Limits      Limits
}

// Protection decides which paths of the workspace are protected. Paths are relative to
// the workspace and separated by "/".
type Protection interface {
	// Protects reports whether a path, or a directory above it, is protected.
	Protects(path string) bool
	// Below reports whether something below a directory may be protected.
	Below(dir string) bool
	// Named returns the protected paths that are named without a pattern, so that paths
	// created by a command can be checked.
	Named() []string
}

// Limits bound what one command and all that it starts may use together. A supervisor
// checks them several times a second, so a fast command can exceed a limit before it is
// stopped. A limit of 0 means its default, a negative one no limit.
type Limits struct {
	// MemoryBytes bounds the unshared memory; the default is half of the machine's, at
	// least 1 GiB.
	MemoryBytes int64
	// Processes bounds the processes; the default is 512.
	Processes int
}

// The limits in [End.Limit].
const (
	LimitMemory    = "memory"
	LimitProcesses = "processes"
)

// defaultProcesses is far more than a parallel build needs and far less than what makes
// a machine unusable.
const defaultProcesses = 512

func (l Limits) withDefaults() Limits {
	if l.MemoryBytes == 0 {
		l.MemoryBytes = max(1<<30, totalMemory()/2)
	}
	if l.Processes == 0 {
		l.Processes = defaultProcesses
	}
	return l
}

func (p Policy) withDefaults() Policy {
	if p.Filesystem == "" {
		p.Filesystem = FilesystemReadWrite
	}
	if p.Egress.Network == "" {
		p.Egress.Network = egress.NetworkNone
	}
	p.Limits = p.Limits.withDefaults()
	return p
}
