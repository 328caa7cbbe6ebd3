//go:build amd64 || arm64

package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// watchInterval is how often the limits are looked at: at the speed at which
// one core touches fresh memory, about 200 MB pass between two looks.
const watchInterval = 50 * time.Millisecond

// watch ends everything when a limit is passed.
func (s *supervisor) watch() {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-tick.C:
		}
		pids := s.processes()
		if n := s.plan.Limits.Processes; n > 0 && len(pids) > n {
			s.end(LimitProcesses)
			return
		}
		if n := s.plan.Limits.MemoryBytes; n > 0 && memoryOf(pids) > n {
			s.end(LimitMemory)
			return
		}
	}
}

// processes are the command and all that it started.
func (s *supervisor) processes() []int {
	if !s.plan.Namespace {
		return descendants(os.Getpid())
	}
	names, _ := readNames("/proc")
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// descendants are the children of a process, their children and so on.
func descendants(pid int) []int {
	found := childrenOf(pid)
	for i := 0; i < len(found); i++ {
		found = append(found, childrenOf(found[i])...)
	}
	return found
}

func childrenOf(pid int) []int {
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	var children []int
	for _, name := range lists {
		b, _ := os.ReadFile(name)
		for word := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

func killDescendants() {
	for _, pid := range descendants(os.Getpid()) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// memoryOf is what the processes have in memory and do not share with a file
// or with each other. Pages that a fork has not copied yet count twice.
func memoryOf(pids []int) int64 {
	var pages int64
	for _, pid := range pids {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
		if f := strings.Fields(string(b)); len(f) > 2 {
			resident, _ := strconv.ParseInt(f[1], 10, 64)
			shared, _ := strconv.ParseInt(f[2], 10, 64)
			pages += resident - shared
		}
	}
	return pages * int64(os.Getpagesize())
}

func totalMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
