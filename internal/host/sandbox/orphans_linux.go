//go:build amd64 || arm64

package sandbox

import (
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of every descendant that loses its parent, and
// returns a shim whose boxes kill such orphans with the command that left them: without
// a tier a command can kill its supervisor, and would otherwise escape. It affects all
// processes that this process starts, so it is only for dedicated programs. If it is
// not possible, it returns the shim unchanged.
func (s Shim) Adopt() Shim {
	if s.exe == nil || !knowsOwnChildren() || unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return s
	}
	s.adopts = true
	go reapOrphans()
	return s
}

// reapOrphans waits for orphans that exit, because no other code does.
func reapOrphans() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for range ended {
		for _, pid := range orphans(childrenOf(os.Getpid())) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// calm is how many consecutive searches must find no orphan, because a search may miss
// a process that is losing its parent.
const calm = 3

// killOrphans kills every orphan with all descendants. Their children become orphans in
// turn, so it repeats the search until there are none.
func killOrphans() {
	deadline := time.Now().Add(killGrace)
	for quiet := 0; quiet < calm && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		found := orphans(ownChildren())
		quiet++
		for _, pid := range found {
			quiet = 0
			for _, below := range append([]int{pid}, descendants(pid)...) {
				_ = unix.Kill(below, unix.SIGKILL)
			}
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// orphans returns the children of this process that it did not start. Nothing is
// started meanwhile, so each child that it started has a handle.
func orphans(children []int) []int {
	if len(children) == 0 {
		return nil
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	own := started()
	return slices.DeleteFunc(children, func(pid int) bool { return own[pid] || parentOf(pid) != os.Getpid() })
}

// ownChildren examines every process. The kernel's lists of children are cheaper, but
// they are per thread and miss a child that moves between threads.
func ownChildren() []int {
	names, _ := readNames("/proc")
	var children []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && parentOf(pid) == os.Getpid() {
			children = append(children, pid)
		}
	}
	return children
}

// started returns the processes for which this one holds handles, as os.Process does
// until Wait.
func started() map[int]bool {
	pids := map[int]bool{}
	names, _ := filepath.Glob("/proc/self/fdinfo/*")
	for _, name := range names {
		b, _ := os.ReadFile(name)
		for line := range strings.Lines(string(b)) {
			if text, found := strings.CutPrefix(line, "Pid:"); found {
				if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
					pids[pid] = true
				}
			}
		}
	}
	return pids
}

// knowsOwnChildren reports whether this system supports process handles.
func knowsOwnChildren() bool {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return false
	}
	defer func() { _ = self.Release() }()
	return started()[os.Getpid()]
}

func parentOf(pid int) int {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
