//go:build amd64 || arm64

package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// keptCapabilities are the capabilities that root keeps, because a workspace may belong
// to another user: they apply only to the writable files.
var keptCapabilities = []int{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID}

// restrict irrevocably restricts the calling thread, and all that it starts, to the
// rules of a plan.
func restrict(p plan) error {
	if p.Free {
		return nil
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	// Within namespaces the rules are a second barrier, which older kernels lack.
	if p.Landlock != nil && (!p.Namespace || supported(Landlock) == nil) {
		if err := p.Landlock.enforce(); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if p.OwnSockets {
		if err := keepToOwnSockets(); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if err := loadFilter(p.Families, !p.Namespace); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}

func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	var keep [2]uint32
	for _, c := range keptCapabilities {
		keep[c/32] |= 1 << (c % 32)
	}
	for i := range data {
		data[i].Permitted &= keep[i]
		data[i].Effective = data[i].Permitted
		data[i].Inheritable = 0
	}
	return unix.Capset(&header, &data[0])
}
