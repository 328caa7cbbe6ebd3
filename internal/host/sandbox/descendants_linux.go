//go:build amd64 || arm64

package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processes returns the command and all that it started.
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

// descendants returns the children of a process, their children and so on.
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

// memoryOf returns the total memory of processes; see [counts.memory].
func memoryOf(pids []int) (sum int64) {
	for _, pid := range pids {
		var c counts
		c.open("/proc/" + strconv.Itoa(pid) + "/statm")
		sum += c.memory()
		c.close()
	}
	return sum
}

func totalMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
