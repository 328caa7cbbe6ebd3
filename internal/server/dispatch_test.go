package server_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
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

// The worker that drives a run first decides where the run works. From then on no other
// worker drives it, and the server, which drives nothing, says what the run waits for.
func TestFirstWorkerDecidesWhereARunWorks(t *testing.T) {
	repo, n, store := repository(t), &noted{}, memory.New(nil)
	clones := map[string]string{"api": t.TempDir(), "one": t.TempDir(), "two": t.TempDir()}
	on := func(host string, dir string) func(o *server.Options) {
		return func(o *server.Options) {
			o.Agents = cmp.Or(dir, o.Agents)
			o.Launch.Here = workplace.Here{Host: host, Workspace: t.TempDir(), Clones: clones[host], Env: os.Environ()}
			if host == "api" {
				o.Dispatcher = n
			}
		}
	}
	s, dir := newServerWith(t, store, asksTwice, on("api", ""))
	api := local{s, t}
	_, stop := serving(t, s)
	defer stop()
	one, _ := newServerWith(t, store, nil, on("one", dir))
	two, _ := newServerWith(t, store, nil, on("two", dir))
	for workspace, waits := range map[string]string{
		`{}`:                       "no worker has the host one",
		`{"host": "one"}`:          "no worker has the host one",
		`{"repo": "` + repo + `"}`: "no worker has the clone of " + repo + " on the host one",
	} {
		run := gets[journal.Run](api, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "asks", "input": "go", "workspace": `+workspace+`}`)
		drives := func(s *server.Server, want func(journal.Run) bool) journal.Run {
			t.Helper()
			row, _, err := s.Drive(t.Context(), run.ID, false)
			if err != nil || !want(row) {
				t.Fatalf("%s: the run is %s (%s): %v", workspace, row.State, row.Detail, err)
			}
			return row
		}
		if strings.Contains(workspace, "host") { // it is not the other's from the start
			drives(two, is(journal.Waiting, waits))
		}
		drives(one, is(journal.Parked, string(event.ParkApproval)))
		started, _, err := drive.Began(t.Context(), store, run.ID)
		if err != nil || started.Place.Host != "one" || started.Workspace == "" {
			t.Fatalf("%s: %+v in %q, %v", workspace, started.Place, started.Workspace, err)
		}
		questions := gets[struct{ Items []struct{ ID string } }](api, http.StatusOK, http.MethodGet, "/v1/runs/"+run.ID+"/questions", "").Items
		gets[struct{}](api, http.StatusOK, http.MethodPost, "/v1/runs/"+run.ID+"/approve", `{"callId": "`+questions[0].ID+`"}`)
		before := machine{t: t, store: store}.until(run.ID, is(journal.Waiting, waits)) // said without a worker
		if row := drives(two, is(journal.Waiting, waits)); row.Seq != before.Seq {
			t.Errorf("%s: a worker without the place added events", workspace)
		}
		drives(one, is(journal.Ended, string(event.ReasonFinalAnswer)))
		if _, err := os.Stat(filepath.Join(started.Workspace, "marked")); err != nil {
			t.Errorf("%s: %v", workspace, err)
		}
		next := gets[journal.Run](api, http.StatusCreated, http.MethodPost, "/v1/runs/"+run.ID+"/continue", `{"text": "again"}`)
		if again, _, err := drive.Began(t.Context(), store, next.ID); err != nil || again.Place != started.Place || again.Workspace != started.Workspace {
			t.Errorf("%s: the run that continues it works on %s in %q, %v", workspace, again.Place, again.Workspace, err)
		}
	}
	for host, want := range map[string]int{"api": 0, "one": 1, "two": 0} {
		if made, err := os.ReadDir(clones[host]); err != nil || len(made) != want {
			t.Errorf("%s has %d clones, want %d: %v", host, len(made), want, err)
		}
	}
}

// registering is a store that reports each registration of a driver.
type registering struct {
	*memory.Store
	done chan journal.Driver
}

func (r registering) Register(ctx context.Context, d journal.Driver, ttl time.Duration) error {
	err := r.Store.Register(ctx, d, ttl)
	r.done <- d
	return err
}

// Two runs are queued. The list and the runs say why no worker takes them: there is none,
// or both workers are full.
func TestQueuedRunSaysWhyNoWorkerTakesIt(t *testing.T) {
	store := registering{memory.New(nil), make(chan journal.Driver, 16)}
	s, dir := newServerWith(t, store, asksTwice, func(o *server.Options) { o.Dispatcher = &noted{} })
	api := local{s, t}
	first, _ := api.begin("asks")
	second, _ := api.begin("asks")
	var leaves []func()
	announces := func(worker *server.Server, full bool) {
		worker.SetFull(full)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() { defer close(left); worker.Announce(ctx) }()
		<-store.done
		leaves = append(leaves, func() { leave(); <-left })
	}
	worker := func() *server.Server {
		w, _ := newServerWith(t, store, nil, func(o *server.Options) {
			o.Agents, o.Launch.Here = dir, workplace.Here{Host: "here", Workspace: t.TempDir()}
		})
		return w
	}
	one, two := worker(), worker()
	for _, c := range []struct {
		live []bool // whether each of the workers that are there is full
		want string
	}{
		{nil, "no worker is there"}, {[]bool{true}, "no worker has room"}, {[]bool{false}, ""},
		{[]bool{true, false}, ""}, {[]bool{true, true}, "no worker has room"},
	} {
		for i, full := range c.live {
			announces([]*server.Server{one, two}[i], full)
		}
		list := gets[struct{ Items []journal.Run }](api, http.StatusOK, http.MethodGet, "/v1/runs?state=queued", "").Items
		for _, id := range []string{first.ID, second.ID} {
			list = append(list, gets[journal.Run](api, http.StatusOK, http.MethodGet, "/v1/runs/"+id, ""))
		}
		for _, r := range list {
			if len(list) != 4 || r.State != journal.Queued || r.Detail != c.want {
				t.Errorf("workers %v: run %s is %s (%s), want queued (%s)", c.live, r.ID, r.State, r.Detail, c.want)
			}
		}
		for _, leave := range leaves {
			leave()
			<-store.done
		}
		leaves = nil
	}
	if _, _, err := one.Drive(t.Context(), first.ID, false); err != nil {
		t.Fatal(err)
	}
	if r := gets[journal.Run](api, http.StatusOK, http.MethodGet, "/v1/runs/"+first.ID, ""); r.Detail != string(event.ParkApproval) {
		t.Errorf("a driven run is %s (%s)", r.State, r.Detail)
	}
}

// A server with a dispatcher clones no repository, also when two of its runs are resumed
// before a worker has driven them. The worker clones one for each.
func TestServerWithADispatcherClonesNothing(t *testing.T) {
	repo, n, store := repository(t), &noted{}, memory.New(nil)
	clones := map[string]string{"api": t.TempDir(), "worker": t.TempDir()}
	on := func(host string) func(o *server.Options) {
		return func(o *server.Options) {
			o.Launch.Here = workplace.Here{Host: host, Workspace: t.TempDir(), Clones: clones[host], Env: os.Environ()}
		}
	}
	s, dir := newServerWith(t, store, asksTwice, func(o *server.Options) { on("api")(o); o.Dispatcher = n })
	worker, _ := newServerWith(t, store, nil, func(o *server.Options) { on("worker")(o); o.Agents = dir })
	made := func(host string) int {
		dirs, err := os.ReadDir(clones[host])
		if err != nil {
			t.Fatal(err)
		}
		return len(dirs)
	}
	var runs []journal.Run
	for range 2 {
		run := gets[journal.Run](local{s, t}, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "asks", "input": "go", "workspace": {"repo": "`+repo+`"}}`)
		w := recorded(local{s, t}, http.MethodPost, "/v1/runs/"+run.ID+"/resume", "")
		started, fresh, err := drive.Began(t.Context(), store, run.ID)
		if w.Code/100 != 2 || made("api") != 0 || !fresh || started.Place.Host != "" || started.Workspace != "" || err != nil {
			t.Errorf("status %d: the server that drives nothing has %d clones; the run works on %+v in %q, %v", w.Code, made("api"), started.Place, started.Workspace, err)
		}
		runs = append(runs, run)
	}
	if len(n.runs) != 4 || n.resumed[0] || !n.resumed[1] || !n.resumed[3] {
		t.Errorf("dispatched %v with resume %v, want each run at its start and when it is resumed", n.runs, n.resumed)
	}
	for i, run := range runs {
		if _, _, err := worker.Drive(t.Context(), run.ID, true); err != nil || made("worker") != i+1 || made("api") != 0 {
			t.Errorf("%d clones at the worker, %d at the server: %v; want %d and none", made("worker"), made("api"), err, i+1)
		}
	}
}
