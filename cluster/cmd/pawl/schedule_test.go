package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"github.com/pawlrun/pawl/cluster/internal/place"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
)

// scheduled runs a command of schedules, and returns what it prints and its exit code.
func (p placed) schedule(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	text, err := p.command(append([]string{"schedule", "--temporal", p.temporal.Addr}, args...)...).CombinedOutput()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return string(text), exit.ExitCode()
	}
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return string(text), 0
}

// of returns the runs of a schedule.
func (p placed) of(t *testing.T, schedule string) (all []journal.Run) {
	t.Helper()
	rows, err := p.store.Runs(t.Context(), journal.Filter{Roots: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		started, err := drive.At[event.RunStarted](t.Context(), p.store, row.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		if started.Schedule == schedule {
			all = append(all, row)
		}
	}
	return all
}

// A schedule starts a run each time, also those that were due before there was a worker. A
// time at which the last run still waits for a person is skipped.
func TestTemporalSchedulesStartRuns(t *testing.T) {
	t.Parallel()
	p := newPlaced(t, "scheduled", 1, "0s")
	const eachTwoSeconds = "*/2 * * * * * *"
	for _, file := range []string{"marks.yaml", "asks.yaml"} {
		if out, code := p.schedule(t, "create", file, "Go.", "--cron", eachTwoSeconds); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	}
	for _, refused := range [][]string{
		{"create", "marks.yaml", "Go.", "--cron", eachTwoSeconds}, // the name is taken
		{"create", "marks.yaml", "Go.", "--cron", eachTwoSeconds, "--name", "a/b"},
		{"create", "marks.yaml", "Go.", "--cron", eachTwoSeconds, "--name", "x", "--overlap", "never"},
		{"create", "missing.yaml", "Go.", "--cron", eachTwoSeconds},
		{"delete", "nothing"},
	} {
		if out, code := p.schedule(t, refused...); code != 2 {
			t.Errorf("%q exits with %d: %s", refused, code, out)
		}
	}
	p.worker(t, "one", "--max-runs", "4")
	await(t, p.store, "three runs of a schedule", func() bool {
		all := p.of(t, "marks")
		ended := 0
		for _, r := range all {
			if r.State == journal.Ended {
				ended++
			}
		}
		return ended >= 3
	})

	queue, err := place.QueueOf(t.Context(), p.store)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(client.Options{HostPort: p.temporal.Addr, Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	skipped := func() int {
		d, err := c.ScheduleClient().GetHandle(t.Context(), queue+"/schedule/asks").Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return d.Info.NumActionsSkippedOverlap
	}
	for round := 1; round <= 2; round++ {
		before := skipped()
		await(t, p.store, "skipped times", func() bool { return skipped() >= before+2 })
		waiting := p.of(t, "asks")
		if len(waiting) != round {
			t.Fatalf("round %d: there are %d runs of the schedule that waits", round, len(waiting))
		}
		for _, r := range waiting {
			if r.State == journal.Parked {
				p.approve(t, r.ID)
				await(t, p.store, "the end of the approved run", func() bool {
					row, err := p.store.Run(t.Context(), r.ID)
					return err == nil && row.State == journal.Ended
				})
			}
		}
		await(t, p.store, "the next run", func() bool { return len(p.of(t, "asks")) == round+1 })
	}
	p.once(t)

	await(t, p.store, "the list of schedules", func() bool {
		out, _ := p.schedule(t, "list", "--json")
		var all []struct{ Name, Cron, Last string }
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return len(all) == 2 && all[0].Name == "asks" && all[1].Cron == eachTwoSeconds && all[1].Last != ""
	})
	if out, code := p.schedule(t, "delete", "marks"); code != 0 || !strings.Contains(out, "marks is deleted") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := p.schedule(t, "delete", "marks"); code != 2 {
		t.Errorf("deleted again, exit code %d: %s", code, out)
	}
}
