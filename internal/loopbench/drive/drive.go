// Package drive is what the programs have in common that do runs of one loop and say what
// they cost. A benchmark starts each as a process of its own, so that the loops share
// neither a heap nor a processor with each other or with the model's server.
package drive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Order is what is to be done.
type Order struct {
	// URL is the server's, Dir where a loop keeps what it keeps, or empty for one that
	// keeps nothing.
	URL, Dir string
	// Turns are those of a run, Calls those of each turn but the last.
	Turns, Calls int
	// Runs are done AtOnce, and some before to warm up. The first ones start over a time.
	Runs, AtOnce, Warm int
	Over               time.Duration
}

// Report is what the runs cost, without those that were to warm up.
type Report struct {
	// Took is by the clock, CPU by the processor.
	Took, CPU time.Duration
	Objects   uint64
	// PeakKiB is the memory of the process at its peak, above what it was before.
	PeakKiB int
	// Texts are what the runs ended with, and Began when each began.
	Texts []string
	Began []time.Time
	Err   string
}

// Run does one run, and returns the text that it ended with.
type Run func(ctx context.Context, task string) (string, error)

// Main is a whole program: its argument is an order, in JSON, and it prints the report.
func Main(setup func(Order) (Run, error)) {
	var o Order
	var r Report
	err := json.Unmarshal([]byte(os.Args[len(os.Args)-1]), &o)
	if err == nil {
		err = r.fill(o, setup)
	}
	if err != nil {
		r.Err = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

func (r *Report) fill(o Order, setup func(Order) (Run, error)) error {
	run, err := setup(o)
	if err != nil {
		return err
	}
	if o.Warm > 0 {
		if err := o.do(run, o.Warm, 0, &Report{}); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		runtime.GC()
		debug.FreeOSMemory()
	}
	calls.Store(0)
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak is this from now on
	resident := status("VmRSS:")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := processor(), time.Now()
	err = o.do(run, o.Runs, o.Over, r)
	r.Took, r.CPU = time.Since(start), processor()-cpu
	runtime.ReadMemStats(&after)
	r.PeakKiB, r.Objects = status("VmHWM:")-resident, after.Mallocs-before.Mallocs
	if want := int64(o.Runs * (o.Turns - 1) * o.Calls); err == nil && calls.Load() != want {
		err = fmt.Errorf("%d calls were made, not %d", calls.Load(), want)
	}
	return err
}

// do does so many runs, and starts the first ones over a time.
func (o Order) do(run Run, n int, over time.Duration, r *Report) error {
	r.Texts, r.Began = make([]string, n), make([]time.Time, n)
	errs := make([]error, n)
	var next atomic.Int64
	var all sync.WaitGroup
	atOnce := min(o.AtOnce, n)
	for w := range atOnce {
		all.Go(func() {
			time.Sleep(over * time.Duration(w) / time.Duration(atOnce))
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				r.Began[i] = time.Now()
				r.Texts[i], errs[i] = run(context.Background(), fmt.Sprintf("Do what is to be done, call by call; this is run %d.", i))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// processor is how long processors have worked for this process.
func processor() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// status is a line of the process's status, in KiB; 0 on systems that have none.
func status(name string) int {
	text, _ := os.ReadFile("/proc/self/status")
	_, text, _ = bytes.Cut(text, []byte(name))
	n, _ := strconv.Atoi(string(bytes.Fields(append(text, " 0"...))[0]))
	return n
}
