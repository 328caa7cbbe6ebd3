package holder

import (
	"os"
	"strconv"
	"strings"
)

// maxAncestors bounds how far up the tree of processes is looked.
const maxAncestors = 256

// StartedBy reports whether this process was started, directly or through
// others, by the process that an owner names: a command that a run's tool runs,
// and what that starts. A process that has left its parents is not known any
// more, and one that sees another /proc than its machine's is known only as far
// as [CannotTell] says; only a sandbox holds those.
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

// firstPIDs is the number that Linux gives the PID namespace of its first process.
const firstPIDs = "4026531836"

// CannotTell reports whether this process may have been started by the one that an
// owner names and cannot see it: it is in a PID namespace that may lie within
// the owner's, or sees no processes at all. In the first namespace, as most
// people are, every process is seen.
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
	// Of two namespaces that are neither the first, a host's name is all that tells
	// containers beside each other from one within the other.
	return boot == theirBoot && (theirs == firstPIDs || host == theirHost)
}

// samePIDs reports whether two processes count processes alike. The host's name
// says nothing of that where the rest is known: any process may change it for
// itself.
func samePIDs(a, b string) bool {
	_, bootA, nsA := splitMachine(a)
	_, bootB, nsB := splitMachine(b)
	return a == b || bootA != "" && nsA != "" && bootA == bootB && nsA == nsB
}

// splitMachine takes a machine's id apart.
func splitMachine(id string) (host, boot, pids string) {
	parts := strings.Split(id, ":")
	if len(parts) < 3 {
		return id, "", ""
	}
	last := len(parts) - 1
	return strings.Join(parts[:last-1], ":"), parts[last-1], parts[last]
}

// parentOf is the process that started another, 0 when that is not known.
func parentOf(pid int) int {
	parent, _ := strconv.Atoi(stat(pid, statParent))
	return parent
}
