package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// Options configure [Open]. The zero value suits most callers.
type Options struct {
	// ReadOnly opens an existing journal for reading; nothing is created.
	ReadOnly bool
	// BusyTimeout is how long to wait for another process that is writing;
	// 0 means 5 s.
	BusyTimeout time.Duration
	// Now is the clock for leases; nil means time.Now.
	Now func() time.Time
	// maxPages bounds the file, so that tests can fill it.
	maxPages int
}

// Open opens the journal at path and creates it, readable by its owner only, if it does
// not exist. It fails with [journal.ErrNewer], [journal.ErrForeign],
// [journal.ErrCorrupt], [journal.ErrReadOnly], [journal.ErrFull] or [journal.ErrLocked]
// for these reasons, and leaves the file unchanged. For reading, an empty file, whose
// creation was interrupted, is [fs.ErrNotExist] like a missing one.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if err := CheckPath(path); err != nil {
		return nil, fmt.Errorf("sqlite: open journal: %w", err)
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s, err := openStore(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open journal %s: %w", path, classify(err))
	}
	return s, nil
}

func openStore(ctx context.Context, path string, o Options) (*Store, error) {
	if !o.ReadOnly {
		if err := create(path); err != nil {
			return nil, err
		}
	}
	if err := inspect(path); err != nil {
		return nil, err
	}
	if err := registerVFS(); err != nil {
		return nil, err
	}
	s := &Store{path: path, now: o.Now, queries: queriesOf(schemaVersion), statements: map[string]*sql.Stmt{}}
	if !o.ReadOnly {
		if err := s.openWriter(ctx, o); err != nil {
			return nil, err
		}
	}
	db, err := sql.Open("sqlite", readerDSN(path, o))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	db.SetMaxOpenConns(maxReaders)
	db.SetMaxIdleConns(maxReaders)
	s.readers = db
	s.watch = newWatcher(db)
	if o.ReadOnly {
		err := s.checkOwner(ctx)
		if needsRecovery(err) {
			if err = recoverFile(path, o); err == nil {
				err = s.checkOwner(ctx)
			}
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// recoverFile completes or undoes an interrupted write of a killed process. A reader
// cannot do that, so it opens the file for writing once, if it may.
func recoverFile(path string, o Options) error {
	if !writable(path) || !writable(filepath.Dir(path)) {
		return journal.ErrReadOnly
	}
	o.ReadOnly = false
	c, err := openWriterConn(path, o)
	if err != nil {
		return err
	}
	_, begin := c.exec("BEGIN IMMEDIATE")
	if begin == nil {
		_, begin = c.exec("COMMIT")
	}
	return errors.Join(begin, c.close())
}

// maxReaders bounds the concurrent reads; one of them may be the watcher's.
const maxReaders = 8

func (s *Store) openWriter(ctx context.Context, o Options) error {
	if to, err := os.Readlink(s.path); err == nil {
		return fmt.Errorf("it is a link to %s, which has its log beside itself; name that file", to)
	}
	// SQLite would open the file read-only and fail at the first append, when work
	// could be lost.
	if !writable(s.path) || !writable(filepath.Dir(s.path)) {
		return journal.ErrReadOnly
	}
	c, err := openWriterConn(s.path, o)
	if err != nil {
		return err
	}
	if err := c.prepareFile(ctx, o.BusyTimeout); err != nil {
		return errors.Join(err, c.close())
	}
	f, err := identify(s.path)
	if err != nil {
		return errors.Join(err, c.close())
	}
	// This error may be temporary, but nothing may be acknowledged after a failed sync.
	if err := c.emptyEndedInboxes(); syncFailed(err) {
		return errors.Join(err, c.close())
	}
	p := newCheckpointer(func() (*conn, error) { return openWriterConn(s.path, o) })
	s.writer = newWriter(c, f, p, func(commanded []string) { s.watch.Notify(append(commanded, "")...) })
	s.writer.eraseLog()
	return nil
}

func openWriterConn(path string, o Options) (*conn, error) {
	return openConn(writerURI(path), writerSettings(o))
}

// ownerQuery returns the program and version of a database, and whether it has any
// tables.
const ownerQuery = `
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version`

// checkOwner is [inspect] for content that is only in the log yet.
func (s *Store) checkOwner(ctx context.Context) error {
	var application, version, tables int64
	err := s.readers.QueryRowContext(ctx, ownerQuery).Scan(&application, &version, &tables)
	switch {
	case err != nil:
		return err
	case application == 0 && version == 0 && tables == 0:
		return fmt.Errorf("the file is empty: %w", fs.ErrNotExist)
	case version == 0:
		return journal.ErrForeign
	}
	s.queries = queriesOf(version)
	return checkOwner(application, version)
}

// prepareFile initializes a new journal, and rejects a file of another program.
func (c *conn) prepareFile(ctx context.Context, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; {
		err := c.migrate()
		// SQLite does not wait for the lock that changing the mode of a file needs,
		// which two processes may do at once.
		if !errors.Is(err, journal.ErrLocked) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// migrate initializes an empty file, and upgrades one of an older version.
func (c *conn) migrate() error {
	version, err := c.format()
	if err != nil {
		return err
	}
	mode, _, err := c.queryRow("PRAGMA journal_mode")
	if err != nil {
		return err
	}
	if mode[0] != "wal" {
		if mode, _, err = c.queryRow("PRAGMA journal_mode = WAL"); err != nil {
			return err
		}
		if mode[0] != "wal" {
			return fmt.Errorf("the file system cannot share a journal between processes (mode %v)", mode[0])
		}
	}
	if version == schemaVersion {
		return nil
	}
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	// Another process may have done it.
	if version, err = c.format(); err == nil {
		err = c.upgrade(version)
	}
	if err != nil {
		return errors.Join(err, c.rollback())
	}
	_, err = c.exec("COMMIT")
	return err
}

// format returns the version of the file's format, 0 for an empty file; it rejects
// files of other programs.
func (c *conn) format() (int64, error) {
	row, _, err := c.queryRow(ownerQuery)
	if err != nil {
		return 0, err
	}
	application, _ := row[0].(int64)
	version, _ := row[1].(int64)
	if err := checkOwner(application, version); err != nil {
		return 0, err
	}
	if version == 0 && row[2] != int64(0) {
		return 0, journal.ErrForeign
	}
	return version, nil
}

// checkpointPages is the length of the log, in pages, at which a commit itself copies
// what the [checkpointer] has not copied. A log that grew longer because of a reader is
// truncated to twice the size.
const (
	checkpointPages = 4000
	pageSize        = 4096
)

func writerURI(path string) string {
	q := url.Values{}
	if vfsName != "" {
		q.Set("vfs", vfsName)
	}
	return dsn(path, q)
}

func writerSettings(o Options) string {
	settings := []string{
		busyTimeout(o),
		// A commit is on disk before it is acknowledged; NORMAL would only prevent
		// damage to the file.
		"synchronous(FULL)",
		fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages),
		fmt.Sprintf("journal_size_limit(%d)", 2*checkpointPages*pageSize),
	}
	if o.maxPages > 0 {
		settings = append(settings, fmt.Sprintf("max_page_count(%d)", o.maxPages))
	}
	return "PRAGMA " + strings.Join(settings, "; PRAGMA ")
}

func readerDSN(path string, o Options) string {
	q := url.Values{"_pragma": {busyTimeout(o), "query_only(1)"}}
	if o.ReadOnly {
		q.Set("mode", "ro")
		q.Set("vfs", vfsName)
		if settled(path) {
			q.Set("immutable", "1")
		}
	}
	return dsn(path, q)
}

// settled reports whether no process can be writing: there is no log, and no place to
// create one. SQLite reads such a file only with a special option.
func settled(path string) bool {
	if _, err := os.Stat(path + "-wal"); err == nil {
		return false
	}
	return !writable(filepath.Dir(path))
}

func busyTimeout(o Options) string {
	return fmt.Sprintf("busy_timeout(%d)", o.BusyTimeout.Milliseconds())
}

func dsn(path string, q url.Values) string {
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}
