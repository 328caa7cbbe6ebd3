package server

import (
	"cmp"
	"context"
	"sync"

	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
)

// removal lists what a remove deleted.
type removal struct {
	Removed []string `json:"removed"`
}

// remove deletes an ended run with its descendants, and their logs and clones on this machine.
func (s *Server) remove(a *apiRequest[none, none]) (removal, error) {
	row, err := s.find(a.Request)
	if err != nil {
		return removal{}, err
	}
	if row.State != journal.Ended {
		return removal{}, kindGoing.problem("POST /v1/runs/"+row.ID+"/cancel ends it", "run %s is %s", row.ID, row.State).about(row.ID, "")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.Context()), patience)
	defer cancel()
	clones, unknown := control.ClonesOf(ctx, s.store, s.launch.Here, row.ID)
	gone, err := journal.Remove(ctx, s.store, row.ID)
	s.removals.add(gone)
	if wrong := cmp.Or(unknown, clones.Remove(ctx, s.store, gone)); wrong != nil {
		s.log.Error("the clone of a removed run stays", "run", row.ID, "error", wrong)
	}
	for _, run := range gone {
		if s.launch.RemoveLogs == nil {
			break
		}
		if err := s.launch.RemoveLogs(run); err != nil {
			s.log.Error("the log of a removed run stays", "run", run, "error", err)
		}
	}
	if err != nil {
		return removal{}, problemOf(err).about(row.ID, "")
	}
	return removal{gone}, nil
}

// removals passes the runs that this server removed to the streams of runs. A journal
// keeps nothing of a removed run, so its records do not contain the removal.
type removals struct {
	mu      sync.Mutex
	readers map[*removalReader]bool
}

// removalReader holds the removed runs that a stream has not sent yet.
type removalReader struct {
	wake chan struct{}
	runs []string
}

// add passes removed runs to all readers.
func (r *removals) add(runs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for reader := range r.readers {
		reader.runs = append(reader.runs, runs...)
		select {
		case reader.wake <- struct{}{}:
		default: // it has not taken the last ones yet
		}
	}
}

// read adds a reader until leave is called.
func (r *removals) read() (reader *removalReader, leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readers == nil {
		r.readers = map[*removalReader]bool{}
	}
	reader = &removalReader{wake: make(chan struct{}, 1)}
	r.readers[reader] = true
	return reader, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.readers, reader)
	}
}

// take returns what a reader has not taken yet.
func (r *removals) take(reader *removalReader) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	runs := reader.runs
	reader.runs = nil
	return runs
}
