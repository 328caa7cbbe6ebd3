// Package sqlite is the embedded journal: one SQLite file in WAL mode, every
// commit synced to disk before it is acknowledged. One writer per process
// commits the appends of all its runs together (group commit); readers have
// their own connections and never wait for it.
package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// Options change what [Open] does. The zero value is right for most.
type Options struct {
	// ReadOnly opens an existing journal for reading; nothing is created.
	ReadOnly bool
	// BusyTimeout is how long to wait for another process that is writing;
	// 0 means 5 s.
	BusyTimeout time.Duration
	// Now is the clock for leases; nil means time.Now.
	Now func() time.Time
}

// Store implements [journal.Store] on one file.
type Store struct {
	path    string
	now     func() time.Time
	readers *sql.DB
	writer  *writer
	watch   *watcher
	close   sync.Once
	closed  error
}

var _ journal.Store = (*Store)(nil)

// Open opens the journal at path and creates it, readable by its owner only,
// when it is not there.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if !o.ReadOnly {
		if err := create(path); err != nil {
			return nil, err
		}
	} else if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("sqlite: open journal %s: %w", path, err)
	}
	s := &Store{path: path, now: o.Now}
	if !o.ReadOnly {
		w, err := openWriter(dsn(path, o, "synchronous(FULL)"))
		if err != nil {
			return nil, fmt.Errorf("sqlite: open journal %s: %w", path, classify(err))
		}
		s.writer = w
	}
	db, err := sql.Open("sqlite", dsn(path, o, "query_only(1)"))
	if err != nil {
		s.closeWriter()
		return nil, fmt.Errorf("sqlite: open journal %s: %w", path, classify(err))
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	s.readers = db
	if err := s.checkVersion(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.watch = newWatcher(db)
	if s.writer != nil {
		s.writer.committed = s.watch.notify
	}
	return s, nil
}

// create makes the file before SQLite does, because a journal holds what the
// agent saw and must not be readable by others.
func create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("sqlite: create journal directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sqlite: create journal: %w", err)
	}
	return f.Close()
}

func dsn(path string, o Options, pragmas ...string) string {
	q := url.Values{"_pragma": append([]string{
		fmt.Sprintf("busy_timeout(%d)", o.BusyTimeout.Milliseconds()), "journal_mode(WAL)",
	}, pragmas...)}
	if o.ReadOnly {
		q["_pragma"] = append([]string{fmt.Sprintf("busy_timeout(%d)", o.BusyTimeout.Milliseconds())}, pragmas...)
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

func (s *Store) checkVersion(ctx context.Context) error {
	var v int
	if err := s.readers.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v); err != nil {
		return fmt.Errorf("sqlite: open journal %s: %w", s.path, classify(err))
	}
	switch {
	case v > schemaVersion:
		return fmt.Errorf("sqlite: journal %s has format %d, this version knows %d: %w", s.path, v, schemaVersion, journal.ErrNewer)
	case v == 0:
		return fmt.Errorf("sqlite: %s is not a journal", s.path)
	}
	return nil
}

// Close waits for the commits under way and closes the file.
func (s *Store) Close() error {
	s.close.Do(func() {
		var errs []error
		if s.watch != nil {
			s.watch.stop()
		}
		errs = append(errs, s.closeWriter())
		if s.readers != nil {
			errs = append(errs, s.readers.Close())
		}
		s.closed = errors.Join(errs...)
	})
	return s.closed
}

func (s *Store) closeWriter() error {
	if s.writer == nil {
		return nil
	}
	return s.writer.stop()
}

func (s *Store) write(ctx context.Context, o *op) error {
	if s.writer == nil {
		return fmt.Errorf("sqlite: write to %s: %w", s.path, journal.ErrReadOnly)
	}
	return s.writer.do(ctx, o)
}

// Create adds a run with its first records and its lease.
func (s *Store) Create(ctx context.Context, row journal.Run, b journal.Batch) (journal.Lease, int64, error) {
	lease := b.Lease
	lease.Run, lease.Epoch = row.ID, 1
	var first int64
	err := s.write(ctx, &op{run: func(c *conn) (err error) {
		rid, err := c.insert(insertRun, row.ID, row.Parent, row.Kind, row.Name, nanos(row.Created), nanos(b.Time),
			string(b.Status.State), b.Status.Detail, int64(b.Status.Cycles), bytesOrNil(b.Status.Outcome),
			int64(len(b.Records)), b.Head, lease.Owner, nanos(lease.Expiry))
		if err != nil {
			return err
		}
		c.rids[row.ID] = rid
		first, err = c.insertRecords(rid, b)
		return err
	}})
	if err != nil {
		return journal.Lease{}, 0, fmt.Errorf("sqlite: create run %s: %w", row.ID, err)
	}
	return lease, first, nil
}

// Append writes a batch durably, together with those of other runs that wait
// at the same moment.
func (s *Store) Append(ctx context.Context, b journal.Batch) (int64, error) {
	var first int64
	err := s.write(ctx, &op{run: func(c *conn) (err error) {
		first, err = c.append(b)
		return err
	}})
	if err != nil {
		return 0, fmt.Errorf("sqlite: append to run %s: %w", b.Lease.Run, err)
	}
	return first, nil
}

// Acquire takes a free or expired lease, or one that dead held.
func (s *Store) Acquire(ctx context.Context, run, owner, dead string, ttl time.Duration) (journal.Lease, error) {
	l := journal.Lease{Run: run, Owner: owner}
	err := s.write(ctx, &op{run: func(c *conn) error {
		now := s.now()
		l.Expiry = now.Add(ttl)
		epoch, ok, err := c.queryInt(acquireRun, run, owner, nanos(l.Expiry), or(dead, owner), nanos(now))
		if err == nil && !ok {
			return c.heldBy(run)
		}
		l.Epoch = epoch
		return err
	}})
	if err != nil {
		return journal.Lease{}, fmt.Errorf("sqlite: take the lease of run %s: %w", run, err)
	}
	return l, nil
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// Renew extends a lease.
func (s *Store) Renew(ctx context.Context, l journal.Lease, ttl time.Duration) (journal.Lease, error) {
	l.Expiry = s.now().Add(ttl)
	err := s.write(ctx, &op{run: func(c *conn) error {
		n, err := c.exec(renewRun, l.Run, l.Owner, l.Epoch, nanos(l.Expiry))
		if err == nil && n == 0 {
			return journal.ErrStale
		}
		return err
	}})
	if err != nil {
		return l, fmt.Errorf("sqlite: renew the lease of run %s: %w", l.Run, err)
	}
	return l, nil
}

// Release gives a lease up.
func (s *Store) Release(ctx context.Context, l journal.Lease) error {
	err := s.write(ctx, &op{run: func(c *conn) error {
		_, err := c.exec(releaseRun, l.Run, l.Owner, l.Epoch)
		return err
	}})
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
	err = s.write(ctx, &op{inbox: true, run: func(c *conn) (err error) {
		rid, err := c.rid(cmd.Run)
		if err != nil {
			return err
		}
		if ended, _, err := c.queryInt(`SELECT state = 'ended' FROM runs WHERE rid = ?1`, rid); err != nil || ended == 1 {
			return errors.Join(err, journal.ErrEnded)
		}
		id, err = c.insert(`INSERT INTO inbox (rid, body) VALUES (?1, ?2)`, rid, body)
		return err
	}})
	if err != nil {
		return 0, fmt.Errorf("sqlite: send %s to run %s: %w", cmd.Kind, cmd.Run, err)
	}
	return id, nil
}

// Delete removes an ended or parked run that nobody drives.
func (s *Store) Delete(ctx context.Context, run string) error {
	err := s.write(ctx, &op{run: func(c *conn) error {
		rid, err := c.rid(run)
		if err != nil {
			return err
		}
		held, _, err := c.queryInt(`SELECT owner <> '' AND expiry > ?2 FROM runs WHERE rid = ?1`, rid, nanos(s.now()))
		if err != nil {
			return err
		}
		if held == 1 {
			return c.heldBy(run)
		}
		delete(c.rids, run)
		for _, q := range []string{deleteEvents, buryEvent, `DELETE FROM inbox WHERE rid = ?1`, `DELETE FROM runs WHERE rid = ?1`} {
			if _, err := c.exec(q, rid); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return fmt.Errorf("sqlite: delete run %s: %w", run, err)
	}
	return nil
}

// Watch returns a channel that receives after each commit of any process.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.watch.add(ctx, false) }

// WatchInbox returns a channel that receives after a command was sent.
func (s *Store) WatchInbox(ctx context.Context) <-chan struct{} { return s.watch.add(ctx, true) }

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

func likePrefix(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(prefix) + "%"
}
