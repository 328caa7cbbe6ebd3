package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
)

// A server is killed. Another one, on another host, does not drive its run, and shows what
// the run waits for, until a server of the first host is there again.
func TestRunWaitsForItsHost(t *testing.T) {
	p := newProject(t, "places")
	url, first, _ := p.serve(t, "PAWL_HOST=one")
	_, other, otherLog := p.serve(t, "PAWL_HOST=two")
	answer, err := http.Post(url+"/v1/runs", "application/json", strings.NewReader(`{"agent": "marks", "input": "go"}`))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("status %d: %s", answer.StatusCode, text)
	}
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	await(t, s, "the first call", func() bool { return len(p.ledger(t)) > 0 })
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	var row journal.Run
	state := func() journal.Run {
		rows, err := s.Runs(t.Context(), journal.Filter{})
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d runs, %v", len(rows), err)
		}
		row = rows[0]
		return row
	}
	await(t, s, "the reason", func() bool {
		state()
		return row.State == journal.Waiting && row.Detail == "no worker has the host one" || row.State == journal.Ended
	})
	if row.State == journal.Ended {
		t.Fatalf("the run ended without its host: %s", otherLog)
	}
	out, err := p.command("runs").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "no worker has the host one") {
		t.Errorf("the list says %v: %s", err, out)
	}
	p.serve(t, "PAWL_HOST=one")
	await(t, s, "the end", func() bool { return state().State == journal.Ended })
	owners := 0
	for e, err := range drive.Events(t.Context(), s, row.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, is := e.Event.Data.(event.RunResumed); is {
			owners++
		}
	}
	if owners != 1 {
		t.Errorf("the run was resumed %d times, want once, on its host", owners)
	}
	times := map[string]int{}
	for _, key := range p.ledger(t) {
		if times[key]++; times[key] > 1 {
			t.Errorf("call %s had its effect twice", key)
		}
	}
	t.Logf("%d effects, none twice; resumed %d time", len(times), owners)
	_ = other
}
