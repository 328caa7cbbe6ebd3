// Package sqlite implements the embedded journal: one SQLite file in WAL mode, with
// every commit synced to disk before it is acknowledged.
//
// One writer per process commits the appends of all its runs together (group commit);
// readers have separate connections and never wait for it.
package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// Store implements [journal.Store] with one file.
type Store struct {
	journal.Shared
	path    string
	now     func() time.Time
	readers *sql.DB
	writer  *writer
	watch   *watcher
	queries queries
	close   sync.Once
	closed  error

	// statements holds prepared statements by their text; the readers close them.
	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

var (
	_ journal.Store      = (*Store)(nil)
	_ journal.ReadsTypes = (*Store)(nil)
)

// Path returns the path of the journal's file.
func (s *Store) Path() string { return s.path }

// Files returns the journal, its log and its shared memory.
func (s *Store) Files() []string {
	path, err := filepath.Abs(s.path)
	if err != nil {
		path = s.path
	}
	return []string{path, path + "-wal", path + "-shm"}
}

// Close waits for the commits in progress and closes the file.
func (s *Store) Close() error {
	s.close.Do(func() {
		var errs []error
		if s.watch != nil {
			s.watch.Close()
		}
		// Readers are closed first, so that the writer is the last connection and
		// deletes the log.
		if s.readers != nil {
			errs = append(errs, s.readers.Close())
		}
		if s.writer != nil {
			errs = append(errs, s.writer.stop())
		}
		s.closed = errors.Join(errs...)
	})
	return s.closed
}

func (s *Store) write(ctx context.Context, run func(*conn) error) error {
	return s.perform(ctx, &op{run: run, done: make(chan struct{}, 1)})
}

func (s *Store) perform(ctx context.Context, o *op) error {
	if s.writer == nil {
		return fmt.Errorf("%s: %w", s.path, journal.ErrReadOnly)
	}
	return s.writer.do(ctx, o)
}

// Create adds a run with its first records and its lease.
func (s *Store) Create(ctx context.Context, row journal.Run, b journal.Batch) (journal.Lease, int64, error) {
	b.Lease.Run, b.Lease.Epoch = row.ID, 1
	var first int64
	err := s.write(ctx, func(c *conn) (err error) {
		first, err = c.create(row, &b)
		return err
	})
	if err != nil {
		return journal.Lease{}, 0, fmt.Errorf("sqlite: create run %s: %w", row.ID, err)
	}
	return b.Lease, first, nil
}

// Append writes a batch durably, together with those of other runs that wait at the
// same time.
func (s *Store) Append(ctx context.Context, b journal.Batch) (int64, error) {
	if s.writer == nil {
		return 0, fmt.Errorf("sqlite: append to run %s: %w", b.Lease.Run, journal.ErrReadOnly)
	}
	o := s.writer.pool.Get().(*op)
	o.batch = b
	err := s.writer.do(ctx, o)
	first := o.first
	s.writer.put(o)
	if err != nil {
		return 0, fmt.Errorf("sqlite: append to run %s: %w", b.Lease.Run, err)
	}
	return first, nil
}

// Acquire takes a lease that is free, expired, or held by dead.
func (s *Store) Acquire(ctx context.Context, run, owner, dead string, ttl time.Duration) (journal.Lease, error) {
	l := journal.Lease{Run: run, Owner: owner}
	err := s.write(ctx, func(c *conn) error {
		now := s.now()
		l.Expiry = now.Add(ttl)
		epoch, ok, err := c.queryInt(acquireRun, run, owner, nanos(l.Expiry), dead, nanos(now))
		if err == nil && !ok {
			return c.heldBy(run)
		}
		l.Epoch = epoch
		return err
	})
	if err != nil {
		return journal.Lease{}, fmt.Errorf("sqlite: take the lease of run %s: %w", run, err)
	}
	return l, nil
}

// Renew extends a lease.
func (s *Store) Renew(ctx context.Context, l journal.Lease, ttl time.Duration) (journal.Lease, error) {
	l.Expiry = s.now().Add(ttl)
	err := s.write(ctx, func(c *conn) error {
		n, err := c.exec(renewRun, l.Run, l.Owner, l.Epoch, nanos(l.Expiry))
		if err == nil && n == 0 {
			return journal.ErrStale
		}
		return err
	})
	if err != nil {
		return l, fmt.Errorf("sqlite: renew the lease of run %s: %w", l.Run, err)
	}
	return l, nil
}

// Release releases a lease.
func (s *Store) Release(ctx context.Context, l journal.Lease) error {
	err := s.write(ctx, func(c *conn) error {
		_, err := c.exec(releaseRun, l.Run, l.Owner, l.Epoch)
		return err
	})
	if err != nil {
		return fmt.Errorf("sqlite: release the lease of run %s: %w", l.Run, err)
	}
	return nil
}

// Send puts a command into a run's inbox.
func (s *Store) Send(ctx context.Context, cmd journal.Command) (int64, error) {
	body, err := json.Marshal(cmd)
	if err != nil {
		return 0, fmt.Errorf("sqlite: encode command: %w", err)
	}
	var id int64
	err = s.perform(ctx, &op{commanded: cmd.Run, done: make(chan struct{}, 1), run: func(c *conn) (err error) {
		id, err = c.send(cmd.Run, body)
		return err
	}})
	if err != nil {
		return 0, fmt.Errorf("sqlite: send %s to run %s: %w", cmd.Kind, cmd.Run, err)
	}
	return id, nil
}

func (c *conn) send(run string, body []byte) (int64, error) {
	row, ok, err := c.queryRow(`SELECT rid, state FROM runs WHERE id = ?1`, run)
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return 0, journal.ErrNotFound
	case row[1] == string(journal.Ended):
		return 0, journal.ErrEnded
	}
	var id int64
	err = c.overwriting(func() (err error) {
		id, _, err = c.insert(`INSERT INTO inbox (rid, body) VALUES (?1, ?2)`, row[0], body)
		return err
	})
	return id, err
}

// Watch returns a channel that receives after each commit of any process.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.watch.Add(ctx, "") }

// WatchInbox returns a channel that receives after a command was sent to a run.
func (s *Store) WatchInbox(ctx context.Context, run string) <-chan struct{} {
	return s.watch.Add(ctx, run)
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func bytesOrNil(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}
