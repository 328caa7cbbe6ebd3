package main

import (
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/journal"
)

// measured starts a worker with metrics and returns the address of these. Temporal may be
// missing.
func (p placed) measured(t *testing.T, name string, args ...string) (w *worker, url string) {
	t.Helper()
	w = p.worker(t, name, args...)
	address := regexp.MustCompile(`address=http://\S+:(\d+)`)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if at := address.FindStringSubmatch(w.text(t)); at != nil {
			return w, "http://127.0.0.1:" + at[1]
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("the worker serves no metrics: %s", w.text(t))
		}
	}
}

// The metrics of a worker are for this machine, or for those who have a token, as a
// server's are.
func TestWorkerGuardsItsMetricsLikeAServer(t *testing.T) {
	p := placed{project: newProject(t, "measured")}
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:0"} {
		out, err := p.command("worker", "--temporal", p.at(), "--metrics", addr).CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("--metrics")) || !bytes.Contains(out, []byte("--tokens")) {
			t.Errorf("--metrics %s without tokens: %v: %s", addr, err, out)
		}
	}
	status := func(url, token string) int { return asks(t, http.MethodGet, url, token, "", nil) }
	open, url := p.measured(t, "open", "--metrics", "127.0.0.1:0")
	if m, runs := status(url+"/metrics", ""), status(url+"/v1/runs", ""); m != http.StatusOK || runs != http.StatusNotFound {
		t.Errorf("without tokens the metrics are answered with %d and runs with %d", m, runs)
	}
	if code, log := open.stopped(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the worker exits with %d: %s", code, log)
	}
	made, err := p.command("token", "create", "prometheus", "--role", "viewer", "--tokens", "tokens.yaml").Output()
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(made))
	for _, name := range []string{"first", "second"} {
		w, url := p.measured(t, name, "--metrics", "0.0.0.0:0", "--tokens", "tokens.yaml")
		if none, wrong, right := status(url+"/metrics", ""), status(url+"/metrics", "wrong"), status(url+"/metrics", token); none != http.StatusUnauthorized || wrong != http.StatusUnauthorized || right != http.StatusOK {
			t.Errorf("no token is answered with %d, a wrong one with %d, a right one with %d", none, wrong, right)
		}
		if code, log := w.stopped(t, syscall.SIGTERM); code != 0 {
			t.Errorf("the worker exits with %d: %s", code, log)
		}
	}
}

// oldest returns the age of the oldest queued run of each tenant.
func (p placed) oldest(t *testing.T) map[string]time.Duration {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	text := answer(t, r)
	ages := map[string]time.Duration{}
	for _, m := range regexp.MustCompile(`(?m)^pawl_oldest_queued_seconds\{tenant="(.*)"\} (.*)$`).FindAllStringSubmatch(text, -1) {
		seconds, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatalf("%s: %v", m[0], err)
		}
		ages[m[1]] = time.Duration(seconds * float64(time.Second))
	}
	return ages
}

// The age of the oldest queued run of a tenant begins with that run, grows while no worker
// takes it, and goes with it.
func TestTemporalOldestQueuedRunHasAnAge(t *testing.T) {
	t.Parallel()
	p := newPlaced(t, "placed_oldest", 1, "0s", big, small)
	for round := 1; round <= 2; round++ {
		before := time.Now()
		p.as(bigToken).begin(t, "marks", 1)
		first := time.Now()
		var ages map[string]time.Duration
		await(t, p.store, "a run that waits for a second", func() bool {
			ages = p.as(bigToken).oldest(t)
			return ages["big"] > time.Second
		})
		p.as(bigToken).begin(t, "marks", 1)
		p.as(smallToken).begin(t, "marks", 1)
		atLeast := time.Since(first)
		later := p.as(bigToken).oldest(t)
		if most := time.Since(before); later["big"] < ages["big"] || later["big"] < atLeast || later["big"] > most || later["small"] > most-time.Second {
			t.Errorf("round %d: the oldest are %v after %v, want %v to %v for big and less than that without a second for small", round, later, ages, atLeast, most)
		}
		w := p.worker(t, "worker"+strconv.Itoa(round))
		p.awaits(t, journal.Ended, 3*round)
		if ages := p.as(bigToken).oldest(t); len(ages) != 0 {
			t.Errorf("round %d: no run is queued, and the oldest are %v", round, ages)
		}
		if code, log := w.stopped(t, syscall.SIGTERM); code != 0 {
			t.Errorf("the worker exits with %d: %s", code, log)
		}
	}
}
