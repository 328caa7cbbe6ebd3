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
	// mountDevices is a /dev with the devices that programs expect.
	mountDevices mountKind = "devices"
	// mountProcesses is a /proc of the command's own processes.
	mountProcesses mountKind = "processes"
)

// mount is one step in building what a command finds of the file system. bwrap
// takes the steps as arguments, and the namespaces tier makes them itself. Later
// ones lie over earlier ones, and what they show is always the machine's own.
type mount struct {
	Kind     mountKind `json:"kind"`
	At       string    `json:"at"`
	ReadOnly bool      `json:"readOnly,omitempty"`
	// From is what a bind shows, with all that is mounted below it.
	From string `json:"from,omitempty"`
	// Optional: the step is left out where From is not there.
	Optional bool `json:"optional,omitempty"`
	// Size bounds what is in memory, in bytes; 0 is no bound. Of devices it is
	// that of /dev/shm, with which the rest of them is read-only.
	Size int64 `json:"size,omitempty"`
	// Mode is that of a directory in memory; 0 is 0755.
	Mode uint32 `json:"mode,omitempty"`
}

// tunables are what root may change of the kernel without any capability, and so
// of the whole machine. A new /proc leaves most of it open.
var tunables = []string{"/proc/acpi", "/proc/fs", "/proc/mtrr", "/proc/pressure", "/proc/scsi", "/proc/sys"}

// mounts are the steps that build a view. shared is how many bytes of files in
// memory there may be, a negative number says no bound.
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
	// Of a file in memory no process has a part that counts as its own.
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
				add(writable, dir) // what something is mounted on cannot be moved
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

// shortFirst puts directories before what lies in them.
func shortFirst(paths []string) []string {
	paths = slices.Clone(paths)
	sort.SliceStable(paths, func(i, j int) bool { return len(paths[i]) < len(paths[j]) })
	return slices.Compact(paths)
}
