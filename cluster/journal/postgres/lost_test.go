package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/cluster/internal/pgtest"
	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
)

func said(text string) event.Data { return event.InputReceived{Text: text, By: "ann"} }

// whole compares a run with what its driver wrote.
func whole(t *testing.T, s journal.Store, d *journaltest.Driver) {
	t.Helper()
	row, err := s.Run(t.Context(), d.Lease.Run)
	if err != nil || row.Seq != d.Seq || row.Head != d.Head {
		t.Errorf("the row is at %d, the driver at %d (%v)", row.Seq, d.Seq, err)
	}
	if v, err := journal.Verify(t.Context(), s, d.Lease.Run, d.Head); err != nil || v.Events != d.Seq {
		t.Errorf("%d events of %d: %v", v.Events, d.Seq, err)
	}
}

// The connection is cut at each message in turn: before, within and after it. Each
// acknowledged append is stored once, and each refused append is not stored.
func TestACutConnectionLosesAndRepeatsNothing(t *testing.T) {
	commits := 120
	if os.Getenv("PAWL_LONG") != "" {
		commits = 500
	}
	at := place(t)
	p, cut := through(t, at)
	s := open(t, cut, postgres.Options{})
	d := journaltest.Start(t, s, "a")
	refused := 0
	for i := range commits {
		b := d.Batch(t, said(fmt.Sprint(i)), said("and more"))
		// A commit has up to 8 messages: one to the server and 7 back.
		p.arm(i/int(faults)%9, fault(i)%faults)
		if i%7 == 3 {
			bad := b
			bad.Lease.Epoch++
			if _, err := s.Append(t.Context(), bad); !errors.Is(err, journal.ErrStale) {
				t.Fatalf("commit %d under another lease: %v", i, err)
			}
			refused++
			p.arm(i/int(faults)%9, fault(i)%faults)
		}
		if i%11 == 5 { // the last batch of a lease releases it
			b.Release = true
		}
		if err := d.Write(t, b); err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
		if b.Release {
			lease, err := s.Acquire(t.Context(), "a", "owner", "", time.Minute)
			if held(err) { // the response was lost; an engine takes over its own lease
				lease, err = s.Acquire(t.Context(), "a", "owner", "owner", time.Minute)
			}
			if err != nil {
				t.Fatal(err)
			}
			d.Lease = lease
		}
	}
	direct := open(t, at, postgres.Options{ReadOnly: true})
	whole(t, direct, d)
	if last, err := direct.Last(t.Context()); err != nil || last != d.Seq {
		t.Errorf("the newest position is %d after %d events, %v", last, d.Seq, err)
	}
	if p.cuts.Load() < int64(commits)/2 {
		t.Errorf("%d cuts at %d commits", p.cuts.Load(), commits)
	}
	t.Logf("%d commits, %d cuts, %d refused, %d events", commits, p.cuts.Load(), refused, d.Seq)
}

// A run whose creation got no response exists once.
func TestACutConnectionCreatesOnce(t *testing.T) {
	at := place(t)
	p, cut := through(t, at)
	s := open(t, cut, postgres.Options{})
	for i := range 36 {
		p.arm(i/int(faults), fault(i)%faults)
		d := journaltest.Start(t, s, fmt.Sprint("run", i))
		d.Append(t, said("goes on"))
		whole(t, s, d)
	}
	again := &journaltest.Driver{Store: s}
	b := again.Batch(t, said("another"))
	b.Lease = journal.Lease{Run: "run1", Owner: "other"}
	if _, _, err := s.Create(t.Context(), journal.Run{ID: "run1", Kind: "Agent"}, b); !errors.Is(err, journal.ErrExists) {
		t.Errorf("another run of the id: %v", err)
	}
}

// The server crashes under load. All acknowledged appends are stored, and no append
// fails.
func TestAServerThatCrashesUnderLoadLosesNothing(t *testing.T) {
	pgtest.Skip(t, noServer)
	own, err := pgtest.Start(t.Context())
	pgtest.Skip(t, err)
	defer own.Remove()
	s, err := postgres.Open(t.Context(), own.URL(), postgres.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	crashes := 3
	if os.Getenv("PAWL_LONG") != "" {
		crashes = 10
	}
	const writers = 8
	over, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	drivers := make([]*journaltest.Driver, writers)
	for i := range drivers {
		drivers[i] = journaltest.Start(t, s, fmt.Sprint("run", i))
		all.Go(func() {
			for over.Err() == nil {
				if err := drivers[i].Write(t, drivers[i].Batch(t, said("under load"))); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	for range crashes {
		first, err := s.Last(t.Context())
		for now := first; err == nil && now < first+200 && !t.Failed(); {
			now, err = s.Last(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := own.Down(t.Context(), "immediate"); err != nil {
			t.Fatal(err)
		}
		if err := own.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	all.Wait()
	events := int64(0)
	for _, d := range drivers {
		whole(t, s, d)
		events += d.Seq
	}
	if last, err := s.Last(t.Context()); err != nil || last != events {
		t.Errorf("the newest position is %d after %d events, %v", last, events, err)
	}
	t.Logf("%d events of %d writers over %d crashes", events, writers, crashes)
}
