package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
)

// delays measures how long a reader of one store waits for events from another.
func delays(t *testing.T, writer, reader journal.Store, run string, n int) []time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watch := reader.Watch(ctx)
	d := journaltest.Start(t, writer, run)
	var all []time.Duration
	for range n {
		d.Append(t, said("for the other"))
		written := time.Now()
		for seen := int64(0); seen < d.Seq; {
			select {
			case <-watch:
			case <-ctx.Done():
				t.Fatalf("event %d did not reach the reader", d.Seq)
			}
			row, err := reader.Run(ctx, run)
			if err != nil {
				continue // the run does not exist yet, or the connection is cut
			}
			seen = row.Seq
		}
		all = append(all, time.Since(written))
	}
	slices.Sort(all)
	t.Logf("an event reaches a reader of another process after %s (half of %d), %s (the slowest)", all[n/2].Round(time.Millisecond), n, all[n-1].Round(time.Millisecond))
	return all
}

// Readers learn of another process's events from notifications, from polling while the
// listening connection is down, and from polling alone behind a pooler that delivers
// none.
func TestAReaderElsewhereHearsOfEvents(t *testing.T) {
	at := place(t)
	p, cut := through(t, at)
	writer, reader := open(t, at, postgres.Options{}), open(t, cut, postgres.Options{})
	delays(t, writer, reader, "notified", 50)
	p.arm(0, drop)
	delays(t, writer, reader, "cut", 20)
	if p.cuts.Load() != 1 {
		t.Errorf("%d connections were cut", p.cuts.Load())
	}
	muted, pooled := through(t, at)
	muted.muted.Store(true)
	delays(t, writer, open(t, pooled, postgres.Options{}), "pooled", 20)
}

// Commands wake the driver of their run and no other, even behind a pooler.
func TestADriverElsewhereHearsOfCommands(t *testing.T) {
	at := place(t)
	p, cut := through(t, at)
	for _, muted := range []bool{false, true} {
		p.muted.Store(muted)
		sender, driver := open(t, at, postgres.Options{}), open(t, cut, postgres.Options{})
		id := map[bool]string{false: "notified", true: "pooled"}[muted]
		journaltest.Start(t, driver, id)
		inbox := driver.WatchInbox(t.Context(), id)
		for n := range 3 {
			if _, err := sender.Send(t.Context(), journal.Command{Run: id, Kind: journal.Input, Text: "go on"}); err != nil {
				t.Fatal(err)
			}
			limit := time.After(time.Minute)
			for found := 0; found <= n; {
				select {
				case <-inbox:
				case <-limit:
					t.Fatal("the command did not wake the driver")
				}
				commands, err := driver.Inbox(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				found = len(commands)
			}
		}
		other, any := "other-"+id, driver.Watch(t.Context())
		journaltest.Start(t, sender, other)
		again := 0
		for range 15 {
			if _, err := sender.Send(t.Context(), journal.Command{Run: other, Kind: journal.Input, Text: "go on"}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-any:
			case <-time.After(time.Minute):
				t.Fatal("a command was not noticed")
			}
			select {
			case <-inbox:
				again++
			case <-time.After(50 * time.Millisecond):
			}
		}
		if again > 4 {
			t.Errorf("%s: 15 commands to another run woke the driver %d times", id, again)
		}
	}
}
