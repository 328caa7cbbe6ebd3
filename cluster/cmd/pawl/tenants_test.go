package main

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
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

// begun is when a worker first drove a run: its number in the order of all first drives,
// and how long it had waited.
type begun struct {
	order  int
	waited time.Duration
}

// firstDriven returns the runs that a worker has begun with, in that order.
func (p placed) firstDriven(t *testing.T) (ids []string, by map[string]begun) {
	t.Helper()
	rows, err := p.store.Runs(t.Context(), journal.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	by = map[string]begun{}
	pos := map[string]int64{}
	for _, r := range rows {
		if r.State == journal.Queued {
			continue
		}
		for e, err := range drive.Since(t.Context(), p.store, r.ID, 0, drive.OneOf(event.TypeRunResumed)) {
			if err != nil {
				t.Fatal(err)
			}
			ids, pos[r.ID] = append(ids, r.ID), e.Pos
			by[r.ID] = begun{waited: e.Time.Sub(r.Created)}
			break
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(pos[a], pos[b]) })
	for i, id := range ids {
		b := by[id]
		b.order = i
		by[id] = b
	}
	return ids, by
}

// p95 returns the wait that 95 of 100 of these runs do not exceed, also as a number of
// runs that began meanwhile.
func p95(ids []string, by map[string]begun, first int) (waited time.Duration, began int) {
	var waits []time.Duration
	var orders []int
	for _, id := range ids {
		waits, orders = append(waits, by[id].waited), append(orders, by[id].order-first)
	}
	slices.Sort(waits)
	slices.Sort(orders)
	i := (len(ids)*95+99)/100 - 1
	return waits[i], orders[i] + 1
}

// A tenant with few runs waits at most three times as long as it does alone while another
// one has thousands of queued runs (in full; by default hundreds). The limit is a number of
// runs that begin before its own, because the load of the machine changes during the test.
func TestTemporalSharesWorkersBetweenTenants(t *testing.T) {
	t.Parallel()
	const few = 10
	many := 150
	if full() {
		many = 10_000
	}
	p := newPlaced(t, "placed_fair", 1, "20ms", big, small)
	w := p.worker(t, "one", "--max-runs", "2")
	mine := p.as(smallToken)
	own := mine.begin(t, "marks", few)
	p.awaits(t, journal.Ended, few)
	_, by := p.firstDriven(t)
	alone, began := p95(own, by, 0)
	p.as(bigToken).begin(t, "marks", many)
	for round := 1; round <= 2; round++ {
		ids, _ := p.firstDriven(t)
		await(t, p.store, "more runs of the big tenant", func() bool { return len(p.ledger(t)) > len(ids)+3 })
		ids, _ = p.firstDriven(t)
		own := mine.begin(t, "marks", few)
		await(t, p.store, "the runs of the small tenant", func() bool {
			return !slices.ContainsFunc(own, func(id string) bool {
				row, err := p.store.Run(t.Context(), id)
				return err != nil || row.State != journal.Ended
			})
		})
		if p.states(t)[journal.Queued] == 0 {
			t.Fatal("the queue of the big tenant is empty")
		}
		_, by := p.firstDriven(t)
		beside, passed := p95(own, by, len(ids))
		if passed > 3*began+3 { // a few may begin before the last of the starts
			t.Errorf("round %d: %d runs began until 95 of 100 of the small tenant's had, and %d when it was alone", round, passed, began)
		}
		t.Logf("round %d: beside %d queued runs the p95 wait is %v, alone %v (%.1f times as long); %d runs began meanwhile, alone %d",
			round, many, beside.Round(time.Millisecond), alone.Round(time.Millisecond), float64(beside)/float64(alone), passed, began)
	}
	if code, log := w.stopped(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the worker exits with %d: %s", code, log)
	}
	p.once(t)
}

// Tenants get places by their weights, also the one whose runs were queued later.
func TestTemporalSharesWorkersByWeight(t *testing.T) {
	t.Parallel()
	const each, counted = 60, 40
	heavy := strings.Replace(big, "}", ", weight: 3}", 1)
	p := newPlaced(t, "placed_weight", 1, "20ms", heavy, small)
	p.as(smallToken).begin(t, "marks", each)
	of := p.as(bigToken).begin(t, "marks", each)
	p.worker(t, "one", "--max-runs", "2")
	p.awaits(t, journal.Ended, 2*each)
	ids, _ := p.firstDriven(t)
	n := 0
	for _, id := range ids[:counted] {
		if slices.Contains(of, id) {
			n++
		}
	}
	if n < counted*3/5 || n > counted*9/10 { // a weight of 3 beside 1 is three quarters
		t.Errorf("%d of the first %d runs are of the tenant with the weight 3, want about %d", n, counted, counted*3/4)
	}
	if n := p.once(t); n != 2*each {
		t.Errorf("%d effects, want %d", n, 2*each)
	}
	t.Logf("%d of the first %d runs are of the tenant with the weight 3 beside one with 1", n, counted)
}

// Runs with priority 1 begin before those with 5, which were queued earlier.
func TestTemporalPlacesByPriority(t *testing.T) {
	t.Parallel()
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
	p.worker(t, "one", "--max-runs", "2")
	p.awaits(t, journal.Ended, 2*n)
	later := 0
	order, _ := p.firstDriven(t)
	for _, run := range order[:n] {
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
