package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// held returns how many runs have a driver.
func (p placed) held(t *testing.T) (n int) {
	t.Helper()
	rows, err := p.store.Runs(t.Context(), journal.Filter{Roots: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Owner != "" {
			n++
		}
	}
	return n
}

// A worker drives at most --max-runs, and takes the next run when one ends.
func TestTemporalWorkerTakesWhatItHasRoomFor(t *testing.T) {
	t.Parallel()
	const most, n = 3, 12
	p := newPlaced(t, "placed_room", 2, "100ms")
	p.worker(t, "one", "--max-runs", fmt.Sprint(most))
	p.begin(t, "marks", n)
	peak := 0
	await(t, p.store, "the end of all runs", func() bool {
		peak = max(peak, p.held(t))
		return p.states(t)[journal.Ended] == n
	})
	if peak > most || peak == 0 {
		t.Errorf("the worker drove %d runs at once, want 1 to %d", peak, most)
	}
	if c, effects := p.count(t), p.once(t); effects != 2*n || c.resumed > n {
		t.Errorf("%d effects, %d resumed", effects, c.resumed)
	}
	t.Logf("at most %d at once", peak)
}

// Temporal is away, and then does not answer, when a worker starts. The worker says so once,
// and drives the runs of each of its queues once Temporal is there. One that is stopped
// before that exits with 0.
func TestTemporalWorkerStartsBeforeTemporal(t *testing.T) {
	t.Parallel()
	p := newPlaced(t, "placed_early", 1, "0s")
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(p.temporal.Pid(), s); err != nil {
			t.Fatal(err)
		}
	}
	for round, c := range []struct{ leave, back func() }{
		{func() { _ = p.temporal.Down() }, func() {
			if err := p.temporal.Up(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
		}},
		{func() { signal(syscall.SIGSTOP) }, func() { signal(syscall.SIGCONT) }},
	} {
		c.leave()
		workers := map[string]*worker{}
		for _, name := range []string{"stays", "stopped"} {
			workers[name] = p.workerOn(t, name, fmt.Sprint(name, round), "--labels", "gpu")
			await(t, p.store, "a line about Temporal", func() bool { return strings.Contains(workers[name].text(t), "cannot be reached") })
		}
		if code, log := workers["stopped"].stopped(t, syscall.SIGTERM); code != 0 {
			t.Errorf("round %d: the worker that is stopped exits with %d: %s", round, code, log)
		}
		for _, p.place = range []string{"", `{"host": "stays"}`, `{"label": "gpu"}`} {
			p.begin(t, "marks", 1)
		}
		c.back()
		p.awaits(t, journal.Ended, 3*(round+1))
		code, log := workers["stays"].stopped(t, syscall.SIGTERM)
		if n := strings.Count(log, "cannot be reached"); code != 0 || n != 1 {
			t.Errorf("round %d: the worker exits with %d and says %d times that it does not reach Temporal: %s", round, code, n, log)
		}
	}
	if n := p.once(t); n != 6 {
		t.Errorf("%d effects, want 6", n)
	}
}

// drove reports whether a worker was the last to drive a run, by its process id.
func (p placed) drove(t *testing.T, w *worker, run string) bool {
	t.Helper()
	by := ""
	records, err := p.store.Records(t.Context(), run, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		e, err := event.Decode(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resumed, is := e.Data.(event.RunResumed); is {
			by = resumed.Owner
		}
	}
	return strings.Contains(by, fmt.Sprintf("/%d/", w.Process.Pid))
}

// A worker whose machine lacks memory or disk takes no run, and says so; another one takes
// them meanwhile. It takes runs again once its machine has room.
func TestTemporalWorkerTakesNothingWithoutRoom(t *testing.T) {
	t.Parallel()
	const n = 4
	p := newPlaced(t, "placed_lacks", 1, "0s")
	full := p.worker(t, "full", "--max-runs", "2")
	for round, lack := range []string{"memory: 1 MiB", "disk: 1 MiB"} {
		p.write(t, "full.lacks", lack)
		// The worker polls already; it finds that it lacks something once this run is over.
		p.begin(t, "marks", 1)
		await(t, p.store, "the worker to lack something", func() bool { return strings.Contains(full.text(t), lack) })
		begun := p.begin(t, "marks", n)
		other := p.worker(t, "other"+lack[:4])
		p.awaits(t, journal.Ended, round*(2*n+1)+n+1)
		for _, run := range begun {
			if !p.drove(t, other, run) {
				t.Errorf("run %s was not driven by the worker with room while one lacked %s", run, lack)
			}
		}
		if code, log := other.stopped(t, syscall.SIGTERM); code != 0 {
			t.Errorf("the other worker exits with %d: %s", code, log)
		}
		if err := os.Remove(filepath.Join(p.dir, "full.lacks")); err != nil {
			t.Fatal(err)
		}
		for _, run := range p.begin(t, "marks", n) {
			await(t, p.store, "the end of a run", func() bool {
				row, err := p.store.Run(t.Context(), run)
				return err == nil && row.State == journal.Ended
			})
			if !p.drove(t, full, run) {
				t.Errorf("run %s was not driven by the worker that has room again", run)
			}
		}
	}
	if log := full.text(t); strings.Count(log, "takes no more runs") != 2 || strings.Count(log, "takes runs again") != 2 {
		t.Errorf("the worker does not say twice that it takes no runs, and that it does again: %s", log)
	}
}

// SIGTERM parks the runs of a worker, which exits with 0; another one continues them.
func TestTemporalWorkerParksOnSIGTERM(t *testing.T) {
	t.Parallel()
	const n, turns = 8, 6
	p := newPlaced(t, "placed_term", turns, "300ms")
	for round := 1; round <= 2; round++ {
		first := p.worker(t, fmt.Sprint("first", round))
		p.begin(t, "marks", n)
		await(t, p.store, "the first calls", func() bool { return len(p.ledger(t)) >= n*turns*(round-1)+n })
		began := time.Now()
		code, log := first.stopped(t, syscall.SIGTERM)
		t.Logf("stopped within %v", time.Since(began).Round(time.Millisecond))
		if held := p.held(t); code != 0 || held != 0 {
			t.Fatalf("the worker exits with %d and leaves %d runs held: %s", code, held, log)
		}
		if s := p.states(t); s[journal.Ended] == n*round {
			t.Fatal("all runs had ended before the signal")
		}
		second := p.worker(t, fmt.Sprint("second", round))
		p.awaits(t, journal.Ended, n*round)
		if code, log := second.stopped(t, syscall.SIGTERM); code != 0 {
			t.Errorf("an idle worker exits with %d: %s", code, log)
		}
	}
	if c, effects := p.count(t), p.once(t); effects > 2*n*turns || effects < 2*n*turns-c.cut {
		t.Errorf("%d effects, %d calls cut off, want %d", effects, c.cut, 2*n*turns)
	}
}

// With --drain the runs of a worker end before it does, and it takes no others.
func TestTemporalWorkerDrains(t *testing.T) {
	t.Parallel()
	const n, turns = 4, 6
	p := newPlaced(t, "placed_drain", turns, "300ms")
	first := p.worker(t, "first", "--drain", "10m", "--max-runs", fmt.Sprint(n+1)) // the queue of its host takes one
	p.begin(t, "marks", n)
	await(t, p.store, "the first calls", func() bool { return len(p.ledger(t)) >= n })
	later := p.begin(t, "marks", n)
	code, log := first.stopped(t, syscall.SIGTERM)
	if s := p.states(t); code != 0 || s[journal.Ended] < n || s[journal.Ended] == 2*n {
		t.Errorf("the worker exits with %d and leaves the runs %v, want %d ended and the others queued: %s", code, s, n, log)
	}
	p.worker(t, "second")
	p.awaits(t, journal.Ended, n+len(later))
	if c, effects := p.count(t), p.once(t); effects != 2*n*turns || c.cut != 0 {
		t.Errorf("%d effects, %d calls cut off", effects, c.cut)
	}
}

// counted is a model that counts its complete answers to each request.
type counted struct {
	mu      sync.Mutex
	answers map[string]int
	turns   int
}

func (m *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	input, turn := "", 0
	for _, message := range asked.Messages {
		switch message.Role {
		case "user":
			input = fmt.Sprint(message.Content)
		case "assistant":
			turn++
		}
	}
	select {
	case <-time.After(200 * time.Millisecond):
	case <-r.Context().Done():
		return
	}
	message, finish := map[string]any{"role": "assistant", "content": "done"}, "stop"
	if turn < m.turns {
		message, finish = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": fmt.Sprintf("call_%d", turn), "type": "function", "function": map[string]any{"name": "mark", "arguments": fmt.Sprintf(`{"n": %d}`, turn)},
		}}}, "tool_calls"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk, err := json.Marshal(map[string]any{
		"id": "x", "object": "chat.completion.chunk", "model": "m",
		"choices": []any{map[string]any{"index": 0, "delta": message, "finish_reason": finish}},
	})
	if err == nil {
		_, err = fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", chunk)
	}
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err != nil || r.Context().Err() != nil {
		return // the caller has left
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[fmt.Sprintf("%s, turn %d", input, turn)]++
}

// Three workers are restarted one after the other while they have runs. No run is lost,
// and no model call that had answered is repeated.
func TestTemporalRollingRestart(t *testing.T) {
	const n, turns = 24, 10
	model := &counted{answers: map[string]int{}, turns: turns}
	served := httptest.NewServer(model)
	defer served.Close()
	t.Setenv("OPENAI_BASE_URL", served.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "sk-of-the-test-0123456789abcdef")
	p := newPlaced(t, "placed_rolling", 1, "0s")
	p.write(t, "counted.yaml", strings.NewReplacer("name: marks", "name: counted", "scripted/script.yaml", "openai-chat/m").Replace(agent))
	workers := map[string]*worker{}
	for _, name := range []string{"one", "two", "three"} {
		workers[name] = p.worker(t, name, "--max-runs", "12")
	}
	for i := range n {
		if status, text := p.post(t, "/v1/runs", fmt.Sprintf(`{"agent": "counted", "input": "run %d"}`, i)); status != http.StatusCreated {
			t.Fatalf("status %d: %s", status, text)
		}
	}
	var signals []time.Time
	for i, name := range []string{"one", "two", "three"} {
		await(t, p.store, "calls in the workers", func() bool { return len(p.ledger(t)) >= (2*i+1)*n })
		signals = append(signals, time.Now())
		if code, log := workers[name].stopped(t, syscall.SIGTERM); code != 0 {
			t.Errorf("worker %s exits with %d: %s", name, code, log)
		}
		workers[name] = p.worker(t, name+"-again", "--max-runs", "12")
	}
	p.awaits(t, journal.Ended, n)
	c, effects := p.count(t), p.once(t)
	model.mu.Lock()
	defer model.mu.Unlock()
	twice := 0
	for _, times := range model.answers {
		twice += times - 1
	}
	// A worker stops a call that goes on for longer than 4 s, which takes a busy machine.
	early := slices.ContainsFunc(c.stopped, func(at time.Time) bool {
		i, _ := slices.BinarySearchFunc(signals, at, time.Time.Compare)
		return i > 0 && at.Sub(signals[i-1]) < 4*time.Second
	})
	if twice > len(c.stopped)+c.taken || early && c.taken == 0 {
		t.Errorf("%d answers twice; calls of models were stopped at %v, and the workers at %v", twice, c.stopped, signals)
	}
	if c.answers != n*(turns+1) || effects > n*turns || effects < n*turns-c.cut || c.resumed <= n {
		t.Errorf("%d answers, %d effects, %d calls cut off, %d times resumed; want %d answers and %d effects", c.answers, effects, c.cut, c.resumed, n*(turns+1), n*turns)
	}
	t.Logf("%d runs were resumed %d times; %d answers, %d of them twice; %d calls of models stopped and %d of tools; %d runs taken over", c.runs, c.resumed, c.answers, twice, len(c.stopped), c.cut, c.taken)
}

// Two workers drive what they may. The list and the server say why the other runs are
// queued, until runs end, and the second time until there is a worker with room.
func TestTemporalQueuedRunsSayThatNoWorkerHasRoom(t *testing.T) {
	t.Parallel()
	const n = 6
	p := newPlaced(t, "placed_full", 1, "0s")
	p.write(t, "mark.sh", "until test -e go-on; do sleep 0.2; done\necho \"$PAWL_CALL_ID\" >> ledger\n")
	p.worker(t, "one", "--max-runs", "2")
	p.worker(t, "two", "--max-runs", "2")
	for round := 1; round <= 2; round++ {
		p.begin(t, "marks", n)
		await(t, p.store, "two runs that say why they are queued", func() bool {
			var list struct{ Items []journal.Run }
			if err := json.Unmarshal([]byte(metrics(t, p.url+"/v1/runs?state=queued")), &list); err != nil {
				t.Fatal(err)
			}
			return len(list.Items) >= n-4 && !slices.ContainsFunc(list.Items, func(r journal.Run) bool { return r.Detail != "no worker has room" })
		})
		if out, err := p.command("runs").CombinedOutput(); err != nil || strings.Count(string(out), "queued: no worker has room") < n-4 {
			t.Errorf("round %d: the list says %v: %s", round, err, out)
		}
		if round == 2 {
			p.worker(t, "three", "--max-runs", "16")
			p.awaits(t, journal.Queued, 0)
		}
		p.write(t, "go-on", "")
		p.awaits(t, journal.Ended, round*n)
		if err := os.Remove(filepath.Join(p.dir, "go-on")); err != nil {
			t.Fatal(err)
		}
	}
	if effects := p.once(t); effects != 2*n {
		t.Errorf("%d effects, want %d", effects, 2*n)
	}
}
