//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

// What only waits is looked at by reading two small files.
func TestALookAtProcessesThatAreKnownListsNone(t *testing.T) {
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	l := lastCheck{supervisor: &supervisor{}}
	l.forks.open("/proc/loadavg")
	same := false
	for range 100_000 { // other processes of the machine come and go
		if processes, memory := l.use(); processes == 0 || memory == 0 {
			t.Fatalf("%d processes use %d bytes", processes, memory)
		}
		if _, same = l.again(); same {
			break
		}
	}
	if !same {
		t.Error("a process that is known was looked for each time")
	}
	if l.cheap = mostCheap; !slices.Contains(l.supervisor.processes(), c.Process.Pid) {
		t.Error("the process is not among those that there are")
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if _, same := l.again(); same {
		t.Error("a process that has ended counts as known")
	}
}

func TestANewProcessIsFoundAtTheNextLook(t *testing.T) {
	l := lastCheck{supervisor: &supervisor{}}
	l.forks.open("/proc/loadavg")
	l.use()
	for i := range 5 {
		c := exec.Command("sleep", "60")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
		if n, _ := l.use(); n < i+1 {
			t.Errorf("of %d processes %d were found", i+1, n)
		}
	}
}

func TestTheNextLookComesBeforeMemoryCanBeUsedUp(t *testing.T) {
	for _, tt := range []struct {
		limit, memory int64
		want          time.Duration
	}{
		{limit: 8 << 30, memory: 0, want: longestInterval},
		{limit: 1 << 30, memory: 512 << 20, want: 125 * time.Millisecond},
		{limit: 1 << 30, memory: 1 << 30, want: watchInterval},
		{limit: 256 << 20, memory: 200 << 20, want: watchInterval},
		{limit: -1, memory: 1 << 40, want: longestInterval},
	} {
		if got := (Limits{MemoryBytes: tt.limit}).nextLook(tt.memory); got != tt.want {
			t.Errorf("of %d bytes %d are used: %s, want %s", tt.limit, tt.memory, got, tt.want)
		}
	}
}
