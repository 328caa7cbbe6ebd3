package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/pawlrun/pawl/egress"
)

// helpers are where bwrap may be. The search path is not asked, because what
// is found on it may be the workspace's.
var helpers = []string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

func findBubblewrap() (string, bool) {
	for _, path := range helpers {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}

// tunables are what root may change of the kernel without any capability, and so
// of the whole machine. Of a new /proc bwrap leaves most of it open.
var tunables = []string{"/proc/acpi", "/proc/fs", "/proc/mtrr", "/proc/pressure", "/proc/scsi", "/proc/sys"}

// wrap says a view in bwrap's words. Later words lie over earlier ones. shared is
// how many bytes of files in memory there may be, a negative number says no bound.
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
	bind := func(how string, paths ...string) {
		for _, p := range paths {
			args = append(args, how, p, p)
		}
	}
	if v.full {
		bind("--bind", "/")
	} else {
		bind("--ro-bind", "/")
	}
	args = append(args, "--dev", "/dev", "--proc", "/proc")
	if shared > 0 { // of a file in memory no process has a part that counts as its own
		args = append(args, "--size", fmt.Sprint(shared), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
	}
	if os.Getuid() == 0 {
		bind("--ro-bind-try", tunables...)
	}
	for _, dir := range v.veil {
		switch dir {
		case v.home:
			args = append(args, "--bind", home, dir)
		case "/run":
			args = append(args, "--size", fmt.Sprint(1<<20), "--tmpfs", dir)
		default:
			args = append(args, "--bind", temp, dir)
		}
	}
	bind("--ro-bind", v.show...)
	bind("--bind", v.write...)
	if !slices.Contains(v.write, v.workspace) {
		bind("--ro-bind", v.workspace)
	}
	if slices.Contains(v.write, v.workspace) {
		var shut []string
		for _, link := range v.links {
			shut = append(shut, filepath.Dir(link))
		}
		for _, dir := range shortFirst(slices.Concat(v.pin, shut)) {
			if slices.Contains(shut, dir) {
				bind("--ro-bind", dir)
				bind("--bind-try", around(dir, v.links)...)
			} else {
				bind("--bind", dir) // what something is mounted on cannot be moved
			}
		}
	}
	bind("--ro-bind", shortFirst(v.protect)...)
	for _, h := range v.holes {
		bind("--ro-bind", h.path)
	}
	bind("--bind", v.grant...)
	for _, p := range shortFirst(v.hide) {
		if info, err := os.Stat(p); err == nil && info.IsDir() {
			args = append(args, "--size", fmt.Sprint(1<<12), "--perms", "0555", "--tmpfs", p, "--remount-ro", p)
		} else {
			args = append(args, "--ro-bind", os.DevNull, p)
		}
	}
	return append(args, "--chdir", "/", "--", programPath, supervisorArg)
}

// shortFirst puts directories before what lies in them.
func shortFirst(paths []string) []string {
	paths = slices.Clone(paths)
	sort.SliceStable(paths, func(i, j int) bool { return len(paths[i]) < len(paths[j]) })
	return slices.Compact(paths)
}
