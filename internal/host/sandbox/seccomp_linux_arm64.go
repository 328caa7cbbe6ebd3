package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	foreignCalls = 0
)

var (
	deniedHere   []uint32
	withModeHere []modeCall
)
