package sandbox

import (
	"fmt"
	"os"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// helpers are the possible places of bwrap. The search path is not used, because it may
// contain directories of the workspace.
var helpers = []string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

func findBubblewrap() (string, bool) {
	for _, path := range helpers {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}

// wrap converts a view to arguments of bwrap.
func (v view) wrap(network egress.Network, shared int64, temp, home string) []string {
	args := []string{"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--as-pid-1", "--cap-drop", "ALL"}
	if os.Getuid() == 0 {
		for _, name := range []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID"} {
			args = append(args, "--cap-add", name)
		}
	}
	if network != egress.NetworkHost {
		args = append(args, "--unshare-net")
	}
	for _, m := range v.mounts(shared, temp, home) {
		args = append(args, m.words()...)
	}
	return append(args, "--chdir", "/", "--", programPath, supervisorArg)
}

// words returns the arguments of bwrap for a mount.
func (m mount) words() []string {
	var words []string
	switch m.Kind {
	case mountBind:
		how := "--bind"
		if m.ReadOnly {
			how = "--ro-bind"
		}
		if m.Optional {
			how += "-try"
		}
		return []string{how, m.From, m.At}
	case mountDevices:
		words = []string{"--dev", m.At}
		if m.Size > 0 {
			words = append(words, mount{Kind: mountMemory, At: m.At + "/shm", Size: m.Size, Mode: 0o1777}.words()...)
			words = append(words, "--remount-ro", m.At)
		}
	case mountProcesses:
		words = []string{"--proc", m.At}
	case mountMemory:
		words = []string{"--size", fmt.Sprint(m.Size)}
		if m.Mode != 0 {
			words = append(words, "--perms", fmt.Sprintf("%04o", m.Mode))
		}
		words = append(words, "--tmpfs", m.At)
		if m.ReadOnly {
			words = append(words, "--remount-ro", m.At)
		}
	}
	return words
}
