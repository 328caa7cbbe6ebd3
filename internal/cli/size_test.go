package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// long skips what takes too long for every run of the tests.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("PAWL_LONG") == "" {
		t.Skip("part of the long suite: PAWL_LONG=1")
	}
}

func TestTheStrippedBinaryIsSmallAndStartsAtOnce(t *testing.T) {
	long(t)
	bin := filepath.Join(t.TempDir(), "pawl")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "../../cmd/pawl")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	// The last binary that knew no workflows and no expressions, 10 MiB for those, and one
	// for loops, goals, other programs as agents, spans and the server's streams, one for
	// texts in expressions and workflows, git in sandboxes and the server's tokens, four
	// for MCP, three for sessions at the terminal and in editors, of which the event loop of the terminal takes two,
	// and one for the page with its views, plans and requests.
	const limit = 25_010_441 + 20<<20
	if info.Size() > limit {
		t.Errorf("the binary has %d bytes, the limit is %d", info.Size(), limit)
	}
	// Processor time, and the best of many tries: the limit is about the program,
	// not about what else the machine does.
	const atMost = 60 * time.Millisecond
	best := time.Hour
	for tries := 0; tries < 20 || best > atMost && tries < 500; tries++ {
		version := exec.Command(bin, "version")
		if err := version.Run(); err != nil {
			t.Fatal(err)
		}
		best = min(best, version.ProcessState.UserTime()+version.ProcessState.SystemTime())
	}
	if best > atMost {
		t.Errorf("pawl version takes %s of processor time, the limit is %s", best, atMost)
	}
	t.Logf("%.1f MiB, pawl version in %s of processor time", float64(info.Size())/(1<<20), best)
}
