package loopbench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/loopbench/drive"
)

// drivers are the programs that do runs, and the server that answers them. As each has a
// processor of its own, none waits for another.
type drivers struct{ lean, pawl, server string }

func newDrivers(b testing.TB) drivers {
	b.Helper()
	dir := b.TempDir()
	out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir, "./drive/...").CombinedOutput()
	if err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	server := on(0, os.Args[0])
	return drivers{lean: filepath.Join(dir, "lean"), pawl: filepath.Join(dir, "pawl"), server: serverOf(b, server)}
}

// on is a command that has one processor, that of a number where the system can say so.
func on(processor int, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	if taskset, err := exec.LookPath("taskset"); err == nil && runtime.NumCPU() > 1 {
		cmd = exec.Command(taskset, append([]string{"-c", strconv.Itoa(processor), name}, args...)...)
	}
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	return cmd
}

// do has a program do an order, whose runs wait so many ms for each answer.
func (d drivers) do(b testing.TB, program string, o drive.Order, ms int) drive.Report {
	b.Helper()
	o.URL = fmt.Sprintf("%s/%d/%d/%d", d.server, o.Turns, o.Calls, ms)
	if o.Dir != "" {
		var err error
		if o.Dir, err = os.MkdirTemp(o.Dir, ""); err != nil {
			b.Fatal(err)
		}
		defer os.RemoveAll(o.Dir)
	}
	order, err := json.Marshal(o)
	if err != nil {
		b.Fatal(err)
	}
	cmd := on(1, program, string(order))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var r drive.Report
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil || r.Err != "" {
		b.Fatalf("%s %s: %v, %s %s", program, order, err, r.Err, said.Bytes())
	}
	return r
}

// mostObjects bounds what a turn of two calls allocates in memory. The lean loop makes
// about 100 objects, and the aim is 220: the bound is only ever lowered.
const mostObjects = 380

// TestTurnAllocatesNoMoreThanItDid counts objects, which do not depend on the machine.
func TestTurnAllocatesNoMoreThanItDid(t *testing.T) {
	d := newDrivers(t)
	order := drive.Order{Turns: 50, Calls: 2, Runs: 8, AtOnce: 1, Warm: 2}
	for name, bound := range map[string]struct {
		program string
		most    float64
	}{"pawl": {d.pawl, mostObjects}, "lean": {d.lean, 110}} {
		objects := float64(d.do(t, bound.program, order, 0).Objects) / float64(order.Turns*order.Runs)
		t.Logf("a turn of %s makes %.0f objects", name, objects)
		if objects > bound.most || objects < 50 {
			t.Errorf("a turn of %s makes %.0f objects, at most %.0f are allowed", name, objects, bound.most)
		}
	}
}

// sized is the order with as many runs as fill some time, and as many as warm up.
func (d drivers) sized(b *testing.B, program string, o drive.Order) drive.Order {
	b.Helper()
	const fill = 1500 * time.Millisecond
	o.Runs, o.Warm = max(2, 2*o.AtOnce), o.AtOnce
	took := d.do(b, program, o, 0).Took
	o.Runs = max(8, o.AtOnce, int(fill*time.Duration(o.Runs)/took))
	o.Warm = max(o.AtOnce, min(o.Runs/3, 500))
	return o
}

// BenchmarkTurn measures the CPU of a turn of a run that is started as a program would,
// against the lean loop, round by round. A durable run that is alone is held against the
// lean loop with two appends and syncs of 4 KiB a turn.
func BenchmarkTurn(b *testing.B) {
	d := newDrivers(b)
	for _, at := range []struct{ runs, turns, calls int }{{1, 50, 1}, {1, 20, 8}, {64, 10, 2}, {512, 10, 2}} {
		for _, kind := range []string{"memory", "durable"} {
			b.Run(fmt.Sprintf("%s/runs=%d/N=%d/K=%d", kind, at.runs, at.turns, at.calls), func(b *testing.B) {
				pawl := drive.Order{Turns: at.turns, Calls: at.calls, AtOnce: at.runs}
				if kind == "durable" {
					pawl.Dir = b.TempDir()
				}
				lean := pawl
				if at.runs > 1 {
					lean.Dir = ""
				}
				lean, pawl = d.sized(b, d.lean, lean), d.sized(b, d.pawl, pawl)
				var ratios, leanCPU, pawlCPU, objects, all []float64
				for b.Loop() {
					x, y := d.do(b, d.lean, lean, 0), d.do(b, d.pawl, pawl, 0)
					leanCPU = append(leanCPU, float64(x.CPU)/float64(lean.Runs*lean.Turns))
					pawlCPU = append(pawlCPU, float64(y.CPU)/float64(pawl.Runs*pawl.Turns))
					all = append(all, float64(y.Objects)/float64(pawl.Runs*pawl.Turns))
					objects = append(objects, float64(y.Objects)/float64(pawl.Runs*pawl.Turns)-float64(x.Objects)/float64(lean.Runs*lean.Turns))
					ratios = append(ratios, pawlCPU[len(pawlCPU)-1]/leanCPU[len(leanCPU)-1])
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(ratios), "ratio")
				b.ReportMetric(median(objects), "allocs/turn-above-lean")
				b.ReportMetric(median(all), "allocs/turn")
				b.ReportMetric(median(leanCPU), "lean-cpu-ns/turn")
				b.ReportMetric(median(pawlCPU), "cpu-ns/turn")
			})
		}
	}
}
