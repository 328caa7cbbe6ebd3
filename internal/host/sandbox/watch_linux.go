//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// The limits are checked again at the earliest time at which memory could be used up,
// given touchSpeed, the bytes of fresh memory that one core touches in a second. So at
// watchInterval up to about 200 MB pass between two checks.
const (
	watchInterval   = 50 * time.Millisecond
	longestInterval = 250 * time.Millisecond
	touchSpeed      = 4 << 30
)

// nextLook returns how long the limits need no check at this use of memory.
func (l Limits) nextLook(memory int64) time.Duration {
	if l.MemoryBytes <= 0 {
		return longestInterval
	}
	left := time.Duration(float64(l.MemoryBytes-memory) / touchSpeed * float64(time.Second))
	return min(max(left, watchInterval), longestInterval)
}

// watch kills everything when a limit is exceeded.
func (s *supervisor) watch() {
	l := lastCheck{supervisor: s}
	l.forks.open("/proc/loadavg")
	next := time.NewTimer(watchInterval)
	defer next.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-next.C:
		}
		processes, memory := l.use()
		if n := s.plan.Limits.Processes; n > 0 && processes > n {
			s.end(LimitProcesses)
			return
		}
		if n := s.plan.Limits.MemoryBytes; n > 0 && memory > n {
			s.end(LimitMemory)
			return
		}
		next.Reset(s.plan.Limits.nextLook(memory))
	}
}

// lastCheck caches the last check, so that the next one is cheap if no process has started
// or ended: the files with each process's memory stay open.
type lastCheck struct {
	supervisor *supervisor
	// forks is the file with the newest process id, and newest its last value.
	forks  counts
	newest int64
	known  []counts
	// cheap counts the checks since the last complete one.
	cheap int
}

// mostCheap bounds how many checks, at intervals of a second or more, trust the newest
// process id, because an emulated kernel may report a wrong one.
const mostCheap = 4

// mostKnown bounds the processes whose files stay open.
const mostKnown = 64

// use returns the number of the command's processes and their memory.
func (l *lastCheck) use() (processes int, memory int64) {
	if memory, same := l.again(); same && l.cheap < mostCheap {
		l.cheap++
		return len(l.known), memory
	}
	l.cheap = 0
	for i := range l.known {
		l.known[i].close()
	}
	l.known = l.known[:0]
	pids := l.supervisor.processes()
	if len(pids) > mostKnown {
		return len(pids), memoryOf(pids)
	}
	for _, pid := range pids {
		var c counts
		c.open("/proc/" + strconv.Itoa(pid) + "/statm")
		l.known = append(l.known, c)
		memory += c.memory()
	}
	return len(pids), memory
}

// again returns the memory of the known processes; same reports whether those are all
// processes.
func (l *lastCheck) again() (memory int64, same bool) {
	newest, ok := l.forks.last()
	if !ok || newest != l.newest || len(l.known) == 0 {
		l.newest = newest
		return 0, false
	}
	for i := range l.known {
		n := l.known[i].memory()
		if n <= 0 { // the process has ended, or is about to
			return 0, false
		}
		memory += n
	}
	return memory, true
}

// counts is a file of numbers that the kernel generates for each read.
type counts struct {
	file *os.File
	buf  [128]byte
}

// open opens a file; if it fails, reads return nothing.
func (c *counts) open(path string) { c.file, _ = os.Open(path) }

func (c *counts) close() { _ = c.file.Close() }

func (c *counts) fields() [][]byte {
	n, _ := c.file.ReadAt(c.buf[:], 0)
	return bytes.Fields(c.buf[:max(n, 0)])
}

// last returns the last number of the file.
func (c *counts) last() (n int64, ok bool) {
	f := c.fields()
	if len(f) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(f[len(f)-1]), 10, 64)
	return n, err == nil && n > 0
}

// memory returns a process's memory that is not shared with a file or other processes,
// in bytes. Pages that a fork has not copied yet count twice.
func (c *counts) memory() int64 {
	f := c.fields()
	if len(f) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(string(f[1]), 10, 64)
	shared, _ := strconv.ParseInt(string(f[2]), 10, 64)
	return (resident - shared) * int64(os.Getpagesize())
}
