package sqlite

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// checkpointEvery is the number of events after which the log is copied into the
	// database, and checkpointCrowd the number if a commit has at least crowd
	// operations. The more there is to copy, the longer are the syncs of concurrent
	// commits, and every run of a crowd waits for each of them; a single run does not
	// notice, and would pay for every copy with its own time.
	checkpointEvery = 2000
	checkpointCrowd = 500
	crowd           = 8
	// chasePages is the length at which the log is copied again, so that little is left
	// for the commit that completes the copy.
	chasePages = checkpointPages * 3 / 4
)

// checkpointer copies the log into the database while others commit, on a separate
// connection. A completely copied log is overwritten from its start; if commits never
// pause, the commit that finds the log [checkpointPages] long completes the copy. A
// copy is synced once: syncing in steps takes longer and slows concurrent commits. It
// only saves waiting, so a failed copy is left to the next one.
//
// It also erases the log if the log contains deleted data that must not remain.
type checkpointer struct {
	open  func() (*conn, error)
	start sync.Once
	due   chan struct{}
	ended chan struct{}
	// erasing requests that the log be erased.
	erasing atomic.Bool
}

func newCheckpointer(open func() (*conn, error)) *checkpointer {
	return &checkpointer{open: open, due: make(chan struct{}, 1), ended: make(chan struct{})}
}

// ask requests a copy soon. It does not wait, and must not be called after stop.
func (p *checkpointer) ask() {
	p.start.Do(func() { go p.loop() })
	select {
	case p.due <- struct{}{}:
	default:
	}
}

// erase requests that the log be erased soon. It does not wait, and must not be called
// after stop.
func (p *checkpointer) erase() {
	p.erasing.Store(true)
	p.ask()
}

// stop waits for the copy in progress.
func (p *checkpointer) stop() {
	close(p.due)
	p.start.Do(func() { close(p.ended) })
	<-p.ended
}

func (p *checkpointer) loop() {
	defer close(p.ended)
	var c *conn
	defer func() {
		if c != nil {
			c.close()
		}
	}()
	var again <-chan time.Time // when the log may next be erased, nil for now
	wait := eraseRetry
	for open := true; open; {
		select {
		case _, open = <-p.due:
		case <-again:
			again = nil
		}
		if c == nil {
			c, _ = p.open()
		}
		copied := c != nil && c.checkpoint() == nil
		if !p.erasing.Load() || again != nil && open {
			continue
		}
		if copied && p.eraseLog(c, !open) {
			again, wait = time.After(erasePause), eraseRetry
		} else {
			again, wait = time.After(wait), min(2*wait, erasePause)
		}
	}
}

// checkpoint copies the log and, while it is long, also what was added meanwhile. It
// skips a log without new commits, or with an active reader.
func (c *conn) checkpoint() error {
	for before, pages := int64(-1), int64(chasePages); chasePages <= pages && pages < checkpointPages && pages != before; {
		row, _, err := c.queryRow("PRAGMA wal_checkpoint(PASSIVE)")
		if err != nil {
			return err
		}
		before = pages
		pages, _ = row[1].(int64)
	}
	return nil
}
