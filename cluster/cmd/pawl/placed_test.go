package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"github.com/pawlrun/pawl/cluster/internal/temporaltest"
	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// placed is a project whose runs Temporal places.
type placed struct {
	project
	temporal *temporaltest.Server
	store    *postgres.Store
	url      string
	// process is that of the server.
	process *exec.Cmd
	// token is what requests are sent with, "" for none, and place where runs work, "" for
	// wherever they are driven first.
	token, place string
}

// newPlaced starts Temporal and a server that drives no runs. The runs of the agent
// marks call a tool as often as turns says, and those of asks wait for an approval.
func newPlaced(t testing.TB, schema string, turns int, delay string, tokens ...string) placed {
	t.Helper()
	return newPlacedAt(t, temporaltest.New(t), schema, turns, delay, tokens...)
}

// newPlacedAt is newPlaced with a Temporal server that others use too.
func newPlacedAt(t testing.TB, at *temporaltest.Server, schema string, turns int, delay string, tokens ...string) placed {
	t.Helper()
	access := []string{"--no-auth"}
	p := placed{project: newProject(t, schema), temporal: at}
	var script strings.Builder
	for n := range turns {
		fmt.Fprintf(&script, "- {tool_calls: [{name: mark, arguments: {n: %d}}], delay: %s}\n", n, delay)
	}
	fmt.Fprintf(&script, "- {text: done, delay: %s}\n", delay)
	p.write(t, "script.yaml", script.String())
	p.write(t, "once.yaml", "- {tool_calls: [{name: mark, arguments: {n: 1}}]}\n- text: done\n")
	p.write(t, "asks.yaml", strings.NewReplacer("name: marks", "name: asks", "mark: never", "mark: always", "script.yaml", "once.yaml").Replace(agent))
	p.write(t, "mark.sh", "echo \"$PAWL_CALL_ID\" >> ledger\n")
	if len(tokens) > 0 {
		p.write(t, "tokens.yaml", strings.Join(tokens, "\n")+"\n")
		access = []string{"--tokens", "tokens.yaml"}
	}
	p.process = p.command(append([]string{"serve", "--addr", "127.0.0.1:0", "--temporal", p.temporal.Addr}, access...)...)
	p.url, _ = listens(t, p.process)
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p.store = s
	return p
}

// at returns the address of Temporal, or one at which nothing listens.
func (p placed) at() string {
	if p.temporal == nil {
		return "127.0.0.1:1"
	}
	return p.temporal.Addr
}

// worker is a process of 'pawl worker'.
type worker struct {
	*exec.Cmd
	log string
}

// worker starts a worker. All workers are on one host, as far as they know.
func (p placed) worker(t testing.TB, name string, args ...string) *worker {
	t.Helper()
	return p.workerOn(t, "here", name, args...)
}

func (p placed) workerOn(t testing.TB, host, name string, args ...string) *worker {
	t.Helper()
	w := &worker{p.command(append([]string{"worker", "--temporal", p.at()}, args...)...), filepath.Join(p.dir, name+".log")}
	log, err := os.Create(w.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	w.Env = append(w.Env, "PAWL_HOST="+host, workerName+"="+name)
	w.Stderr, w.Stdout = log, log
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if w.ProcessState == nil {
			_ = w.Process.Kill()
			_ = w.Wait()
		}
	})
	return w
}

// stopped waits for the end of a worker, and returns its exit code and its log.
func (w *worker) stopped(t *testing.T, signal os.Signal) (code int, log string) {
	t.Helper()
	if err := w.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = w.Wait()
	return w.ProcessState.ExitCode(), w.text(t)
}

// text returns the log of a worker.
func (w *worker) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(w.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// answer returns the answer to a request.
func answer(t *testing.T, r *http.Request) string {
	t.Helper()
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v: %s", a.StatusCode, err, text)
	}
	return string(text)
}

// metrics returns the metrics at an address.
func metrics(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return answer(t, r)
}

// post sends a request and returns its answer.
func (p placed) post(t testing.TB, path, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if p.token != "" {
		r.Header.Set("Authorization", "Bearer "+p.token)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

// begin starts runs of an agent, eight at once, and returns their ids.
func (p placed) begin(t testing.TB, agent string, n int) (ids []string) {
	t.Helper()
	ids = make([]string, n)
	var all sync.WaitGroup
	for starter := range min(n, 8) {
		all.Go(func() {
			for i := starter; i < n; i += 8 {
				status, answer := p.post(t, "/v1/runs", `{"agent": "`+agent+`", "input": "go", "workspace": `+cmp.Or(p.place, "{}")+`}`)
				var made struct{ ID string }
				if err := json.Unmarshal([]byte(answer), &made); status != http.StatusCreated || err != nil {
					t.Errorf("status %d, %v: %s", status, err, answer)
				}
				ids[i] = made.ID
			}
		})
	}
	all.Wait()
	return ids
}

// approve approves the one call of a run that waits for a decision.
func (p placed) approve(t *testing.T, run string) {
	t.Helper()
	var list struct {
		Items []struct{ ID string }
	}
	answer, err := http.Get(p.url + "/v1/runs/" + run + "/questions")
	if err == nil {
		err = json.NewDecoder(answer.Body).Decode(&list)
		answer.Body.Close()
	}
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d questions, %v", len(list.Items), err)
	}
	if status, text := p.post(t, "/v1/runs/"+run+"/approve", `{"callId": "`+list.Items[0].ID+`"}`); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
}

// states returns how many runs have each state.
func (p placed) states(t *testing.T) map[journal.State]int {
	t.Helper()
	rows, err := p.store.Runs(t.Context(), journal.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	n := map[journal.State]int{}
	for _, r := range rows {
		n[r.State]++
	}
	return n
}

func (p placed) awaits(t *testing.T, state journal.State, n int) {
	t.Helper()
	var last map[journal.State]int
	defer func() {
		if t.Failed() {
			t.Logf("the states were %v", last)
		}
	}()
	await(t, p.store, fmt.Sprintf("%d runs that are %s", n, state), func() bool { last = p.states(t); return last[state] == n })
}

// counts are numbers of events of all runs.
type counts struct {
	runs, answers, results, resumed int
	// cut are the results of calls that were under way when their worker left the run.
	cut int
	// taken are the resumes of runs whose worker lost its lease, and stopped the times at
	// which calls of models were stopped.
	taken   int
	stopped []time.Time
}

// count counts, and fails the test for a run that did not end well.
func (p placed) count(t *testing.T) (c counts) {
	t.Helper()
	rows, err := p.store.Runs(t.Context(), journal.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	c.runs = len(rows)
	for _, r := range rows {
		if v, err := journal.Verify(t.Context(), p.store, r.ID, r.Head); err != nil {
			t.Errorf("run %s, %+v: %v", r.ID, v, err)
		}
		var o event.Outcome
		if err := json.Unmarshal(r.Outcome, &o); err != nil || !o.OK {
			t.Errorf("run %s is %s (%s) with %s: %v", r.ID, r.State, r.Detail, r.Outcome, err)
		}
		records, err := p.store.Records(t.Context(), r.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records {
			e, err := event.Decode(record.Body)
			if err != nil {
				t.Fatal(err)
			}
			switch d := e.Data.(type) {
			case event.ToolResult:
				c.results++
				if d.ErrorType != "" {
					c.cut++
				}
			case event.ModelResponse:
				c.answers++
			case event.ModelAttemptFailed:
				if d.Class == llm.ClassInterrupted {
					c.stopped = append(c.stopped, e.Time)
				}
			case event.RunResumed:
				c.resumed++
				if d.Recovered && e.Seq > 2 { // the second event begins a run that was queued
					c.taken++
				}
			}
		}
	}
	return c
}

// once fails the test for a key that the ledger has twice, and returns how many it has.
func (p placed) once(t *testing.T) int {
	t.Helper()
	keys := p.ledger(t)
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			t.Errorf("call %s had its effect twice", keys[i])
		}
	}
	return len(slices.Compact(keys))
}

// history returns the events that Temporal has of a run.
func (p placed) history(t *testing.T, run string) (events []*historypb.HistoryEvent) {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: p.temporal.Addr})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pages := c.GetWorkflowHistory(t.Context(), run, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for pages.HasNext() {
		e, err := pages.Next()
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// drives checks the sizes in a run's history: at most 20 events for each drive, and no
// event of more than 1 KiB. It returns the number of drives.
func (p placed) drives(t *testing.T, run string) int {
	t.Helper()
	events := p.history(t, run)
	drives, most := 0, 0
	for _, e := range events {
		if e.EventType == enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			drives++
		}
		most = max(most, proto.Size(e))
	}
	if drives == 0 || len(events) > 20*drives || most > 1024 {
		t.Errorf("run %s: %d events for %d drives, the largest of %d bytes; want at most 20 for each, of 1,024", run, len(events), drives, most)
	}
	t.Logf("run %s: %d drives, %d events, the largest of %d bytes", run, drives, len(events), most)
	return drives
}
