package journaltest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

func leaseContract() []contract {
	return []contract{
		{"a held lease is refused and names its holder", heldIsRefused},
		{"a released lease is free at once", releasedIsFree},
		{"a lease expires by the store's clock", expires},
		{"a renewed lease does not expire", renewed},
		{"a dead owner's lease is taken at once and its epoch is over", deadOwner},
		{"free runs and the holders of leases are found", freeFound},
		{"of many who reach for a lease one gets it", oneWins},
		{"a child is created under a lease of its parent that holds", childOfHolder},
	}
}

const ttl = time.Minute

func heldIsRefused(t *testing.T, s journal.Store, c *clock) {
	d := Start(t, s, "a")
	// The holder's own name gives no access: a second driver in the same process must
	// not take the run from the first.
	for _, who := range []string{"other", "owner"} {
		for _, dead := range []string{"", "another owner"} {
			_, err := s.Acquire(t.Context(), "a", who, dead, ttl)
			held, ok := errors.AsType[*journal.HeldError](err)
			if !ok || held.Run != "a" || held.Owner != "owner" || !held.Expiry.Equal(d.Lease.Expiry) {
				t.Errorf("%s got %v, want a HeldError that names owner until %s", who, err, d.Lease.Expiry)
			}
		}
	}
	if _, err := s.Acquire(t.Context(), "none", "other", "", ttl); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("a run that is not there: %v, want ErrNotFound", err)
	}
	d.Append(t, said("undisturbed"))
}

func releasedIsFree(t *testing.T, s journal.Store, c *clock) {
	for run, heir := range map[string]string{"a": "other", "b": "owner"} { // the same owner may acquire it again, with another epoch
		freeAtOnce(t, s, c, Start(t, s, run), heir)
	}
}

func freeAtOnce(t *testing.T, s journal.Store, c *clock, d *Driver, heir string) {
	t.Helper()
	run := d.Lease.Run
	if err := s.Release(t.Context(), d.Lease); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), d.Lease); err != nil {
		t.Errorf("the second release: %v", err)
	}
	lease, err := s.Acquire(t.Context(), run, heir, "", ttl)
	if err != nil {
		t.Fatal(err)
	}
	if lease.Run != run || lease.Owner != heir || lease.Epoch <= d.Lease.Epoch || !lease.Expiry.Equal(c.Now().Add(ttl)) {
		t.Errorf("got %+v after %+v", lease, d.Lease)
	}
	if err := s.Release(t.Context(), d.Lease); err != nil {
		t.Errorf("a stale release: %v", err)
	}
	if _, err := s.Renew(t.Context(), d.Lease, ttl); !errors.Is(err, journal.ErrStale) {
		t.Errorf("a stale renewal: %v, want ErrStale", err)
	}
	if row := look(t, s, run).Row; row.Owner != heir {
		t.Errorf("held by %q, want %s", row.Owner, heir)
	}
	d.Lease = lease
	d.Append(t, said("under the new lease"))
}

func expires(t *testing.T, s journal.Store, c *clock) {
	d := Start(t, s, "a")
	c.Advance(ttl - time.Nanosecond)
	if _, err := s.Acquire(t.Context(), "a", "other", "", ttl); err == nil {
		t.Fatal("taken before it expired")
	}
	c.Advance(time.Nanosecond)
	d.Append(t, said("expired, and not taken yet"))
	lease, err := s.Acquire(t.Context(), "a", "other", "", ttl)
	if err != nil {
		t.Fatalf("after it expired: %v", err)
	}
	if err := d.Write(t, d.Batch(t, said("too late"))); !errors.Is(err, journal.ErrStale) {
		t.Errorf("the one who was silent: %v, want ErrStale", err)
	}
	d.Lease = lease
	d.Append(t, said("the new holder"))
}

func freeFound(t *testing.T, s journal.Store, c *clock) {
	Start(t, s, "expired")
	released, held := Start(t, s, "released"), Start(t, s, "held")
	c.Advance(ttl / 2)
	_, renewed := s.Renew(t.Context(), held.Lease, ttl)
	err := errors.Join(renewed, s.Release(t.Context(), released.Lease))
	if _, acquired := s.Acquire(t.Context(), "released", "other", "", ttl); errors.Join(err, acquired) != nil {
		t.Fatal(errors.Join(err, acquired))
	}
	c.Advance(ttl / 2)
	found := func(f journal.Filter, owners []string, want ...string) {
		t.Helper()
		rows, err := s.Runs(t.Context(), f)
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		now, wrong := s.Owners(t.Context())
		slices.Sort(now)
		if err = errors.Join(err, wrong); err != nil || !slices.Equal(ids, want) || !slices.Equal(now, owners) {
			t.Errorf("%+v: got %v, want %v; the holders are %v, want %v; %v", f, ids, want, now, owners, err)
		}
	}
	free := journal.Filter{Free: true, Roots: true, States: []journal.State{journal.Running}}
	found(free, []string{"other", "owner"}, "expired")
	found(journal.Filter{Owner: "owner"}, []string{"other", "owner"}, "held", "expired")
	found(journal.Filter{Owner: "other", Roots: true}, []string{"other", "owner"}, "released")
	if err := s.Release(t.Context(), held.Lease); err != nil {
		t.Fatal(err)
	}
	found(free, []string{"other", "owner"}, "held", "expired")
	c.Advance(ttl)
	found(free, []string{"other", "owner"}, "held", "released", "expired")
}

func renewed(t *testing.T, s journal.Store, c *clock) {
	d := Start(t, s, "a")
	c.Advance(ttl / 2)
	lease, err := s.Renew(t.Context(), d.Lease, ttl)
	if err != nil || lease.Epoch != d.Lease.Epoch || !lease.Expiry.Equal(c.Now().Add(ttl)) {
		t.Fatalf("renew: %+v, %v", lease, err)
	}
	c.Advance(ttl - time.Nanosecond)
	if _, err := s.Acquire(t.Context(), "a", "other", "", ttl); err == nil {
		t.Error("taken although it was renewed")
	}
}

func deadOwner(t *testing.T, s journal.Store, c *clock) {
	d := Start(t, s, "a")
	lease, err := s.Acquire(t.Context(), "a", "heir", "owner", ttl)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), "a", "second heir", "owner", ttl); err == nil {
		t.Error("taken from the dead twice")
	}
	before := look(t, s, "a")
	if err := d.Write(t, d.Batch(t, said("from the grave"))); !errors.Is(err, journal.ErrStale) {
		t.Errorf("the dead appends: %v, want ErrStale", err)
	}
	if after := look(t, s, "a"); after.Row.Seq != before.Row.Seq || after.Row.Owner != "heir" {
		t.Errorf("row %+v", after.Row)
	}
	d.Lease = lease
	d.Append(t, said("the heir"))
}

func oneWins(t *testing.T, s journal.Store, c *clock) {
	d := Start(t, s, "a")
	if err := s.Release(t.Context(), d.Lease); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var winners []journal.Lease
	for i := range 16 {
		wg.Go(func() {
			lease, err := s.Acquire(t.Context(), "a", "owner "+string(rune('a'+i)), "", ttl)
			if _, held := errors.AsType[*journal.HeldError](err); err != nil && !held {
				t.Errorf("got %v, want a HeldError", err)
			}
			if err == nil {
				mu.Lock()
				winners = append(winners, lease)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(winners) != 1 || look(t, s, "a").Row.Owner != winners[0].Owner {
		t.Errorf("winners %+v", winners)
	}
}

// childOfHolder checks that a process can create children of a run only until another
// process acquires the run, which may have recorded that a child never began.
func childOfHolder(t *testing.T, s journal.Store, _ *clock) {
	parent := Start(t, s, "a")
	child := func(id string, above journal.Lease) error {
		b := (&Driver{}).batch(t, id, event.RunStarted{Kind: "Agent"})
		b.Lease = journal.Lease{Run: id, Owner: "owner", Expiry: Epoch().Add(time.Minute)}
		b.Parent = above
		_, _, err := s.Create(t.Context(), journal.Run{ID: id, Parent: "a", Root: "a", Depth: 2, Kind: "Agent", Created: Epoch()}, b)
		return err
	}
	for _, id := range []string{"b", "c"} {
		if err := child(id, parent.Lease); err != nil {
			t.Errorf("create child %s: %v", id, err)
		}
	}
	heir, err := s.Acquire(t.Context(), "a", "heir", "owner", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := child("d", parent.Lease); !errors.Is(err, journal.ErrStale) {
		t.Errorf("create a child of a run that another process took: %v, want ErrStale", err)
	}
	if _, err := s.Run(t.Context(), "d"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("the child is there: %v", err)
	}
	if err := child("d", journal.Lease{Run: "none", Owner: "owner", Epoch: 1}); !errors.Is(err, journal.ErrStale) {
		t.Errorf("create a child of no run: %v, want ErrStale", err)
	}
	if err := child("d", heir); err != nil {
		t.Errorf("create a child as the heir: %v", err)
	}
}
