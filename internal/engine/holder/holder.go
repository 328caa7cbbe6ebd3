// Package holder identifies the process that drives a run. A process has a name, which
// the run's lease contains. The package reports whether the named process is alive and
// whether it started this process, and it encrypts commands that only that process can
// read.
package holder

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Process returns a name of this process, from which another process of the machine can
// tell whether it is alive: host, boot, PID namespace, PID and start time, with a
// random part because the others may coincide.
func Process() string {
	return strings.Join([]string{machineID(), strconv.Itoa(os.Getpid()), startTime(os.Getpid()), rand.Text()[:8]}, "/")
}

// machineID identifies the host, boot and PID namespace. PIDs are comparable only if it
// is equal.
func machineID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.TrimSpace(string(boot))
	if len(id) > 8 {
		id = id[:8]
	}
	ns, _ := os.Readlink("/proc/self/ns/pid")
	return fmt.Sprintf("%s:%s:%s", strings.ReplaceAll(host, "/", "_"), id, strings.Trim(strings.TrimPrefix(ns, "pid:"), "[]"))
}

// Indexes of the fields of /proc/PID/stat after the command's name.
const (
	statState  = 0
	statParent = 1
	statStart  = 19
)

// stat returns a field of /proc/PID/stat, or "" if it cannot be read. The command's
// name is in parentheses and may itself contain any character, including parentheses.
func stat(pid, field int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) <= field {
		return ""
	}
	return string(fields[field])
}

// startTime returns the start time of a process in clock ticks since boot, or "" if it
// cannot be read.
func startTime(pid int) string { return stat(pid, statStart) }

// isZombie reports whether a process has ended but its parent has not yet waited for
// it. Signals still reach such a process, but it drives no run.
func isZombie(pid int) bool {
	state := stat(pid, statState)
	return state == "Z" || state == "X"
}

// Gone reports whether owner names a process of this machine that has ended, even
// though its leases may still be valid. If that is uncertain, Gone returns false.
func Gone(owner string) bool {
	parts := strings.Split(owner, "/")
	if len(parts) != 4 || parts[0] != machineID() {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid <= 0 {
		return false
	}
	if err := syscall.Kill(pid, 0); err == syscall.ESRCH {
		return true
	}
	now := startTime(pid)
	return parts[2] != "" && now != "" && now != parts[2] || isZombie(pid)
}
