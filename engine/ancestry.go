package engine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxAncestors bounds how far up the tree of processes is looked.
const maxAncestors = 256

// StartedBy says that this process was started, directly or through others, by
// the process that an owner names: a command that a run's tool runs, and what
// that starts. A process that has left its parents is not known any more, and
// neither is any where there is no /proc or that is in a PID namespace of its
// own; only a sandbox holds those.
func StartedBy(owner string) bool { return ComesFrom(os.Getppid(), owner) }

// ComesFrom says that a process of this machine is the one that an owner names,
// or was started by it, as in [StartedBy].
func ComesFrom(pid int, owner string) bool {
	parts := strings.Split(owner, "/")
	if len(parts) != 4 || parts[0] != machineID() {
		return false
	}
	driver, err := strconv.Atoi(parts[1])
	if err != nil || driver <= 0 {
		return false
	}
	for range maxAncestors {
		switch {
		case pid == driver:
			return parts[2] == "" || parts[2] == startTime(pid)
		case pid <= 1:
			return false
		}
		pid = parentOf(pid)
	}
	return false
}

// parentOf is the process that started another, 0 when that is not known.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}
