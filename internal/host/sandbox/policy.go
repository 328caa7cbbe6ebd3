package sandbox

import (
	"errors"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// ErrUnavailable is returned where a tier does not work on this machine, or
// does not hold what a policy demands of it.
var ErrUnavailable = errors.New("sandbox: unavailable")

// Filesystem is what commands may write.
type Filesystem string

// The file systems.
const (
	// FilesystemReadOnly: nothing but temporary files.
	FilesystemReadOnly Filesystem = "repo-readonly"
	// FilesystemReadWrite: the workspace, but for what is protected in it.
	FilesystemReadWrite Filesystem = "repo-readwrite"
	// FilesystemFull: what this process may, but for what is protected in the
	// workspace. Nothing is hidden but what Hidden names.
	FilesystemFull Filesystem = "full"
)

// Policy says what the commands of a box may reach. Paths are absolute.
type Policy struct {
	Workspace  string
	Filesystem Filesystem
	// Egress says which machines may be reached. An empty network is none here.
	// A list of hosts is held by a proxy, which programs find by the customary
	// variables (HTTPS_PROXY); network: host is all that this machine reaches.
	Egress egress.Rules
	// Protected says what in the workspace is read-only; nil protects nothing.
	Protected Protection
	// Open is what every command may write besides, because its owner says so.
	Open []Grant
	// Readable are files and directories outside of the workspace that commands may
	// read, wherever they lie.
	Readable []string
	// Hidden are files and directories that commands cannot read.
	Hidden []string
	// Environment is the environment of this process by which programs in its
	// home directory are found; nil means os.Environ.
	Environment []string
	Limits      Limits
}

// Protection says which paths of the workspace are protected. Paths are
// relative to the workspace and separated by "/".
type Protection interface {
	// Protects says that a path, or a directory above it, is protected.
	Protects(path string) bool
	// Below says that something below a directory may be protected.
	Below(dir string) bool
	// Named are the protected paths that are named without a pattern, so that
	// what a command makes there is found.
	Named() []string
}

// Limits bound what one command and all that it starts may use together. They
// are watched from outside, several times in a second, so that what grows
// faster passes a limit before it is stopped. A limit of 0 has its default, a
// negative one is none.
type Limits struct {
	// MemoryBytes bounds the memory that is not shared; by default half of the
	// machine's, at least 1 GiB.
	MemoryBytes int64
	// Processes bounds the processes; by default 512.
	Processes int
}

// The limits for which an [End] says that a command was killed.
const (
	LimitMemory    = "memory"
	LimitProcesses = "processes"
)

// defaultProcesses is far beyond a parallel build and far below what makes a
// machine unusable.
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
