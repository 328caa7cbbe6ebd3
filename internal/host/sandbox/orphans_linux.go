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

// Adopt makes this process the parent of every process below it that loses its
// own, and returns a shim whose boxes kill such orphans with the command that
// left them: without a tier a command can kill its supervisor, and would be free
// then. It changes what becomes of all that this process ever starts, so it is
// for a program that is about nothing else. Where it cannot be done the shim
// comes back as it was.
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

// calm is how many looks in a row must find no orphan: a process that loses its
// parent just now may be seen neither here nor there.
const calm = 3

// killOrphans ends every orphan with all below it. What they leave falls to
// this process in turn, so that it is looked for until there is nothing.
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

// orphans are the children of this process that it did not start. Nothing is
// started meanwhile, so that each child of its own has its handle already.
func orphans(children []int) []int {
	if len(children) == 0 {
		return nil
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	own := started()
	return slices.DeleteFunc(children, func(pid int) bool { return own[pid] || parentOf(pid) != os.Getpid() })
}

// ownChildren looks at every process. The kernel's lists of children, which cost
// less, are kept by thread, and miss what moves from one to another.
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

// started are the processes that this one holds handles of, as os.Process does
// of each that it has started and not waited for.
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

// knowsOwnChildren reports whether this system has handles of processes.
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
