package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// The database crashes and stays down for longer than a lease. The run continues when
// the database is back, and does not repeat a model or tool call that had returned.
func TestAnOutageLongerThanALeaseEndsNoRun(t *testing.T) {
	p := newProject(t, "outage")
	cmd := p.command("run", "marks.yaml", "go")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	await(t, s, "the first call", func() bool { return len(p.ledger(t)) > 0 })
	if err := server.Down(t.Context(), "immediate"); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * lease)
	if err := server.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &log)
	}
	rows, err := s.Runs(t.Context(), journal.Filter{})
	if err != nil || len(rows) != 1 || rows[0].State != journal.Ended {
		t.Fatalf("runs %+v, %v", rows, err)
	}
	records, err := s.Records(t.Context(), rows[0].ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	answers, retries := 0, 0
	for _, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		switch e.Data.(type) {
		case event.ModelResponse:
			answers++
		case event.ModelRetrying, event.RunResumed, event.RunParked:
			retries++
		}
	}
	if answers != calls+1 || retries != 0 || len(p.ledger(t)) != calls {
		t.Errorf("%d answers of the model, %d retries, %d effects; want %d, 0 and %d", answers, retries, len(p.ledger(t)), calls+1, calls)
	}
}
