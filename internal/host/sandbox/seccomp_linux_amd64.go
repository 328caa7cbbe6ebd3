package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// foreignCalls is the first number of the x32 interface, in which every call has a
	// second number.
	foreignCalls = 0x40000000
)

var deniedHere = []uint32{
	unix.SYS_IOPERM, unix.SYS_IOPL, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
}

var withModeHere = []modeCall{
	{number: unix.SYS_CHMOD, mode: 1}, {number: unix.SYS_CREAT, mode: 1}, {number: unix.SYS_MKNOD, mode: 1}, {number: unix.SYS_OPEN, mode: 2, opens: true},
}
