package main

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

const (
	bigToken   = "token-of-the-big-tenant-0123456789"
	smallToken = "token-of-the-small-tenant-01234567"
	big        = "- {name: big, role: admin, token: " + bigToken + "}"
	small      = "- {name: small, role: admin, token: " + smallToken + "}"
)

// as returns a copy whose requests have a token.
func (p placed) as(token string) placed {
	p.token = token
	return p
}

// firstDriven returns the runs in the order in which workers began with them.
func (p placed) firstDriven(t *testing.T) []string {
	t.Helper()
	rows, err := p.store.Runs(t.Context(), journal.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int64{}
	for _, r := range rows {
		records, err := p.store.Records(t.Context(), r.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(records, func(r journal.Record) bool { return r.Type == string(event.TypeRunResumed) })
		if i < 0 {
			t.Fatalf("run %s was driven by no worker", r.ID)
		}
		at[r.ID] = records[i].Pos
	}
	slices.SortFunc(rows, func(a, b journal.Run) int { return cmp.Compare(at[a.ID], at[b.ID]) })
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}

// A tenant with few runs waits at most three times as long as alone, which is counted in
// runs that begin before its own: alone there would be none.
func TestTemporalSharesWorkersBetweenTenants(t *testing.T) {
	const most, few, many = 4, 10, 100
	p := newPlaced(t, "placed_fair", 1, "20ms", big, small)
	p.as(bigToken).begin(t, "marks", many)
	own := p.as(smallToken).begin(t, "marks", few)
	p.worker(t, "one", "--max-runs", "4")
	p.awaits(t, journal.Ended, many+few)
	order, last := p.firstDriven(t), 0
	for i, run := range order {
		if slices.Contains(own, run) {
			last = i + 1
		}
	}
	if last > 3*few+most {
		t.Errorf("the last of %d runs of the small tenant began as number %d, want at most %d", few, last, 3*few+most)
	}
	if n := p.once(t); n != many+few {
		t.Errorf("%d effects, want %d", n, many+few)
	}
	t.Logf("%d runs of one tenant were queued before %d of another, whose last began as number %d", many, few, last)
}

// Runs with priority 1 begin before those with 5, which were queued earlier.
func TestTemporalPlacesByPriority(t *testing.T) {
	const n = 10
	p := newPlaced(t, "placed_priority", 1, "20ms")
	start := func(priority string) string {
		status, text := p.post(t, "/v1/runs", `{"agent": "marks", "input": "go", "priority": `+priority+`}`)
		if status != http.StatusCreated {
			t.Fatalf("status %d: %s", status, text)
		}
		_, id, _ := strings.Cut(text, `"id":"`)
		id, _, _ = strings.Cut(id, `"`)
		return id
	}
	if status, _ := p.post(t, "/v1/runs", `{"agent": "marks", "input": "go", "priority": 6}`); status != http.StatusBadRequest {
		t.Errorf("priority 6: status %d", status)
	}
	for range n {
		start("5")
	}
	var urgent []string
	for range n {
		urgent = append(urgent, start("1"))
	}
	p.worker(t, "one", "--max-runs", "1")
	p.awaits(t, journal.Ended, 2*n)
	later := 0
	for _, run := range p.firstDriven(t)[:n] {
		if !slices.Contains(urgent, run) {
			later++
		}
	}
	if later > 2 { // two may be placed before the urgent ones arrive
		t.Errorf("%d of the first %d runs have priority 5", later, n)
	}
}

// Several workers together never drive more runs of a tenant than it may.
func TestTemporalTenantRunsWhatItMay(t *testing.T) {
	const most, n = 2, 12
	p := newPlaced(t, "placed_max", 2, "100ms", strings.Replace(big, "}", ", max_running: 2}", 1)).as(bigToken)
	for _, name := range []string{"one", "two", "three", "four"} {
		p.worker(t, name)
	}
	p.begin(t, "marks", n)
	peak, reason := 0, false
	await(t, p.store, "the end of all runs", func() bool {
		rows, err := p.store.Runs(t.Context(), journal.Filter{Roots: true})
		if err != nil {
			t.Fatal(err)
		}
		held, ended := 0, 0
		for _, r := range rows {
			reason = reason || r.State == journal.Queued && r.Detail == "max_running 2 of big"
			if r.Owner != "" {
				held++
			}
			if r.State == journal.Ended {
				ended++
			}
		}
		peak = max(peak, held)
		return ended == n
	})
	if peak > most || !reason {
		t.Errorf("%d runs at once, want at most %d; the reason to wait was shown: %t", peak, most, reason)
	}
	if got := p.once(t); got != 2*n {
		t.Errorf("%d effects, want %d", got, 2*n)
	}
	if list, err := p.command("runs").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, list)
	}
}

// Beyond --max-queued a start is refused with the time to try again.
func TestTemporalRefusesStartsBeyondTheQueue(t *testing.T) {
	p := newPlaced(t, "placed_full", 1, "0s")
	url, _ := listens(t, p.command("serve", "--addr", "127.0.0.1:0", "--no-auth", "--temporal", p.temporal.Addr, "--max-queued", "3"))
	for i := range 5 {
		a, err := http.Post(url+"/v1/runs", "application/json", strings.NewReader(`{"agent": "marks", "input": "go"}`))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(a.Body)
		a.Body.Close()
		if want := map[bool]int{true: http.StatusCreated, false: http.StatusTooManyRequests}[i < 3]; a.StatusCode != want || i >= 3 && a.Header.Get("Retry-After") == "" {
			t.Errorf("start %d: status %d, want %d: %s", i+1, a.StatusCode, want, text)
		}
	}
	p.worker(t, "one")
	p.awaits(t, journal.Ended, 3)
}

// A run that asks for a label waits, with its reason, for a worker that has the label,
// while another worker has room.
func TestTemporalPlacesRunsByLabel(t *testing.T) {
	p := newPlaced(t, "placed_label", 1, "0s")
	p.worker(t, "plain")
	for round := 1; round <= 2; round++ {
		status, text := p.post(t, "/v1/runs", `{"agent": "marks", "input": "go", "workspace": {"label": "gpu"}}`)
		if status != http.StatusCreated {
			t.Fatalf("status %d: %s", status, text)
		}
		p.begin(t, "marks", 1)
		p.awaits(t, journal.Ended, 2*round-1)
		rows, err := p.store.Runs(t.Context(), journal.Filter{States: []journal.State{journal.Waiting}})
		if err != nil || len(rows) != 1 || rows[0].Detail != "no worker has the label gpu" {
			t.Fatalf("runs that wait: %+v, %v", rows, err)
		}
		w := p.worker(t, "gpu", "--labels", "gpu")
		p.awaits(t, journal.Ended, 2*round)
		if code, log := w.stopped(t, syscall.SIGTERM); code != 0 {
			t.Errorf("the worker exits with %d: %s", code, log)
		}
	}
	if c, effects := p.count(t), p.once(t); effects != 4 || c.runs != 4 {
		t.Errorf("%d effects in %d runs, want 4", effects, c.runs)
	}
}
