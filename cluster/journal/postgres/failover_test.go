package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/cluster/internal/pgtest"
	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
)

// pair is a server with a standby, and a store that finds the one that takes writes.
type pair struct {
	primary, standby *pgtest.Server
	*postgres.Store
}

// newPair starts the servers. The settings of the primary hold once the standby follows.
func newPair(t *testing.T, settings ...string) pair {
	t.Helper()
	primary, err := pgtest.Start(t.Context())
	pgtest.Skip(t, err)
	t.Cleanup(func() { _ = primary.Remove() })
	standby, err := primary.Follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Remove() })
	primary.Set(settings...)
	if err := errors.Join(primary.Down(t.Context(), "fast"), primary.Up(t.Context())); err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("postgres://%s@127.0.0.1:%d,127.0.0.1:%d/postgres?target_session_attrs=read-write", pgtest.User, primary.Port, standby.Port)
	return pair{primary, standby, open(t, at, postgres.Options{})}
}

// The primary crashes under load and the standby is promoted. With remote_apply each
// acknowledged event is there, and the drivers go on.
func TestAFailoverToASynchronousStandbyLosesNothing(t *testing.T) {
	p := newPair(t, "synchronous_standby_names=*", "synchronous_commit=remote_apply")
	over, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	drivers := make([]*journaltest.Driver, 4)
	for i := range drivers {
		drivers[i] = journaltest.Start(t, p, fmt.Sprint("run", i))
		all.Go(func() {
			for over.Err() == nil {
				if err := drivers[i].Write(t, drivers[i].Batch(t, said("under load"))); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	grow := func() int64 {
		first, err := p.Last(t.Context())
		now := first
		for err == nil && now < first+200 && !t.Failed() {
			now, err = p.Last(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	before := grow()
	if err := errors.Join(p.primary.Down(t.Context(), "immediate"), p.standby.Promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	grow()
	stop()
	all.Wait()
	events := int64(0)
	for _, d := range drivers {
		whole(t, p, d)
		events += d.Seq
	}
	if last, err := p.Last(t.Context()); err != nil || last != events {
		t.Errorf("the newest position is %d after %d events, %v", last, events, err)
	}
	t.Logf("%d events before the failover, %d after", before, events-before)
}

// A standby that lacks acknowledged events is promoted. The process that has them notices
// and writes nothing there.
func TestAFailoverThatLosesEventsIsNoticed(t *testing.T) {
	p := newPair(t)
	lost, other := journaltest.Start(t, p, "lost"), journaltest.Start(t, p, "other")
	for last := int64(0); last < 2; { // the standby has the schema and both runs
		reader, err := postgres.Open(t.Context(), p.standby.URL(), postgres.Options{ReadOnly: true})
		if errors.Is(err, postgres.ErrEmpty) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		last, err = reader.Last(t.Context())
		if err := errors.Join(err, reader.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.standby.Down(t.Context(), "fast"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		lost.Append(t, said("only on the primary"))
	}
	if err := errors.Join(p.primary.Down(t.Context(), "immediate"), p.standby.Up(t.Context()), p.standby.Promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*journaltest.Driver{lost, other} {
		err := d.Write(t, d.Batch(t, said("after the failover")))
		if !errors.Is(err, journal.ErrReplaced) && !errors.Is(err, journal.ErrStale) {
			t.Errorf("an append to %s: %v, want ErrReplaced or ErrStale", d.Lease.Run, err)
		}
	}
	if last, err := p.Last(t.Context()); err != nil || last != 2 {
		t.Errorf("the newest position is %d, %v", last, err)
	}
}
