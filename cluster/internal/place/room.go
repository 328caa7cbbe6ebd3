package place

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/worker"
)

// room limits what a worker takes: it asks Temporal for no more runs while it drives as
// many as it may, or while the machine lacks memory or disk. All queues of the worker
// share it.
type room struct {
	slots chan struct{}
	// lacks returns what the machine has too little of, "" for nothing.
	lacks func() string
	log   *slog.Logger
	// queue is the queue of runs for any worker. full is called with whether the worker
	// takes none of them.
	queue string
	full  func(bool)
	// mu guards lacked, what was missing when a queue looked last, and open, the slots with
	// which queue is polled.
	mu     sync.Mutex
	lacked string
	open   int
}

// lookForRoom is how often a worker that lacks something looks again.
const lookForRoom = time.Second

// ReserveSlot implements [worker.SlotSupplier].
func (r *room) ReserveSlot(ctx context.Context, info worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	permit := &worker.SlotPermit{}
	if info.TaskQueue() == r.queue {
		permit.UserData = new(false)
		r.poll(permit, false, true)
	}
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for r.look() != "" {
		select {
		case <-time.After(lookForRoom):
		case <-ctx.Done():
			<-r.slots
			return nil, ctx.Err()
		}
	}
	r.poll(permit, true, true)
	return permit, nil
}

// poll sets whether a slot polls the queue of runs for any worker. With tell it calls full,
// with whether no slot does.
func (r *room) poll(p *worker.SlotPermit, now, tell bool) {
	polls, is := p.UserData.(*bool)
	if !is {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now && !*polls {
		r.open++
	} else if !now && *polls {
		r.open--
	}
	*polls = now
	if tell {
		r.full(r.open == 0)
	}
}

// look returns what the machine lacks, and logs that this began or is over.
func (r *room) look() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lack := r.lacks()
	switch {
	case lack == "" && r.lacked != "":
		r.log.Info("takes runs again")
	case lack != "" && r.lacked == "":
		r.log.Warn("takes no more runs", "lacks", lack)
	}
	r.lacked = lack
	return lack
}

// TryReserveSlot returns none, because a worker takes runs from its queues alone.
func (r *room) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit { return nil }

// MarkSlotUsed implements [worker.SlotSupplier].
func (r *room) MarkSlotUsed(info worker.SlotMarkUsedInfo) { r.poll(info.Permit(), false, true) }

// ReleaseSlot implements [worker.SlotSupplier].
func (r *room) ReleaseSlot(info worker.SlotReleaseInfo) {
	r.poll(info.Permit(), false, false) // it may be reserved again at once
	<-r.slots
}

// MaxSlots implements [worker.SlotSupplier].
func (r *room) MaxSlots() int { return cap(r.slots) }

const (
	// leastMemory and leastDisk are what has to be free before a worker takes a run.
	leastMemory = 256 << 20
	leastDisk   = 512 << 20
)

// MachineLacks returns what this machine has too little of to take a run whose files are
// in dir: memory or disk, "" for nothing. What cannot be read is not missing.
func MachineLacks(dir string) string { return lacking(dir, leastMemory, leastDisk) }

func lacking(dir string, memory, disk uint64) string {
	if free, known := freeMemory(); known && free < memory {
		return fmt.Sprintf("memory: %d MiB are available, and a run needs %d", free>>20, memory>>20)
	}
	var there syscall.Statfs_t
	if err := syscall.Statfs(dir, &there); err == nil {
		if free := there.Bavail * uint64(there.Bsize); free < disk {
			return fmt.Sprintf("disk: %d MiB are free at %s, and a run needs %d", free>>20, dir, disk>>20)
		}
	}
	return ""
}

// freeMemory returns what the system can give to programs without swapping.
func freeMemory() (bytesFree uint64, known bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == "MemAvailable:" {
			kib, err := strconv.ParseUint(string(f[1]), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
