//go:build amd64 || arm64

package sandbox

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownNetwork are the socket families of a command whose network is restricted by other
// means. Other families (a virtual machine's sockets to its host, raw packets) would
// bypass those.
var ownNetwork = []int{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// denied are the system calls that no command of a sandbox may make: those that access
// other processes, change mounts, namespaces, keys, the kernel or the machine, or
// perform operations that a filter cannot see (io_uring).
var denied = append([]uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT,
	unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
}, deniedHere...)

// shared are the system calls by which processes share memory, semaphores and messages
// without a name in the file system, which Landlock does not restrict.
var shared = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
}

// namespaceFlags are the flags of clone that create namespaces, in which a process
// could be root.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// withMode are the system calls with a file mode. mkdir is not among them, because the
// set-user-ID bit has no effect on a directory.
var withMode = append([]modeCall{
	{number: unix.SYS_FCHMOD, mode: 1}, {number: unix.SYS_FCHMODAT, mode: 2}, {number: unix.SYS_FCHMODAT2, mode: 2},
	{number: unix.SYS_MKNODAT, mode: 2}, {number: unix.SYS_OPENAT, mode: 3, opens: true},
}, withModeHere...)

// modeCall is a system call with the index of its mode argument.
type modeCall struct {
	number uint32
	mode   int
	// opens reports that the previous argument is flags, and that the mode is ignored,
	// and so may be anything, unless they create a file.
	opens bool
}

const creating = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// Offsets in the kernel's struct seccomp_data. A filter sees the lower half of an
// argument, which is all that these calls use.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

func offsetArg(n int) uint32 { return uint32(offsetArgs + 8*n) }

// filter returns the program that judges each system call. families are the allowed
// socket families; nil means all. sharing reports that the command shares its IPC
// namespace with other processes.
func filter(families []int, sharing bool) []unix.SockFilter {
	const (
		allow = unix.SECCOMP_RET_ALLOW
		deny  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		// absent makes the C library fall back from clone3, whose flags a filter cannot
		// see, to clone.
		absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	var p program
	p.load(offsetArch)
	p.unless(unix.BPF_JEQ, auditArch, deny)
	p.load(offsetCall)
	if foreignCalls != 0 {
		p.when(unix.BPF_JGE, foreignCalls, deny)
	}
	for _, call := range denied {
		p.when(unix.BPF_JEQ, call, deny)
	}
	if sharing {
		for _, call := range shared {
			p.when(unix.BPF_JEQ, call, deny)
		}
	}
	p.when(unix.BPF_JEQ, unix.SYS_CLONE3, absent)
	p.call(unix.SYS_CLONE, func(p *program) {
		p.load(offsetArg(0))
		p.when(unix.BPF_JSET, namespaceFlags, deny)
	})
	p.call(unix.SYS_IOCTL, func(p *program) {
		p.load(offsetArg(1))
		p.when(unix.BPF_JEQ, unix.TIOCSTI, deny)
		p.when(unix.BPF_JEQ, unix.TIOCLINUX, deny)
	})
	// A set-user-ID program would let any user bypass the sandbox. Two ways cannot be
	// closed: openat2, whose mode a filter cannot see and without which tar fails on
	// some systems; and the set-group-ID bit, which shared directories need.
	for _, c := range withMode {
		p.call(c.number, func(p *program) {
			if c.opens {
				p.load(offsetArg(c.mode - 1))
				p.unless(unix.BPF_JSET, creating, allow)
			}
			p.load(offsetArg(c.mode))
			p.when(unix.BPF_JSET, unix.S_ISUID, deny)
		})
	}
	// Landlock restricts signals, but a limit on another process's CPU time sends one
	// too.
	p.call(unix.SYS_PRLIMIT64, func(p *program) {
		p.load(offsetArg(0))
		p.unless(unix.BPF_JEQ, 0, deny)
	})
	if families != nil {
		p.call(unix.SYS_SOCKET, func(p *program) {
			p.load(offsetArg(0))
			for _, f := range families {
				p.when(unix.BPF_JEQ, uint32(f), allow)
			}
			p.ret(deny)
		})
	}
	p.ret(allow)
	return p
}

// program is a filter under construction.
type program []unix.SockFilter

func (p *program) add(code uint16, jt, jf uint8, k uint32) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

func (p *program) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }

func (p *program) ret(verdict uint32) { p.add(unix.BPF_RET|unix.BPF_K, 0, 0, verdict) }

// when returns the verdict if the test succeeds; unless, if it fails.
func (p *program) when(test uint16, k, verdict uint32) {
	p.add(unix.BPF_JMP|test|unix.BPF_K, 0, 1, k)
	p.ret(verdict)
}

func (p *program) unless(test uint16, k, verdict uint32) {
	p.add(unix.BPF_JMP|test|unix.BPF_K, 1, 0, k)
	p.ret(verdict)
}

// call adds instructions for one system call; after them the number of the call is
// loaded again.
func (p *program) call(number uint32, do func(*program)) {
	var body program
	do(&body)
	body.load(offsetCall)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, uint8(len(body)), number)
	*p = slices.Concat(*p, body)
}

// loadFilter installs a filter on the calling thread and all that it starts. The thread
// must already have given up gaining privileges.
func loadFilter(families []int, sharing bool) error {
	f := filter(families, sharing)
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}
