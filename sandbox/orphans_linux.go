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

// reapOrphans waits for orphans that end by themselves, because nobody else
// does.
func reapOrphans() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for range ended {
		for _, pid := range orphans() {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// killOrphans ends every orphan with all below it. What they leave falls to
// this process in turn, so that it is looked for until there is nothing.
func killOrphans() {
	for deadline := time.Now().Add(killGrace); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		found := orphans()
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			for _, below := range append(descendants(pid), pid) {
				_ = unix.Kill(below, unix.SIGKILL)
			}
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// orphans are the children of this process that it did not start. Nothing is
// started meanwhile, so that each child of its own has its handle already.
func orphans() []int {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	children := childrenOf(os.Getpid())
	if len(children) == 0 {
		return nil
	}
	own := started()
	return slices.DeleteFunc(children, func(pid int) bool { return own[pid] || parentOf(pid) != os.Getpid() })
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

// knowsOwnChildren says whether this system has handles of processes.
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
