package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"sort"
)

// mountKind is what a mount shows.
type mountKind string

const (
	// mountBind shows a file or directory of the machine.
	mountBind mountKind = "bind"
	// mountMemory is an empty file system in memory.
	mountMemory mountKind = "memory"
	// mountDevices is a /dev with the usual devices.
	mountDevices mountKind = "devices"
	// mountProcesses is a /proc with the command's own processes.
	mountProcesses mountKind = "processes"
)

// mount is one step in building a command's file system. bwrap takes the steps as
// arguments; the namespaces tier performs them itself. Later steps cover earlier ones;
// sources are always paths of the machine.
type mount struct {
	Kind     mountKind `json:"kind"`
	At       string    `json:"at"`
	ReadOnly bool      `json:"readOnly,omitempty"`
	// From is the source of a bind, with everything mounted below it.
	From string `json:"from,omitempty"`
	// Optional skips the step if From does not exist.
	Optional bool `json:"optional,omitempty"`
	// Size bounds a file system in memory, in bytes; 0 means no limit. For devices it
	// is the size of /dev/shm, and the rest is read-only.
	Size int64 `json:"size,omitempty"`
	// Mode is the mode of a directory in memory; 0 means 0755.
	Mode uint32 `json:"mode,omitempty"`
}

// tunables are the kernel settings that root can change without any capability, for the
// whole machine. A new /proc leaves most of them writable.
var tunables = []string{"/proc/acpi", "/proc/fs", "/proc/mtrr", "/proc/pressure", "/proc/scsi", "/proc/sys"}

// mounts returns the steps that build a view. shared is the size limit of shared
// memory, negative for none.
func (v view) mounts(shared int64, temp, home string) []mount {
	var steps []mount
	add := func(m mount, paths ...string) {
		for _, p := range paths {
			m.Kind, m.From, m.At = mountBind, p, p
			steps = append(steps, m)
		}
	}
	writable, readOnly, shown := mount{}, mount{ReadOnly: true}, mount{ReadOnly: true, Optional: true}
	add(mount{ReadOnly: !v.full}, "/")
	// Memory of a file in memory counts for no process.
	steps = append(steps, mount{Kind: mountDevices, At: "/dev", Size: max(0, shared)}, mount{Kind: mountProcesses, At: "/proc"})
	if os.Getuid() == 0 {
		add(shown, tunables...)
	}
	for _, dir := range v.hidden {
		switch dir {
		case v.home:
			steps = append(steps, mount{Kind: mountBind, From: home, At: dir})
		case "/run":
			steps = append(steps, mount{Kind: mountMemory, At: dir, Size: 1 << 20})
		default:
			steps = append(steps, mount{Kind: mountBind, From: temp, At: dir})
		}
	}
	add(shown, v.show...)
	add(writable, v.write...)
	if !slices.Contains(v.write, v.workspace) {
		add(readOnly, v.workspace)
	} else {
		var shut []string
		for _, link := range v.links {
			shut = append(shut, filepath.Dir(link))
		}
		for _, dir := range shortFirst(slices.Concat(v.pin, shut)) {
			if slices.Contains(shut, dir) {
				add(readOnly, dir)
				add(mount{Optional: true}, around(dir, v.links)...)
			} else {
				add(writable, dir) // a mount point cannot be moved
			}
		}
	}
	add(readOnly, shortFirst(v.protect)...)
	add(writable, shortFirst(v.grant)...)
	for _, path := range shortFirst(slices.Concat(v.shut, v.steady())) {
		if slices.Contains(v.shut, path) {
			add(readOnly, path)
		} else {
			add(writable, path)
		}
	}
	for _, p := range shortFirst(v.hide) {
		if info, err := os.Stat(p); err == nil && info.IsDir() {
			steps = append(steps, mount{Kind: mountMemory, At: p, ReadOnly: true, Size: 1 << 12, Mode: 0o555})
		} else {
			steps = append(steps, mount{Kind: mountBind, From: os.DevNull, At: p, ReadOnly: true})
		}
	}
	return steps
}

// shortFirst sorts directories before their contents.
func shortFirst(paths []string) []string {
	paths = slices.Clone(paths)
	sort.SliceStable(paths, func(i, j int) bool { return len(paths[i]) < len(paths[j]) })
	return slices.Compact(paths)
}
