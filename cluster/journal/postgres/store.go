// Package postgres stores a journal in a PostgreSQL database, for several processes on
// several machines. Each process commits the appends of all its runs together, on one
// connection; other statements use a pool of connections. Leases use the database's
// clock.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlrun/pawl/journal"
)

// Options configure [Open].
type Options struct {
	// ReadOnly opens an existing journal for reading; the database may be a standby.
	ReadOnly bool
	// Create creates the journal if there is none.
	Create bool
	// Patience is how long an operation waits for a database that does not respond; 0
	// means 90 s.
	Patience time.Duration
	// Now is the clock for leases; nil means the database's clock.
	Now func() time.Time
	// local is this process's clock, which tests move; nil means time.Now.
	local func() time.Time
}

// Store implements [journal.Store].
type Store struct {
	journal.Shared
	config *config
	// now replaces the database's clock, and local is this process's.
	now, local func() time.Time

	pool   *pgxpool.Pool
	writer *writer
	watch  *watcher
	// closing ends when the store closes, so that no operation waits for a database any
	// longer.
	closing context.Context
	close   context.CancelFunc
	once    sync.Once
}

var _ journal.Store = (*Store)(nil)

// config is a parsed URL.
type config struct {
	conn *pgx.ConnConfig
	pool *pgxpool.Config
	// prefix is the quoted schema followed by a dot.
	schema, prefix string

	patience time.Duration
	readOnly bool
	acked    *acknowledged
}

// at replaces @ in SQL by the schema.
func (c *config) at(sql string) string { return strings.ReplaceAll(sql, "@", c.prefix) }

const (
	// defaultSchema is the schema for a URL that names none.
	defaultSchema = "pawl"
	// mostConnections bounds the pool of a process. The connections for writing and for
	// listening are not part of it.
	mostConnections = 8
	defaultPatience = 90 * time.Second
)

func configOf(at string, o Options) (*config, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, errors.New("postgres: the URL of the journal is not valid; write it like postgres://USER@HOST/DATABASE?schema=NAME")
	}
	values := u.Query()
	schema := defaultSchema
	if values.Has("schema") {
		schema = values.Get("schema")
		values.Del("schema")
		u.RawQuery = values.Encode()
	}
	pool, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return nil, fmt.Errorf("postgres: read the URL of the journal: %w", err)
	}
	c := &config{conn: pool.ConnConfig.Copy(), pool: pool, schema: schema, prefix: pgx.Identifier{schema}.Sanitize() + ".", patience: o.Patience, readOnly: o.ReadOnly, acked: &acknowledged{}}
	if c.patience == 0 {
		c.patience = defaultPatience
	}
	if !values.Has("pool_max_conns") {
		pool.MaxConns = mostConnections
	}
	if c.conn.ConnectTimeout == 0 {
		c.conn.ConnectTimeout, pool.ConnConfig.ConnectTimeout = attemptTime, attemptTime
	}
	pool.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error { return c.check(ctx, conn) }
	return c, nil
}

// Password returns the password for the journal at a URL, from the environment or a
// file, "" for none.
func Password(at string) (string, error) {
	c, err := configOf(at, Options{})
	if err != nil {
		return "", err
	}
	return c.conn.Password, nil
}

// Addresses returns the addresses of the servers that the URL of a journal names, without
// those that are sockets of this machine.
func Addresses(ctx context.Context, at string) ([]netip.AddrPort, error) {
	c, err := configOf(at, Options{})
	if err != nil {
		return nil, err
	}
	named := []*pgconn.FallbackConfig{{Host: c.conn.Host, Port: c.conn.Port}}
	var all []netip.AddrPort
	for _, f := range append(named, c.conn.Fallbacks...) {
		if strings.HasPrefix(f.Host, "/") || strings.HasPrefix(f.Host, "@") {
			continue
		}
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", f.Host)
		if err != nil {
			return nil, fmt.Errorf("postgres: %w", err)
		}
		for _, addr := range found {
			all = append(all, netip.AddrPortFrom(addr.Unmap(), f.Port))
		}
	}
	slices.SortFunc(all, netip.AddrPort.Compare)
	return slices.Compact(all), nil
}

// ErrUnsafe reports a database that may lose acknowledged commits.
var ErrUnsafe = errors.New("postgres: the database does not keep what it acknowledges")

// check rejects a database that may lose an acknowledged append, or has lost one. It runs on each new
// connection, because a later connection may reach another server.
func (c *config) check(ctx context.Context, conn *pgx.Conn) error {
	if c.readOnly {
		return nil
	}
	var fsync string
	var standby bool
	if err := conn.QueryRow(ctx, `SELECT current_setting('fsync'), pg_is_in_recovery()`).Scan(&fsync, &standby); err != nil {
		return err
	}
	switch {
	case standby:
		return fmt.Errorf("%w: it is a standby; name the primary in the URL of the journal", ErrStandby)
	case fsync != "on":
		return fmt.Errorf("%w: its setting fsync is %s; set fsync = on in postgresql.conf and restart it", ErrUnsafe, fsync)
	}
	return c.acked.check(ctx, conn, c)
}

// Open opens the journal at a URL: postgres://USER@HOST/DATABASE?schema=NAME, with the
// parameters of pgx. The error is [journal.ErrNewer] for a schema of a newer version,
// and names 'pawl journal migrate' for an older one.
func Open(ctx context.Context, at string, o Options) (*Store, error) {
	c, err := configOf(at, o)
	if err != nil {
		return nil, err
	}
	conn, err := c.connect(ctx)
	if err == nil {
		err = c.prepare(ctx, conn, o.Create && !o.ReadOnly)
	}
	if err != nil {
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
		return nil, fmt.Errorf("postgres: open journal: %w", classify(err))
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), c.pool)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: open journal: %w", err), conn.Close(context.WithoutCancel(ctx)))
	}
	s := &Store{config: c, now: o.Now, local: o.local, pool: pool}
	if s.local == nil {
		s.local = time.Now
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.watch = newWatcher(s)
	if o.ReadOnly {
		_ = conn.Close(context.WithoutCancel(ctx))
	} else {
		s.writer = newWriter(s, conn)
	}
	return s, nil
}

// connect makes a connection and checks its server.
func (c *config) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, c.conn)
	if err != nil {
		return nil, err
	}
	if err := c.check(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

// prepare rejects a schema of another version, and creates one if there is none.
func (c *config) prepare(ctx context.Context, conn *pgx.Conn, create bool) error {
	version, err := c.versionOf(ctx, conn)
	switch {
	case err != nil || version == schemaVersion:
		return err
	case version == 0 && create:
		_, err := c.migrate(ctx, conn, false, func(version int) bool { return version == 0 })
		return err
	case version == 0:
		return fmt.Errorf("%w in the schema %s, so nothing has run here yet; 'pawl journal migrate' makes one", ErrEmpty, strings.TrimSuffix(c.prefix, "."))
	}
	return fmt.Errorf("%w %d, and this one needs %d; stop the processes of older versions, then run 'pawl journal migrate'", ErrOlder, version, schemaVersion)
}

// Files returns none, because the runs are in the database.
func (s *Store) Files() []string { return nil }

// Close waits for pending commits and closes the connections.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.close()
		if s.writer != nil {
			s.writer.stop()
		}
		s.watch.Close()
		s.pool.Close()
	})
	return nil
}

// time returns the current time for comparing leases: local for the caller, and given
// for the database, nil for the database's own clock.
func (s *Store) time() (local time.Time, given any) {
	if s.now == nil {
		return s.local(), nil
	}
	local = s.now()
	return local, nanos(local)
}

// dbNow returns SQL for the time of a statement, in nanoseconds. If the given parameter
// is not null, it replaces that time.
func dbNow(parameter string) string {
	return `coalesce(` + parameter + `::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000)`
}

// dbStart is dbNow for the start of the statement. It is the same for all rows, so that
// a condition can use an index.
func dbStart(parameter string) string {
	return `coalesce(` + parameter + `::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint * 1000)`
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
