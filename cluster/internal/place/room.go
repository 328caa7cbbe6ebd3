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
	// mu guards lacked, what was missing when a queue looked last.
	mu     sync.Mutex
	lacked string
}

// lookForRoom is how often a worker that lacks something looks again.
const lookForRoom = time.Second

// ReserveSlot implements [worker.SlotSupplier].
func (r *room) ReserveSlot(ctx context.Context, _ worker.SlotReservationInfo) (*worker.SlotPermit, error) {
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
	return &worker.SlotPermit{}, nil
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

// MarkSlotUsed does nothing.
func (r *room) MarkSlotUsed(worker.SlotMarkUsedInfo) {}

// ReleaseSlot implements [worker.SlotSupplier].
func (r *room) ReleaseSlot(worker.SlotReleaseInfo) { <-r.slots }

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
