package journaltest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/journal"
)

func driversContract() []contract {
	return []contract{
		{"a driver is there until its registration expires", driverExpires},
		{"drivers that register at once are all there", driversRegisterAtOnce},
	}
}

func driverExpires(t *testing.T, s journal.Store, c *clock) {
	kept := optional[journal.KeepsDrivers](t, s, "drivers")
	want := func(what string, drivers ...journal.Driver) {
		t.Helper()
		live, err := kept.Drivers(t.Context())
		if err != nil || !cmp.Equal(live, drivers) {
			t.Errorf("%s: %v, %s", what, err, cmp.Diff(drivers, live))
		}
	}
	register := func(d journal.Driver, ttl time.Duration) {
		t.Helper()
		if err := kept.Register(t.Context(), d, ttl); err != nil {
			t.Fatal(err)
		}
	}
	a := journal.Driver{Owner: "a", Host: "one", Labels: []string{"gpu", "repo=/srv"}, Addr: "http://one:3001", Key: []byte{1, 0, 255}}
	b := journal.Driver{Owner: "b"}
	want("at first")
	register(b, 10*time.Second)
	register(a, 20*time.Second)
	want("two", a, b)
	c.Advance(10 * time.Second)
	want("the first has expired", a)
	register(b, 20*time.Second)
	a.Labels = nil
	register(a, 20*time.Second)
	c.Advance(15 * time.Second)
	want("both renewed", a, b)
	register(b, 0)
	want("one removed", a)
	c.Advance(10 * time.Second)
	want("both expired")
}

func driversRegisterAtOnce(t *testing.T, s journal.Store, _ *clock) {
	kept := optional[journal.KeepsDrivers](t, s, "drivers")
	const drivers, times = 8, 10
	var all sync.WaitGroup
	for i := range drivers {
		all.Go(func() {
			for range times {
				if err := kept.Register(t.Context(), journal.Driver{Owner: fmt.Sprint(i)}, time.Minute); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if live, err := kept.Drivers(t.Context()); err != nil || len(live) != drivers {
		t.Errorf("%d drivers, want %d: %v", len(live), drivers, err)
	}
}
