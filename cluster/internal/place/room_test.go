package place

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/worker"
)

func TestWhatAMachineLacks(t *testing.T) {
	const most = 1 << 62
	for _, tt := range []struct {
		name, dir    string
		memory, disk uint64
		want         string
	}{
		{"nothing", t.TempDir(), 1, 1, ""},
		{"memory", t.TempDir(), most, 1, "memory: "},
		{"disk", t.TempDir(), 1, most, "disk: "},
		{"what cannot be read", filepath.Join(t.TempDir(), "missing"), 1, most, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.memory == most && runtime.GOOS != "linux" {
				t.Skip("the free memory is known on Linux alone")
			}
			if got := lacking(tt.dir, tt.memory, tt.disk); got != tt.want && (tt.want == "" || !strings.HasPrefix(got, tt.want)) {
				t.Errorf("lacks %q, want %q", got, tt.want)
			}
		})
	}
}

// poll is a poll of a queue that needs a slot, and slot one that has it.
type poll struct {
	worker.SlotReservationInfo
	queue string
}

type slot struct {
	worker.SlotReleaseInfo
	permit *worker.SlotPermit
}

func (p poll) TaskQueue() string          { return p.queue }
func (s slot) Permit() *worker.SlotPermit { return s.permit }

// A worker is full while it cannot poll the queue of runs for any worker: the queue of its
// host has the second slot, both have runs, or the machine lacks something.
func TestWorkerIsFullWhileItPollsForNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lack, full := "", false
		r := &room{slots: make(chan struct{}, 2), lacks: func() string { return lack }, log: slog.New(slog.DiscardHandler), queue: "any", full: func(now bool) { full = now }}
		ctx, stop := context.WithCancel(t.Context())
		reserve := func(queue string) (slots chan slot) {
			slots = make(chan slot, 1)
			go func() {
				if p, err := r.ReserveSlot(ctx, poll{queue: queue}); err == nil {
					slots <- slot{permit: p}
				}
			}()
			synctest.Wait()
			return slots
		}
		is := func(what string, want bool) {
			t.Helper()
			if synctest.Wait(); full != want {
				t.Errorf("%s: full is %v", what, full)
			}
		}
		host, one := <-reserve("host"), <-reserve("any")
		is("both queues are polled", false)
		r.MarkSlotUsed(one)
		waits := reserve("any")
		is("the one slot is used", true)
		r.ReleaseSlot(one)
		two := <-waits
		is("the run has ended", false)
		r.MarkSlotUsed(two)
		waits = reserve("any")
		r.MarkSlotUsed(host)
		is("both slots are used", true)
		r.ReleaseSlot(host)
		three := <-waits
		is("a run of the host has ended", false)
		lack = "memory"
		r.ReleaseSlot(three)
		is("a poll found nothing", false)
		waits = reserve("any")
		is("the machine lacks memory", true)
		lack = ""
		time.Sleep(lookForRoom)
		<-waits
		is("the machine has room", false)
		stop()
	})
}
