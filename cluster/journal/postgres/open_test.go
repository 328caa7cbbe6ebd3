package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlrun/pawl/cluster/internal/pgtest"
	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
)

// execute runs a statement outside the store, in the schema of the store's URL.
func execute(t *testing.T, at, sql string, args ...any) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	schema := u.Query().Get("schema")
	u.RawQuery = ""
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), strings.ReplaceAll(sql, "@", schema+"."), args...); err != nil {
		t.Fatal(err)
	}
}

func TestASchemaOfAnotherVersionIsRefused(t *testing.T) {
	at := place(t)
	if _, err := postgres.Open(t.Context(), at, postgres.Options{}); !errors.Is(err, postgres.ErrEmpty) {
		t.Errorf("no schema: %v", err)
	}
	dry, err := postgres.Migrate(t.Context(), at, true)
	if err != nil || dry.From != 0 || dry.To != postgres.SchemaVersion || len(dry.Statements) == 0 {
		t.Fatalf("a dry run: %+v, %v", dry, err)
	}
	if _, err := postgres.Open(t.Context(), at, postgres.Options{}); !errors.Is(err, postgres.ErrEmpty) {
		t.Errorf("after a dry run: %v", err)
	}
	for i, want := range []int{len(dry.Statements), 0} {
		if m, err := postgres.Migrate(t.Context(), at, false); err != nil || len(m.Statements) != want {
			t.Errorf("migration %d: %+v, %v", i+1, m, err)
		}
	}
	journaltest.Start(t, open(t, at, postgres.Options{}), "a")
	execute(t, at, `UPDATE @version SET version = $1`, postgres.SchemaVersion+1)
	if _, err := postgres.Open(t.Context(), at, postgres.Options{Create: true}); !errors.Is(err, journal.ErrNewer) {
		t.Errorf("a newer schema: %v", err)
	}
	if _, err := postgres.Migrate(t.Context(), at, false); !errors.Is(err, journal.ErrNewer) {
		t.Errorf("the migration of a newer schema: %v", err)
	}
}

// A schema of the version before is refused until it is migrated, and keeps what it holds.
func TestAnOlderSchemaIsMigrated(t *testing.T) {
	at := place(t)
	whole, err := postgres.Migrate(t.Context(), at, true)
	if err != nil {
		t.Fatal(err)
	}
	steps := len(whole.Statements) - 2 // without the last step, and the version
	for _, statement := range whole.Statements[:steps] {
		execute(t, at, statement)
	}
	execute(t, at, `UPDATE @version SET version = $1`, postgres.SchemaVersion-1)
	execute(t, at, `INSERT INTO @notes (at, expires, body) VALUES (1, 0, 'of the older version')`)
	for range 2 {
		if _, err := postgres.Open(t.Context(), at, postgres.Options{Create: true}); !errors.Is(err, postgres.ErrOlder) || !strings.Contains(err.Error(), "pawl journal migrate") {
			t.Errorf("an older schema: %v", err)
		}
	}
	for i, from := range []int{postgres.SchemaVersion - 1, postgres.SchemaVersion} {
		if m, err := postgres.Migrate(t.Context(), at, false); err != nil || m.From != from || m.To != postgres.SchemaVersion {
			t.Errorf("migration %d: %+v, %v", i+1, m, err)
		}
	}
	s := open(t, at, postgres.Options{})
	journaltest.Start(t, s, "a")
	if notes, err := s.Notes(t.Context(), 0, 10); err != nil || len(notes) != 1 || string(notes[0].Body) != "of the older version" {
		t.Errorf("notes %+v, %v", notes, err)
	}
}

// Servers that start at once on an empty database create one schema.
func TestProcessesThatStartAtOnceMakeOneSchema(t *testing.T) {
	for range 4 {
		at := place(t)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				s, err := postgres.Open(t.Context(), at, postgres.Options{Create: true})
				if err != nil {
					t.Errorf("process %d: %v", i, err)
					return
				}
				_ = s.Close()
			})
		}
		all.Wait()
	}
}

func TestADatabaseThatMayLoseAnAppendIsRefused(t *testing.T) {
	pgtest.Skip(t, noServer)
	own, err := pgtest.Start(t.Context(), "fsync=off")
	pgtest.Skip(t, err)
	defer own.Remove()
	if _, err := postgres.Open(t.Context(), own.URL(), postgres.Options{Create: true}); !errors.Is(err, postgres.ErrUnsafe) || !strings.Contains(err.Error(), "fsync = on") {
		t.Errorf("without fsync: %v", err)
	}
	own.Set("synchronous_commit=off", "wal_writer_delay=10s")
	if err := errors.Join(own.Down(t.Context(), "fast"), own.Up(t.Context())); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), own.URL(), postgres.Options{Create: true})
	if err != nil {
		t.Fatalf("with synchronous_commit off, which an append sets for itself: %v", err)
	}
	// A server that crashes keeps what it acknowledged. Its log writer waits for 10 s,
	// so that a commit that was not synced would be lost.
	d := journaltest.Start(t, s, "a")
	d.Append(t, said("acknowledged"))
	if err := errors.Join(own.Down(t.Context(), "immediate"), own.Up(t.Context())); err != nil {
		t.Fatal(err)
	}
	whole(t, s, d)
	_ = s.Close()

	if err := own.Standby(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(t.Context(), own.URL(), postgres.Options{}); !errors.Is(err, postgres.ErrStandby) {
		t.Errorf("a standby: %v", err)
	}
	whole(t, open(t, own.URL(), postgres.Options{ReadOnly: true}), d)
}

// A database that was restored from a backup has fewer events than it acknowledged. The
// store records that and writes nothing more, also when others wrote beyond the position.
func TestAPositionThatGoesBackIsNoticed(t *testing.T) {
	at := place(t)
	s := open(t, at, postgres.Options{})
	d := journaltest.Start(t, s, "a")
	d.Append(t, said("acknowledged"))
	other := open(t, at, postgres.Options{})
	if last, err := s.Last(t.Context()); err != nil || last != 2 { // on a connection that stays
		t.Errorf("the newest position is %d, %v", last, err)
	}
	execute(t, at, `UPDATE @head SET pos = 1; DELETE FROM @log WHERE pos > 1`)
	for i := range 3 {
		if err := d.Write(t, d.Batch(t, said("on top"))); !errors.Is(err, journal.ErrReplaced) {
			t.Errorf("append %d: %v, want ErrReplaced", i, err)
		}
		if _, err := s.Acquire(t.Context(), "a", "owner", "owner", time.Minute); !errors.Is(err, journal.ErrReplaced) {
			t.Errorf("lease %d: %v, want ErrReplaced", i, err)
		}
		journaltest.Start(t, other, fmt.Sprint("other", i))
	}
	lost, err := other.Losses(t.Context(), "a")
	if err != nil || len(lost) != 1 || lost[0] != (journal.Loss{Run: "a", Seq: 2, Head: d.Head, Pos: 2}) {
		t.Errorf("recorded as lost: %+v, %v", lost, err)
	}
	if lost, err := other.Losses(t.Context(), "other0"); err != nil || len(lost) != 0 {
		t.Errorf("recorded as lost of another run: %+v, %v", lost, err)
	}
}

func TestThePasswordComesFromTheEnvironmentOrAFile(t *testing.T) {
	const at = "postgres://ann@db.example:5433/runs?schema=s"
	file := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(file, []byte("db.example:5433:runs:ann:of the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGPASSFILE", file)
	t.Setenv("PGPASSWORD", "")
	if got, err := postgres.Password(at); err != nil || got != "of the file" {
		t.Errorf("from the file: %q, %v", got, err)
	}
	t.Setenv("PGPASSWORD", "of the environment")
	if got, err := postgres.Password(at); err != nil || got != "of the environment" {
		t.Errorf("from the environment: %q, %v", got, err)
	}
	_, err := postgres.Open(t.Context(), "postgres://ann@127.0.0.1:1/runs", postgres.Options{})
	if err == nil || strings.Contains(err.Error(), "of the environment") {
		t.Errorf("the error is %v", err)
	}
}

// Two processes whose clocks differ by 20 minutes agree on a lease.
func TestLeasesGoByTheClockOfTheDatabase(t *testing.T) {
	at := place(t)
	clock := func(off time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(off) } }
	for name, offs := range map[string][2]time.Duration{"ahead": {10 * time.Minute, -10 * time.Minute}, "behind": {-10 * time.Minute, 10 * time.Minute}} {
		t.Run(name, func(t *testing.T) {
			own, other := clock(offs[0]), clock(offs[1])
			first := open(t, at, postgres.WithClock(postgres.Options{}, own))
			second := open(t, at, postgres.WithClock(postgres.Options{}, other))
			d := &journaltest.Driver{Store: first}
			b := d.Batch(t, said("first"))
			const ttl = 3 * time.Second
			b.Lease = journal.Lease{Run: name, Owner: "one", Expiry: own().Add(ttl)}
			lease, _, err := first.Create(t.Context(), journal.Run{ID: name, Kind: "Agent", Created: own()}, b)
			if err != nil {
				t.Fatal(err)
			}
			lease.Expiry = own() // a renewal counts from now by the database's clock
			if lease, err = first.Renew(t.Context(), lease, ttl); err != nil {
				t.Fatal(err)
			}
			d.Lease, d.Seq, d.Head = lease, 1, b.Head
			row, err := second.Run(t.Context(), name)
			if left := row.Expiry.Sub(other()); err != nil || left > ttl || row.Owner != "one" {
				t.Fatalf("by the other's clock the lease has %s left, %v", left, err)
			}
			if row.Expiry.Before(other().Add(-time.Minute)) {
				t.Errorf("by the other's clock the lease ended long ago")
			}
			if _, err := second.Acquire(t.Context(), name, "two", "", time.Minute); !held(err) && time.Now().Before(lease.Expiry.Add(-offs[0])) {
				t.Errorf("taken before its time: %v", err)
			}
			began := time.Now()
			for {
				taken, err := second.Acquire(t.Context(), name, "two", "", time.Minute)
				if err == nil {
					if left := taken.Expiry.Sub(other()); left > time.Minute || left < 0 {
						t.Errorf("the new lease has %s left", left)
					}
					break
				}
				if !held(err) {
					t.Fatal(err)
				}
			}
			t.Logf("taken after %s", time.Since(began).Round(time.Millisecond))
			if err := d.Write(t, d.Batch(t, said("too late"))); !errors.Is(err, journal.ErrStale) {
				t.Errorf("the first: %v", err)
			}
		})
	}
}

func held(err error) bool {
	_, is := errors.AsType[*journal.HeldError](err)
	return is
}
