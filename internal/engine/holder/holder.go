// Package holder knows the process that drives a run: by a name that stands in the
// run's lease, whether it still lives, whether it started this process, and how to
// send it what only it can read.
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

// Process names this process so that another one on the same machine can
// tell whether it still lives: host, boot, process namespace, pid, and the
// moment it started, with a random part for what else may coincide.
func Process() string {
	return strings.Join([]string{machineID(), strconv.Itoa(os.Getpid()), startTime(os.Getpid()), rand.Text()[:8]}, "/")
}

// machineID identifies the boot and the pid namespace: pids compare only
// within both.
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

// The fields of a line of /proc/PID/stat, counted behind the command's name.
const (
	statState  = 0
	statParent = 1
	statStart  = 19
)

// stat is a field of what the kernel says of a process, or "" where that cannot
// be read. The command's name is in parentheses and may hold anything, parentheses
// too.
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

// startTime is the moment a process started, in the kernel's ticks since boot,
// or "" where that cannot be read.
func startTime(pid int) string { return stat(pid, statStart) }

// isZombie reports whether a process has ended and only waits for its parent to
// notice: signals still reach it, but it drives nothing any more.
func isZombie(pid int) bool {
	state := stat(pid, statState)
	return state == "Z" || state == "X"
}

// Gone reports whether an owner was a process of this machine and is gone,
// while its leases may still hold. When in doubt it is alive.
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
