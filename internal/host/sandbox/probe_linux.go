//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// probe runs a minimal command in a tier.
func (m *Machine) probe(ctx context.Context, t Tier) error {
	if m.shim.exe == nil {
		return errNoShim
	}
	if err := supported(t); err != nil {
		return err
	}
	// A box that restricts nothing needs no directory, so supervisors work even for
	// a user that cannot create one.
	b := &Box{tier: None, shim: m.shim, calls: &m.calls}
	if t != None {
		own, err := newTempDir()
		if err != nil {
			return err
		}
		defer func() { _ = own.remove() }()
		p := Policy{Workspace: own.path, Filesystem: FilesystemReadOnly}
		b = &Box{tier: t, shim: m.shim, calls: &m.calls, policy: p.withDefaults(), temp: own.path, home: own.path}
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	defer null.Close()
	p, err := b.Start(Command{Args: []string{"/bin/sh", "-c", "exit 7"}, Dir: "/", Output: null})
	if err != nil {
		return err
	}
	select {
	case <-p.Ended():
	case <-ctx.Done():
	}
	end, err := p.Wait()
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return errors.New("sandbox: the trial did not end in time")
	case end.Code != 7:
		return fmt.Errorf("sandbox: the trial ended with code %d instead of 7", end.Code)
	}
	return nil
}

var (
	errNoShim       = errors.New("sandbox: this program did not call sandbox.Main first")
	errNoBubblewrap = errors.New("sandbox: bwrap is not installed")
	errNoLandlock   = errors.New("sandbox: the kernel has no Landlock")
	errOldLandlock  = errors.New("sandbox: the kernel's Landlock is too old")
)

// supported returns an error if a tier's requirements are missing.
func supported(t Tier) error {
	switch t {
	case Bubblewrap:
		if _, ok := findBubblewrap(); !ok {
			return errNoBubblewrap
		}
	case Landlock:
		abi, err := landlockABI()
		if err != nil {
			return fmt.Errorf("%w: %w", errNoLandlock, err)
		}
		if abi < landlockVersion {
			return fmt.Errorf("%w: it has version %d, and %d (Linux 6.12) is needed so that commands cannot kill what is outside", errOldLandlock, abi, landlockVersion)
		}
	}
	return nil
}

// helpFor returns how to enable a tier that does not work.
func helpFor(t Tier, err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, errNoShim):
		return "call sandbox.Main at the start of main"
	case errors.Is(err, errNoBubblewrap):
		return "install it: apt install bubblewrap, dnf install bubblewrap, apk add bubblewrap"
	case errors.Is(err, errNoLandlock):
		return "use Linux 6.12 or newer, with landlock among the security modules (the lsm= of the kernel's command line)"
	case errors.Is(err, errOldLandlock):
		return "use Linux 6.12 or newer, or install bubblewrap"
	case errors.Is(err, errNoTemp):
		return "let TMPDIR name a directory that you may write"
	case !t.mounts():
		return ""
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		return "use Linux 5.12 or newer, with user namespaces"
	case restrictedByAppArmor():
		return fmt.Sprintf("allow %s to make user namespaces: an AppArmor profile for it, or sysctl kernel.apparmor_restrict_unprivileged_userns=0", map[Tier]string{Bubblewrap: "bwrap", Namespaces: "pawl"}[t])
	case sysctl("kernel/unprivileged_userns_clone") == "0":
		return "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1"
	case errors.Is(err, unix.ENOSPC), sysctl("user/max_user_namespaces") == "0":
		return "allow user namespaces: sysctl user.max_user_namespaces=15000"
	case strings.Contains(text, "permitted") || strings.Contains(text, "denied"):
		return "in a container, allow it to make namespaces (docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined)"
	}
	return ""
}

func restrictedByAppArmor() bool {
	return sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Getuid() != 0
}

func sysctl(name string) string {
	b, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(b))
}
