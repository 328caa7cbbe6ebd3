package holder

import (
	"os"
	"strconv"
	"strings"
)

// maxAncestors limits the search through parent processes.
const maxAncestors = 256

// StartedBy reports whether the process that owner names started this process, directly
// or through others, as with a command of a run's tool and its child processes. It does
// not recognize a process that has detached from its parents. If the process sees
// another /proc than its machine's, use [CannotTell]; only a sandbox contains such
// processes.
func StartedBy(owner string) bool {
	parts := strings.Split(owner, "/")
	if len(parts) != 4 || !samePIDs(parts[0], machineID()) {
		return false
	}
	driver, err := strconv.Atoi(parts[1])
	if err != nil || driver <= 0 {
		return false
	}
	pid := os.Getppid()
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

// firstPIDs is the inode number of Linux's initial PID namespace.
const firstPIDs = "4026531836"

// CannotTell reports whether the process that owner names may have started this process
// although this process cannot see it. That is possible if this process is in a PID
// namespace below the owner's, or cannot read /proc. From the initial PID namespace
// every process is visible.
func CannotTell(owner string) bool {
	theirs, _, _ := strings.Cut(owner, "/")
	return unseen(theirs, machineID())
}

func unseen(owner, self string) bool {
	theirHost, theirBoot, theirs := splitMachine(owner)
	host, boot, own := splitMachine(self)
	switch {
	case theirs == "" || own == theirs || own == firstPIDs:
		return false
	case own == "":
		return host == theirHost
	}
	// If neither namespace is the initial one, only the host name distinguishes sibling
	// containers from nested ones.
	return boot == theirBoot && (theirs == firstPIDs || host == theirHost)
}

// samePIDs reports whether two processes see the same PIDs. It ignores the host name if
// the rest is known, because a process can change its own host name.
func samePIDs(a, b string) bool {
	_, bootA, nsA := splitMachine(a)
	_, bootB, nsB := splitMachine(b)
	return a == b || bootA != "" && nsA != "" && bootA == bootB && nsA == nsB
}

// splitMachine splits a machine's id into its parts.
func splitMachine(id string) (host, boot, pids string) {
	parts := strings.Split(id, ":")
	if len(parts) < 3 {
		return id, "", ""
	}
	last := len(parts) - 1
	return strings.Join(parts[:last-1], ":"), parts[last-1], parts[last]
}

// parentOf returns the parent of a process, or 0 if it is unknown.
func parentOf(pid int) int {
	parent, _ := strconv.Atoi(stat(pid, statParent))
	return parent
}
