package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	at               string
	*postgres.Store
}

// newPair starts the servers. The settings of the primary hold once the standby follows.
func newPair(t *testing.T, settings ...string) pair {
	t.Helper()
	primary, standby, at := pgtest.Pair(t)
	primary.Set(settings...)
	if err := errors.Join(primary.Down(t.Context(), "fast"), primary.Up(t.Context())); err != nil {
		t.Fatal(err)
	}
	return pair{primary, standby, at, open(t, at, postgres.Options{})}
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

// A standby that lacks acknowledged events is promoted. The processes that have them
// notice, write nothing there, and record what is lost; others go on.
func TestAFailoverThatLosesEventsIsNoticed(t *testing.T) {
	p := newPair(t)
	late, another := open(t, p.at, postgres.Options{}), open(t, p.at, postgres.Options{})
	lost, other, kept := journaltest.Start(t, p, "lost"), journaltest.Start(t, late, "other"), journaltest.Start(t, another, "kept")
	p.stopStandby(t, 3)
	for range 20 {
		lost.Append(t, said("only on the primary"))
	}
	other.Append(t, said("only on the primary"))
	journaltest.Start(t, late, "gone")
	sound(t, p, "lost", "other", "kept", "gone")
	if err := errors.Join(p.primary.Down(t.Context(), "immediate"), p.standby.Up(t.Context()), p.standby.Promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := lost.Write(t, lost.Batch(t, said("after the failover"))); !errors.Is(err, journal.ErrReplaced) {
		t.Errorf("an append to a run that lacks events: %v", err)
	}
	after := open(t, p.at, postgres.Options{})
	if last, err := after.Last(t.Context()); err != nil || last != 3 {
		t.Errorf("the newest position is %d, %v", last, err)
	}
	lacks := func(run string, seq int64) {
		t.Helper()
		_, err := journal.Verify(t.Context(), after, run, "")
		if damage, is := errors.AsType[*journal.CorruptError](err); is != (seq > 0) || is && damage.Seq != seq {
			t.Errorf("run %s, whose event %d is lost: %v", run, seq, err)
		}
	}
	lacks("lost", 21)
	lacks("other", 0) // its process has not noticed yet
	lacks("kept", 0)

	// A process that knows no lost event goes on, beyond the positions that were lost.
	for range 30 {
		kept.Append(t, said("after the failover"))
	}
	for i, d := range []*journaltest.Driver{lost, other, lost, other} {
		if err := d.Write(t, d.Batch(t, said("too late"))); !errors.Is(err, journal.ErrReplaced) {
			t.Errorf("append %d beyond the lost positions: %v", i, err)
		}
	}
	for run, seq := range map[string]int64{"lost": 21, "other": 2, "kept": 0} {
		lacks(run, seq)
	}
	err := after.Check(t.Context())
	if !errors.Is(err, journal.ErrCorrupt) || strings.Count(err.Error(), "acknowledged events are lost") != 2 {
		t.Fatalf("the journal: %v", err)
	}
	for _, want := range []string{"up to position 23 (the newest was 3 when", "lost up to its event 21", "other up to its event 2", "gone up to its event 1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing: %v", want, err)
		}
	}
}

// sound checks that nothing of a journal is reported as lost.
func sound(t *testing.T, s pair, runs ...string) {
	t.Helper()
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	for _, run := range runs {
		if _, err := journal.Verify(t.Context(), s, run, ""); err != nil {
			t.Error(err)
		}
	}
}

// stopStandby stops the standby when it has n events.
func (p pair) stopStandby(t *testing.T, n int64) {
	t.Helper()
	for last := int64(0); last < n; {
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
}
