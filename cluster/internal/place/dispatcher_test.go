package place

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// counting is a Temporal server that counts the starts and the signals of workflows.
type counting struct {
	client.Client
	starts, signals map[string]int
	queues          map[string]bool
}

func (c *counting) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	c.starts[o.ID]++
	c.queues[o.TaskQueue] = true
	return nil, nil
}

func (c *counting) SignalWithStartWorkflow(_ context.Context, run, _ string, _ any, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	c.signals[run]++
	return nil, nil
}

// dispatching returns a dispatcher of a store, and what it does.
func dispatching(s journal.Store) (*Dispatcher, *counting) {
	c := &counting{starts: map[string]int{}, signals: map[string]int{}, queues: map[string]bool{}}
	placing := func(event.Principal) tokens.Placing { return tokens.Placing{} }
	return &Dispatcher{Client: c, Store: s, Queue: "pawl/test", Placing: placing, Log: slog.New(slog.DiscardHandler)}, c
}

// keep adds a run of a server in a state. Its lease ends at expiry by the store's clock; a
// zero expiry releases it.
func keep(t *testing.T, s journal.Store, id string, state journal.State, expiry time.Time) {
	t.Helper()
	add(t, s, journal.Run{ID: id, Progress: journal.Progress{State: state}}, expiry, event.RunStarted{Served: true})
}

// add adds a run with its first event.
func add(t *testing.T, s journal.Store, r journal.Run, expiry time.Time, first event.Data) {
	t.Helper()
	now, id := time.Now(), r.ID
	e := &event.Event{Seq: r.ForkSeq + 1, Run: id, Time: now, Data: first}
	body, err := event.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	r.Kind, r.Created, r.Updated = "agent", now, now
	_, _, err = s.Create(t.Context(), r, journal.Batch{
		Lease: journal.Lease{Run: id, Owner: "another", Expiry: expiry}, Records: []journal.Record{{Run: id, Seq: e.Seq, Type: string(e.Type()), Body: body}},
		Head: event.Hash(body), Status: r.Progress, Time: now, Release: expiry.IsZero(),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, s journal.Store, run string) {
	t.Helper()
	if _, err := s.Send(t.Context(), journal.Command{Run: run, Kind: journal.Approve}); err != nil {
		t.Fatal(err)
	}
}

// The clock of the store is ten minutes ahead or behind. A parked run with a command is
// signalled if its lease is over by that clock.
func TestSweepJudgesLeasesByTheClockOfTheStore(t *testing.T) {
	for _, ahead := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		clock := func() time.Time { return time.Now().Add(ahead) }
		s := memory.New(clock)
		keep(t, s, "held", journal.Parked, clock().Add(time.Minute))
		keep(t, s, "over", journal.Parked, clock().Add(-time.Minute))
		send(t, s, "held")
		send(t, s, "over")
		d, c := dispatching(s)
		for range 2 {
			if err := d.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if c.signals["held"] != 0 || c.signals["over"] != 1 {
			t.Errorf("a store %v ahead: %v signals, want one for the run whose lease is over", ahead, c.signals)
		}
	}
}

// Two thousand runs wait for ten minutes: each is dispatched once, and a small number of
// them again.
func TestQueuedRunsAreSeldomDispatchedAgain(t *testing.T) {
	for _, n := range []int{againAtOnce + 10, 2_000} {
		synctest.Test(t, func(t *testing.T) {
			s := memory.New(nil)
			for i := range n {
				keep(t, s, fmt.Sprint("run", i), journal.Queued, time.Time{})
			}
			d, c := dispatching(s)
			// The start of a run dispatches it.
			if err := d.Dispatch(t.Context(), "run0", false); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			d.Run(ctx)
			sum, least, most := 0, n, 0
			for _, times := range c.starts {
				sum, least, most = sum+times, min(least, times), max(most, times)
			}
			sweeps := int(10 * time.Minute / sweepEvery)
			if len(c.starts) != n || sum > n+againAtOnce*sweeps || most > 10 || sum == n || most-least > 1 {
				t.Errorf("%d starts of %d runs, each %d to %d times; want at most %d", sum, len(c.starts), least, most, n+againAtOnce*sweeps)
			}
			if n < 2*againAtOnce && least < 9 {
				t.Errorf("a short queue: a run was dispatched %d times in ten minutes, want 9 or 10", least)
			}
			if len(c.signals) > 0 || len(c.queues) != 1 || !c.queues["pawl/test"] {
				t.Errorf("signals %v, task queues %v", c.signals, c.queues)
			}
		})
	}
}

// A command that arrives soon after a run was dispatched is signalled by the next sweep,
// once, and so is a second one.
func TestNewCommandIsSignalledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(nil)
		keep(t, s, "run", journal.Parked, time.Time{})
		d, c := dispatching(s)
		if err := d.Dispatch(t.Context(), "run", false); err != nil {
			t.Fatal(err)
		}
		for commands := 1; commands <= 2; commands++ {
			send(t, s, "run")
			for range 3 {
				if err := d.sweep(t.Context()); err != nil || c.signals["run"] != commands {
					t.Fatalf("%d signals after %d commands: %v", c.signals["run"], commands, err)
				}
				time.Sleep(sweepEvery)
			}
		}
		if c.starts["run"] != 1 {
			t.Errorf("%d starts, want 1", c.starts["run"])
		}
	})
}

// Two runs of command lines that stopped are not dispatched until they have a command, and
// two forks not before they are resumed.
func TestRunOfAPersonIsNotDispatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(nil)
		keep(t, s, "served", journal.Running, time.Time{})
		add(t, s, journal.Run{ID: "killed", Progress: journal.Progress{State: journal.Running}}, time.Time{}, event.RunStarted{})
		add(t, s, journal.Run{ID: "stopped", Progress: journal.Progress{State: journal.Parked, Detail: string(event.ParkInterrupted)}}, time.Time{}, event.RunStarted{})
		for _, id := range []string{"fork", "asked"} {
			add(t, s, journal.Run{ID: id, ForkOf: "served", ForkSeq: 1, Progress: journal.Progress{State: journal.Queued}}, time.Time{}, event.RunForked{})
		}
		send(t, s, "asked")
		d, c := dispatching(s)
		sweeps := func() {
			for range 30 {
				if err := d.sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(sweepEvery)
			}
		}
		sweeps()
		if len(c.starts) != 1 || c.starts["served"] == 0 || len(c.signals) != 0 {
			t.Fatalf("%v starts and %v signals, want starts of the run of a server", c.starts, c.signals)
		}
		for _, id := range []string{"killed", "stopped"} {
			send(t, s, id)
		}
		sweeps()
		if len(c.starts) != 1 || len(c.signals) != 2 || c.signals["killed"] == 0 || c.signals["stopped"] == 0 {
			t.Errorf("%v starts and %v signals after commands, want signals of both runs", c.starts, c.signals)
		}
	})
}

// Two journals have task queues of their own, which stay the same.
func TestJournalsHaveTaskQueuesOfTheirOwn(t *testing.T) {
	names := map[string]bool{}
	for range 2 {
		s := memory.New(nil)
		for range 2 {
			name, err := QueueOf(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			names[name] = true
		}
	}
	if len(names) != 2 {
		t.Errorf("the task queues of two journals are %v, want two", names)
	}
}

func TestExamineNamesWhatExactTurnsNeed(t *testing.T) {
	for _, n := range []int{1, 4} {
		detail, lacks := turns("pawl/test", n)
		if !strings.Contains(detail, fmt.Sprint("pawl/test, with partitions: ", n)) || !strings.Contains(lacks, "enableFairness") {
			t.Errorf("%d partitions: %q, %q", n, detail, lacks)
		}
		if strings.Contains(lacks, "numTaskqueueReadPartitions") != (n > 1) {
			t.Errorf("%d partitions: %q", n, lacks)
		}
	}
}
