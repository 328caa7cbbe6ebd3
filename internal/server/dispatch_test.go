package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/host/workplace"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// noted is a dispatcher that records its calls.
type noted struct {
	mu      sync.Mutex
	runs    []string
	resumed []bool
	full    time.Duration
	broken  error
}

func (n *noted) Dispatch(_ context.Context, run string, resume bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs, n.resumed = append(n.runs, run), append(n.resumed, resume)
	return n.broken
}

func (n *noted) Full(context.Context) (time.Duration, error) { return n.full, nil }
func (n *noted) Run(ctx context.Context)                     { <-ctx.Done() }

var asksTwice = map[string]string{
	"asks.yaml":   "identity: {name: asks}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools:\n  allow: []\n  approvals: {mark: always}\n  commands: [{name: mark, description: Marks., args: {type: object}, command: [touch, marked]}]\n",
	"script.yaml": "- tool_calls: [{name: mark, arguments: {}}]\n- text: done\n",
}

// dispatching is a server that drives nothing, with a worker on the same journal but on
// another machine, in a directory of its own.
func dispatching(t *testing.T, n *noted) (api local, worker *server.Server, here string) {
	store := memory.New(nil)
	s, dir := newServerWith(t, store, asksTwice, func(o *server.Options) { o.Dispatcher, o.Launch.Here.Host = n, "api" })
	here = t.TempDir()
	worker, _ = newServerWith(t, store, nil, func(o *server.Options) {
		o.Agents, o.Launch.Here = dir, workplace.Here{Host: "worker", Workspace: here}
	})
	return local{s, t}, worker, here
}

func TestServerWithADispatcherDrivesNoRun(t *testing.T) {
	n := &noted{}
	api, worker, here := dispatching(t, n)
	run, path := api.begin("asks")
	if run.State != journal.Queued || run.Owner != "" {
		t.Fatalf("the run is %s and held by %q, want it queued and free", run.State, run.Owner)
	}
	row, wake, err := worker.Drive(t.Context(), run.ID, false)
	if err != nil || row.State != journal.Parked || !wake.IsZero() {
		t.Fatalf("a worker leaves the run %s until %v: %v; want it parked for its question", row.State, wake, err)
	}
	if again, _, err := worker.Drive(t.Context(), run.ID, false); err != nil || again.Seq != row.Seq {
		t.Errorf("a drive without news added events: %d, want %d: %v", again.Seq, row.Seq, err)
	}
	questions := gets[struct{ Items []struct{ ID string } }](api, http.StatusOK, http.MethodGet, "/v1/questions", "").Items
	gets[struct{}](api, http.StatusOK, http.MethodPost, path+"/approve", `{"callId": "`+questions[0].ID+`"}`)
	if len(n.runs) != 2 || n.runs[1] != run.ID || !n.resumed[1] {
		t.Errorf("dispatched %v with resume %v, want the run at its start and after the decision", n.runs, n.resumed)
	}
	row, _, err = worker.Drive(t.Context(), run.ID, false)
	if err != nil || row.State != journal.Ended || row.Detail != "final_answer" {
		t.Errorf("after the decision the run is %s (%s): %v, want it ended with its answer", row.State, row.Detail, err)
	}
	if _, err := os.Stat(filepath.Join(here, "marked")); err != nil {
		t.Errorf("the run did not work in the directory of its worker: %v", err)
	}
	api.refuses(http.StatusUnprocessableEntity, "bad-agent", http.MethodPost, "/v1/runs", `{"agent": "asks", "workspace": {"host": "gpu"}, "input": "go"}`)
}

func TestRunIsQueuedWhileItsDispatcherIsDown(t *testing.T) {
	n := &noted{broken: errors.New("nothing listens")}
	api, worker, _ := dispatching(t, n)
	run, path := api.begin("asks")
	if run.State != journal.Queued {
		t.Errorf("the run is %s, want it queued", run.State)
	}
	if _, _, err := worker.Drive(t.Context(), run.ID, false); err != nil {
		t.Fatal(err)
	}
	api.refuses(http.StatusServiceUnavailable, "unavailable", http.MethodPost, path+"/resume", "")
}

func TestStartBeyondTheQueueIsRefused(t *testing.T) {
	n := &noted{full: 7 * time.Second}
	api, _, _ := dispatching(t, n)
	w := recorded(api, http.MethodPost, "/v1/runs", `{"agent": "asks", "input": "go"}`)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "7" || len(n.runs) != 0 {
		t.Errorf("status %d, Retry-After %q and %d runs, want 429, 7 and none", w.Code, w.Header().Get("Retry-After"), len(n.runs))
	}
}

func recorded(l local, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	l.serve(w, method, path, body)
	return w
}

// A run that waits for long leaves its worker, and says when it is due; so does the same
// run when it is driven for the second time.
func TestDriveLeavesARunThatWaitsForLong(t *testing.T) {
	store := memory.New(nil)
	files := map[string]string{
		"slow.yaml":   "identity: {name: slow}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: []}\n",
		"script.yaml": "- error: {status: 429, class: throttled, message: busy, retry_after: 50}\n- text: done\n",
	}
	api, dir := newServerWith(t, store, files, func(o *server.Options) { o.Dispatcher = &noted{} })
	worker, _ := newServerWith(t, store, nil, func(o *server.Options) {
		o.Agents, o.Launch.Here = dir, workplace.Here{Host: "worker", Workspace: t.TempDir()}
	})
	run, _ := local{api, t}.begin("slow")
	for range 2 {
		row, wake, err := worker.Drive(t.Context(), run.ID, false)
		if err != nil || row.Detail != "interrupted" || wake.IsZero() {
			t.Fatalf("the run is %s (%s) until %v: %v; want it left until its retry", row.State, row.Detail, wake, err)
		}
	}
}
