package sqlite

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// checkpointEvery is after how many events the log is copied into the
	// database, and checkpointCrowd after how many where a commit has at least
	// crowd operations. The more there is to copy, the longer are the syncs of the
	// commits beside it, and a crowd waits for each; one run alone does not
	// notice, and would pay for every copy with its own time.
	checkpointEvery = 2000
	checkpointCrowd = 500
	crowd           = 8
	// chasePages is how long the log may become before it is copied again, so
	// that little is left for the commit that finishes it.
	chasePages = checkpointPages * 3 / 4
)

// checkpointer copies the log into the database while others commit, on a
// connection of its own. A log that is copied as a whole is written from its
// start again; one that never is, because commits never pause, is finished by
// the commit that finds it [checkpointPages] long. A copy goes to the disk in one
// piece: in steps it takes longer, and so do the slowest commits beside it. It
// only saves others from waiting, so one that fails is left to the next.
//
// It also erases the log where that still has what is to be found nowhere.
type checkpointer struct {
	open  func() (*conn, error)
	start sync.Once
	due   chan struct{}
	ended chan struct{}
	// erasing says that the log is to be erased.
	erasing atomic.Bool
}

func newCheckpointer(open func() (*conn, error)) *checkpointer {
	return &checkpointer{open: open, due: make(chan struct{}, 1), ended: make(chan struct{})}
}

// ask wants a copy soon. It does not wait, and must not follow stop.
func (p *checkpointer) ask() {
	p.start.Do(func() { go p.loop() })
	select {
	case p.due <- struct{}{}:
	default:
	}
}

// erase wants the log erased soon. It does not wait, and must not follow stop.
func (p *checkpointer) erase() {
	p.erasing.Store(true)
	p.ask()
}

// stop waits for the copy under way.
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

// checkpoint copies the log and, while it is long, also what was added meanwhile.
// It leaves a log without new commits, or with an active reader.
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
