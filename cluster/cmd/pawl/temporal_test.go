package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/pawlrun/pawl/cluster/internal/place"
	"github.com/pawlrun/pawl/journal"
)

// Runs go on, park, are approved, go on and end, in whichever worker has room; the
// second round finds workers and workflows that have been used.
func TestTemporalPlacesRunsUntilTheyEnd(t *testing.T) {
	t.Parallel()
	p := newPlaced(t, "placed", 8, "20ms")
	one, two := p.worker(t, "one", "--max-runs", "4"), p.worker(t, "two", "--max-runs", "4")
	for round := 1; round <= 2; round++ {
		marks, asks := p.begin(t, "marks", 6), p.begin(t, "asks", 6)
		p.awaits(t, journal.Parked, 6)
		p.awaits(t, journal.Ended, 12*(round-1)+6)
		for _, run := range asks {
			p.approve(t, run)
		}
		p.awaits(t, journal.Ended, 12*round)
		if n := p.drives(t, marks[0]); n != 1 {
			t.Errorf("a run that never waited was driven %d times", n)
		}
		if n := p.drives(t, asks[0]); n != 2 {
			t.Errorf("a run that parked once was driven %d times", n)
		}
		if c, effects := p.count(t), p.once(t); c.cut > 0 || effects != c.results || effects != 54*round {
			t.Errorf("round %d: %d results, %d cut off, %d effects; want %d", round, c.results, c.cut, effects, 54*round)
		}
	}
	owners := map[string]bool{}
	for _, w := range []*worker{one, two} {
		code, log := w.stopped(t, syscall.SIGTERM)
		if code != 0 {
			t.Errorf("a worker exits with %d: %s", code, log)
		}
		owners[w.log] = strings.Contains(log, "error")
	}
}

// A worker is killed. All its runs, which name a label, go on in the other one, on another
// host, and nothing has its effect twice.
func TestTemporalMovesTheRunsOfAKilledWorker(t *testing.T) {
	t.Parallel()
	const n, turns = 64, 12
	p := newPlaced(t, "placed_killed", turns, "500ms")
	p.place = `{"label": "any"}`
	first := p.workerOn(t, "first", "first", "--max-runs", "66", "--labels", "any")
	p.begin(t, "marks", n)
	await(t, p.store, "the first calls", func() bool { return len(p.ledger(t)) >= n })
	if list, err := p.command("runs").CombinedOutput(); err != nil || !strings.Contains(string(list), "running, at first") {
		t.Errorf("the list does not show the worker, %v: %s", err, list)
	}
	if text := metrics(t, p.url+"/metrics"); !strings.Contains(text, `state="running"} `) {
		t.Errorf("the metrics have no running run: %s", text)
	}
	second := p.workerOn(t, "second", "second", "--max-runs", "66", "--labels", "any", "--metrics", "127.0.0.1:0")
	before := len(p.ledger(t))
	_, _ = first.stopped(t, syscall.SIGKILL)
	rows, err := p.store.Runs(t.Context(), journal.Filter{States: []journal.State{journal.Running, journal.Waiting}})
	if err != nil || len(rows) < n/2 {
		t.Fatalf("%d runs go on when their worker is killed, want most of %d: %v", len(rows), n, err)
	}
	await(t, p.store, "all runs in the second worker", func() bool {
		left, err := p.store.Runs(t.Context(), journal.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(left, func(r journal.Run) bool {
			return r.State != journal.Ended && slices.ContainsFunc(rows, func(b journal.Run) bool { return b.ID == r.ID && b.Owner == r.Owner })
		})
	})
	p.awaits(t, journal.Ended, n)
	c, effects := p.count(t), p.once(t)
	if effects > n*turns || effects < n*turns-c.cut {
		t.Errorf("%d effects, %d calls cut off, want %d", effects, c.cut, n*turns)
	}
	t.Logf("%d runs went on; %d effects before the kill, %d after; %d cut off; none twice", len(rows), before, effects-before, c.cut)
	at := regexp.MustCompile(`address=(http://\S+)`).FindStringSubmatch(second.text(t))
	if at == nil {
		t.Fatalf("the worker serves no metrics: %s", second.text(t))
	}
	if text := metrics(t, at[1]+"/metrics"); !regexp.MustCompile(`(?m)^pawl_leases_taken_over_total [1-9]`).MatchString(text) || !strings.Contains(text, "pawl_journal_commits") {
		t.Errorf("the metrics of the worker have no lease that it took over: %s", text)
	}
	_, log := second.stopped(t, syscall.SIGTERM)
	if strings.Contains(log, "level=ERROR") {
		t.Errorf("the second worker: %s", log)
	}
}

// Temporal is stopped, in full for ten minutes, while runs are started. Afterwards all of
// them run, each once.
func TestTemporalThatWasDownPlacesAllRuns(t *testing.T) {
	t.Parallel()
	n, lasts := 200, time.Duration(0)
	if full() {
		n, lasts = 1000, 10*time.Minute
	}
	p := newPlaced(t, "placed_down", 1, "0s")
	p.worker(t, "one", "--max-runs", "16")
	p.worker(t, "two", "--max-runs", "16")
	p.begin(t, "marks", 1) // all are connected
	p.awaits(t, journal.Ended, 1)
	for round := 1; round <= 2; round++ {
		if err := p.temporal.Down(); err != nil {
			t.Fatal(err)
		}
		back := time.After(lasts)
		p.begin(t, "marks", n)
		if s := p.states(t); s[journal.Queued] != n {
			t.Fatalf("the states are %v, want %d queued", s, n)
		}
		<-back
		if err := p.temporal.Up(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		up := time.Now()
		all := round*n + 1
		p.awaits(t, journal.Ended, all)
		c, effects := p.count(t), p.once(t)
		if effects != all || c.results != all || c.resumed > 2*all {
			t.Errorf("%d effects and %d results in %d runs that were resumed %d times, want %d", effects, c.results, c.runs, c.resumed, all)
		}
		t.Logf("%d runs started while Temporal was down, in full for %v; all had ended %v after it was back: %d effects, none twice, %d times resumed",
			n, lasts, time.Since(up).Round(time.Second), effects, c.resumed)
		lasts = 0 // once is enough for the long outage
	}
}

// Two journals share a Temporal server. The worker of one takes no run of the other, and
// each has its own schedules.
func TestTemporalKeepsJournalsApart(t *testing.T) {
	t.Parallel()
	a := newPlaced(t, "placed_a", 1, "0s")
	b := newPlacedAt(t, a.temporal, "placed_b", 1, "0s")
	for _, p := range []placed{a, b} {
		if out, code := p.schedule(t, "create", "marks.yaml", "Go.", "--cron", "0 0 1 1 *"); code != 0 {
			t.Errorf("exit code %d: %s", code, out)
		}
	}
	b.worker(t, "of-b", "--max-runs", "4")
	for round := 1; round <= 2; round++ {
		others := a.begin(t, "marks", 5)
		b.begin(t, "marks", 5)
		b.awaits(t, journal.Ended, 5*round)
		for _, run := range others {
			for _, e := range a.history(t, run) {
				if e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_STARTED {
					t.Fatalf("round %d: a worker of another journal took run %s", round, run)
				}
			}
		}
		w := a.worker(t, fmt.Sprint("of-a", round), "--max-runs", "4")
		a.awaits(t, journal.Ended, 5*round)
		if n := a.drives(t, others[0]); n != 1 {
			t.Errorf("round %d: a run was driven %d times, want once", round, n)
		}
		if code, log := w.stopped(t, syscall.SIGTERM); code != 0 {
			t.Errorf("the worker exits with %d: %s", code, log)
		}
	}
	for _, p := range []placed{a, b} {
		if n := p.once(t); n != 10 {
			t.Errorf("%d effects, want 10", n)
		}
	}
	if out, code := a.schedule(t, "delete", "marks"); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := b.schedule(t, "delete", "marks"); code != 0 {
		t.Errorf("the schedule of the other journal, exit code %d: %s", code, out)
	}
}

// The doctor names the task queue, and what fairness needs; it reports a Temporal server
// that does not answer, and a journal that is a file.
func TestTemporalIsExaminedByTheDoctor(t *testing.T) {
	t.Parallel()
	p := newPlaced(t, "placed_doctor", 1, "0s")
	queue, err := place.QueueOf(t.Context(), p.store)
	if err != nil {
		t.Fatal(err)
	}
	file := placed{project: project{dir: p.dir, journal: filepath.Join(p.dir, "journal.db")}}
	for _, c := range []struct {
		p    placed
		at   string
		want []string
	}{
		{p, p.temporal.Addr, []string{"! temporal", queue + ", with partitions: 1", "matching.enableFairness: true"}},
		{p, "127.0.0.1:1", []string{"✗ temporal", "examine Temporal"}},
		{file, p.temporal.Addr, []string{"✗ temporal", "needs a journal that workers share"}},
	} {
		out, _ := c.p.command("doctor", "--temporal", c.at).CombinedOutput()
		for _, want := range c.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("the doctor does not print %q about %s: %s", want, c.at, out)
			}
		}
	}
}
