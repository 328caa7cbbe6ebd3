package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

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

// repository makes a git repository, and returns the JSON of a place that is a clone of it.
func repository(t *testing.T) (repo, place string) {
	t.Helper()
	repo = t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=x", "-c", "user.email=x@x"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return repo, `{"repo": "` + repo + `"}`
}

// workplaceOf returns where a run works, once a process has decided that.
func workplaceOf(t *testing.T, s journal.Store, run string) (started event.RunStarted) {
	t.Helper()
	await(t, s, "the place of the run", func() bool {
		var err error
		started, _, err = drive.Began(t.Context(), s, run)
		return err == nil && started.Workspace != ""
	})
	return started
}

// marked returns how many calls had their effect in a workspace, and fails the test for one
// that had it twice.
func marked(t *testing.T, workspace string) int {
	t.Helper()
	keys := project{dir: workspace}.ledger(t)
	slices.Sort(keys)
	if n := len(keys); n != len(slices.Compact(keys)) {
		t.Errorf("of %d effects some are twice", n)
	}
	return len(keys)
}

// waitsFor waits until a run waits with a reason, and checks that the list of the command
// line and the answers of a server have it.
func (p project) waitsFor(t *testing.T, s journal.Store, url, run, reason string) {
	t.Helper()
	var row journal.Run
	await(t, s, reason, func() bool {
		var err error
		row, err = s.Run(t.Context(), run)
		return err == nil && (row.State == journal.Ended || row.State == journal.Waiting && row.Detail == reason)
	})
	if row.State == journal.Ended {
		t.Fatal("the run ended without its host")
	}
	out, err := p.command("runs").CombinedOutput()
	if err != nil || !strings.Contains(string(out), reason) {
		t.Errorf("the list says %v: %s", err, out)
	}
	for _, path := range []string{"/v1/runs", "/v1/runs/" + run} {
		if text := metrics(t, url+path); !strings.Contains(text, reason) {
			t.Errorf("%s says %s", path, text)
		}
	}
}

// A server that has cloned the repository of a run is killed. The other server does not
// drive the run, and shows what it waits for; the first one continues in its clone.
func TestRunWaitsForTheHostOfItsClone(t *testing.T) {
	t.Parallel()
	p := newProject(t, "clones")
	p.write(t, "script.yaml", script(3, 4*time.Second))
	repo, place := repository(t)
	urls, servers := map[string]string{}, map[string]*exec.Cmd{}
	for _, host := range []string{"one", "two"} {
		urls[host], servers[host], _ = p.serve(t, "PAWL_HOST="+host)
	}
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, asked := range []string{"one", "two"} {
		run := beginAt(t, urls[asked], place)
		started := workplaceOf(t, s, run)
		host, other := started.Place.Host, "one"
		if host == "one" {
			other = "two"
		}
		await(t, s, "the first call", func() bool { return marked(t, started.Workspace) > 0 })
		if err := servers[host].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = servers[host].Wait()
		p.waitsFor(t, s, urls[other], run, "no worker has the clone of "+repo+" on the host "+host)
		before := marked(t, started.Workspace)
		urls[host], servers[host], _ = p.serve(t, "PAWL_HOST="+host)
		allEnded(t, s)
		t.Logf("%d effects at %s before it was killed, %d in all", before, host, marked(t, started.Workspace))
	}
}

// beginAt starts a run at a place.
func beginAt(t *testing.T, url, place string) string {
	t.Helper()
	answer, err := http.Post(url+"/v1/runs", "application/json", strings.NewReader(`{"agent": "marks", "input": "go", "workspace": `+place+`}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var made journal.Run
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("status %d, %v", answer.StatusCode, err)
	}
	return made.ID
}

// The worker that drives a run first decides where it works, and is killed. Another worker
// does not drive the run; the server, the list and the row say what it waits for, until
// there is a worker of its host.
func TestTemporalRunWaitsForItsHost(t *testing.T) {
	t.Parallel()
	p := newPlaced(t, "placed_hosts", 3, "4s")
	repo, place := repository(t)
	workers := map[string]*worker{}
	for _, host := range []string{"one", "two"} {
		workers[host] = p.workerOn(t, host, host)
	}
	for round, workspace := range []string{`{}`, `{"host": "two"}`, place} {
		run := beginAt(t, p.url, workspace)
		started := workplaceOf(t, p.store, run)
		host, waits := started.Place.Host, "no worker has "+started.Place.String()
		if workspace == place && !strings.Contains(waits, "the clone of "+repo) || round == 1 && host != "two" {
			t.Errorf("round %d: %s", round, waits)
		}
		path := started.Workspace
		before := marked(t, path)
		await(t, p.store, "the first call", func() bool { return marked(t, path) > before })
		_, _ = workers[host].stopped(t, syscall.SIGKILL)
		p.waitsFor(t, p.store, p.url, run, waits)
		workers[host] = p.workerOn(t, host, fmt.Sprint(host, round))
		p.awaits(t, journal.Ended, round+1)
		if n := p.drives(t, run); n > 3 {
			t.Errorf("round %d: %d drives of a run that changed its worker once", round, n)
		}
		t.Logf("round %d: at %s, %d effects, none twice", round, host, marked(t, path)-before)
	}
}

// A run parks, its host goes, and its decision is made: the run waits for its host, in
// Temporal too, where the decision adds no more events.
func TestTemporalDecisionWaitsForItsHost(t *testing.T) {
	t.Parallel()
	p := newPlaced(t, "placed_decision", 1, "0s")
	workers := map[string]*worker{}
	for _, host := range []string{"one", "two"} {
		workers[host] = p.workerOn(t, host, host)
	}
	for round := 1; round <= 2; round++ {
		run := p.begin(t, "asks", 1)[0]
		p.awaits(t, journal.Parked, 1)
		host := workplaceOf(t, p.store, run).Place.Host
		if code, log := workers[host].stopped(t, syscall.SIGTERM); code != 0 {
			t.Fatalf("the worker exits with %d: %s", code, log)
		}
		p.approve(t, run)
		p.waitsFor(t, p.store, p.url, run, "no worker has the host "+host)
		workers[host] = p.workerOn(t, host, fmt.Sprint(host, round))
		p.awaits(t, journal.Ended, round)
		if n := p.drives(t, run); n != 2 {
			t.Errorf("a run that parked once was driven %d times", n)
		}
	}
	p.once(t)
}
