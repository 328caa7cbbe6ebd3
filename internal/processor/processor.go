// Package processor tells tests what work costs. A clock on the wall also tells
// what else the machine does meanwhile.
package processor

import (
	"syscall"
	"testing"
	"time"
)

// Time is how long processors have worked for this process. What it grows by is
// the cost of what was done in between where nothing runs beside it.
func Time(t testing.TB) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
