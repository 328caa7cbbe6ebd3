//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// The limits are looked at again when memory could be used up at the earliest, which is
// by touchSpeed, the bytes of fresh memory that one core touches in a second. So at
// watchInterval about 200 MB pass between two looks.
const (
	watchInterval   = 50 * time.Millisecond
	longestInterval = 250 * time.Millisecond
	touchSpeed      = 4 << 30
)

// nextLook is how long the limits need no look when so much memory is used.
func (l Limits) nextLook(memory int64) time.Duration {
	if l.MemoryBytes <= 0 {
		return longestInterval
	}
	left := time.Duration(float64(l.MemoryBytes-memory) / touchSpeed * float64(time.Second))
	return min(max(left, watchInterval), longestInterval)
}

// watch ends everything when a limit is passed.
func (s *supervisor) watch() {
	l := look{supervisor: s}
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

// look is what the last look at the limits found, so that the next one costs nearly
// nothing where no process has come or gone: the file in which each says how much
// memory it has stays open.
type look struct {
	supervisor *supervisor
	// forks is the file with the newest process of all, and newest what it said last.
	forks  counts
	newest int64
	known  []counts
	// cheap counts the looks that trusted in that, since one that did not.
	cheap int
}

// mostCheap is how many looks, a second long or more, may trust in the newest process: where
// something stands in for the kernel's file it may be told wrong.
const mostCheap = 4

// mostKnown is how many processes files are kept open of.
const mostKnown = 64

// use is how many processes the command has, and how much memory they use.
func (l *look) use() (processes int, memory int64) {
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

// again is the memory of the processes that are known; same reports whether those are
// all that there are.
func (l *look) again() (memory int64, same bool) {
	newest, ok := l.forks.last()
	if !ok || newest != l.newest || len(l.known) == 0 {
		l.newest = newest
		return 0, false
	}
	for i := range l.known {
		n := l.known[i].memory()
		if n <= 0 { // it has ended, or is about to
			return 0, false
		}
		memory += n
	}
	return memory, true
}

// counts is a file of numbers that the kernel makes anew for each reader.
type counts struct {
	file *os.File
	buf  [128]byte
}

// open opens a file, or leaves one that gives nothing.
func (c *counts) open(path string) { c.file, _ = os.Open(path) }

func (c *counts) close() { _ = c.file.Close() }

func (c *counts) fields() [][]byte {
	n, _ := c.file.ReadAt(c.buf[:], 0)
	return bytes.Fields(c.buf[:max(n, 0)])
}

// last is the last number of the file.
func (c *counts) last() (n int64, ok bool) {
	f := c.fields()
	if len(f) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(f[len(f)-1]), 10, 64)
	return n, err == nil && n > 0
}

// memory is what a process has in memory and does not share with a file or with
// others, in bytes. Pages that a fork has not copied yet count twice.
func (c *counts) memory() int64 {
	f := c.fields()
	if len(f) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(string(f[1]), 10, 64)
	shared, _ := strconv.ParseInt(string(f[2]), 10, 64)
	return (resident - shared) * int64(os.Getpagesize())
}
