package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

func newMachine(string) (machine.Machine, error) { return agent.New(), nil }

// rig is an engine on a store, with what the runs of a test are made of.
type rig struct {
	*engine.Engine
	t     *testing.T
	store journal.Store
	cfg   agent.Config
	env   perform.Env
	// forged says that the test has written events of its own.
	forged bool
}

// newRig makes a rig on a memory journal, or on the store that is given.
func newRig(t *testing.T, stores ...journal.Store) *rig {
	t.Helper()
	var store journal.Store = memory.New(nil)
	if len(stores) > 0 {
		store = stores[0]
	}
	r := &rig{Engine: engine.New(store, newMachine, engine.Options{}), t: t, store: store}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if !r.forged {
			r.rowsFit()
		}
	})
	r.cfg.Policy.Declared = true
	return r.tools()
}

// rowsFit holds what lists show of each run against its events. Journals that a
// test has damaged itself are left out.
func (r *rig) rowsFit() {
	r.t.Helper()
	rows, err := r.store.Runs(context.Background(), journal.Filter{})
	if err != nil {
		return
	}
	for _, row := range rows {
		_, err := journal.Verify(context.Background(), r.store, row.ID, "")
		if damage, ok := errors.AsType[*journal.CorruptError](err); ok && damage.Seq == 0 {
			r.t.Error(err)
		}
	}
}

// other is a second engine, as of another process, on the same store.
func (r *rig) other() *rig {
	o := newRig(r.t, r.store)
	o.cfg, o.env = r.cfg, r.env
	return o
}

func (r *rig) model(m llm.Model) *rig {
	r.cfg.Targets = []agent.Target{{Model: "test/model", Price: &llm.Price{}}}
	r.env.Model = func(string) (llm.Model, string, error) { return m, "model", nil }
	return r
}

func (r *rig) turns(turns ...scripted.Turn) *rig { return r.model(scripted.New("test", turns...)) }

func (r *rig) tools(tools ...tool.Tool) *rig {
	r.t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.env.Tools, r.cfg.Tools = set, set.Defs()
	return r
}

// gate makes every call of the named tools wait for an approval.
func (r *rig) gate(names ...string) *rig {
	r.cfg.Policy = policy.Rules{Declared: true, Gates: names}
	return r
}

func (r *rig) asker(ask func(context.Context, event.Question) (event.Resolution, error)) *rig {
	r.env.Ask = ask
	return r
}

// started is the first event of the rig's run.
func (r *rig) started() event.RunStarted {
	r.t.Helper()
	started, err := agent.Start(r.cfg.WithDefaults(), llm.UserText("do it"))
	if err != nil {
		r.t.Fatal(err)
	}
	return started
}

func (r *rig) start(ctx context.Context) *engine.Run {
	r.t.Helper()
	run, err := r.Start(ctx, r.started(), r.env)
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

func (r *rig) resume(id string) *engine.Run {
	r.t.Helper()
	run, err := r.Resume(r.t.Context(), id, func(event.RunStarted) (perform.Env, error) { return r.env, nil })
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

func (r *rig) send(c journal.Command) {
	r.t.Helper()
	if err := r.Send(r.t.Context(), c); err != nil {
		r.t.Fatal(err)
	}
}

// journal is the run's journal, decoded.
func (r *rig) journal(id string) []event.Event {
	r.t.Helper()
	records, err := r.store.Records(context.Background(), id, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	events := make([]event.Event, len(records))
	for i, rec := range records {
		e, err := event.Decode(rec.Body)
		if err != nil {
			r.t.Fatal(err)
		}
		events[i], events[i].Pos = *e, rec.Pos
	}
	return events
}

// journalText is the run's journal as it is stored.
func (r *rig) journalText(id string) string {
	r.t.Helper()
	records, err := r.store.Records(context.Background(), id, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	var b strings.Builder
	for _, rec := range records {
		b.Write(rec.Body)
		b.WriteByte('\n')
	}
	return b.String()
}

// wait waits for a run's state and fails on an engine's failure.
func wait(t *testing.T, run *engine.Run) machine.State {
	t.Helper()
	s, err := run.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func outcome(t *testing.T, run *engine.Run) event.Outcome {
	t.Helper()
	s := wait(t, run)
	if s.Outcome == nil {
		t.Fatalf("the run did not end: %+v", s)
	}
	return *s.Outcome
}

func parkedAs(t *testing.T, run *engine.Run, reason event.ParkReason) {
	t.Helper()
	if s := wait(t, run); s.Phase != machine.Parked || s.Parked.Reason != reason {
		t.Fatalf("state %+v, want parked as %s", s, reason)
	}
}

// drain ranges over a run until it is not driven any more.
func drain(t *testing.T, run *engine.Run, deltas bool) []event.Event {
	t.Helper()
	var events []event.Event
	for e, err := range run.Events(context.Background(), deltas) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// heard starts a run and gives all that its subscriber hears. No model is asked
// before the subscriber listens: who comes late hears no deltas.
func (r *rig) heard() []event.Event {
	r.t.Helper()
	listening, model := make(chan struct{}), r.env.Model
	r.env.Model = func(target string) (llm.Model, string, error) { <-listening; return model(target) }
	var events []event.Event
	for e, err := range r.start(r.t.Context()).Events(r.t.Context(), true) {
		if err != nil {
			r.t.Fatal(err)
		}
		if e.Seq == 1 {
			close(listening)
		}
		events = append(events, e)
	}
	return events
}

func names(events []event.Event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = string(e.Type())
	}
	return out
}

func count(events []event.Event, name string) int {
	n := 0
	for _, got := range names(events) {
		if got == name {
			n++
		}
	}
	return n
}

func results(events []event.Event) []event.ToolResult {
	var out []event.ToolResult
	for _, e := range events {
		if d, ok := e.Data.(event.ToolResult); ok {
			out = append(out, d)
		}
	}
	return out
}

// whole checks what must be true of every journal that has ended: numbers
// without gaps, an unbroken chain, one result per call, one terminal event.
func (r *rig) whole(id string) []event.Event {
	r.t.Helper()
	records, err := r.store.Records(context.Background(), id, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	events, prev := r.journal(id), ""
	settled := map[string]int{}
	for i, e := range events {
		if e.Seq != int64(i+1) || e.Prev != prev {
			r.t.Errorf("event %d has seq %d and prev %q, want prev %q", i+1, e.Seq, e.Prev, prev)
		}
		prev = event.Hash(records[i].Body)
		switch d := e.Data.(type) {
		case event.ModelResponse:
			for _, c := range d.ToolCalls {
				settled[c.CallID] += 0
			}
		case event.ToolResult:
			settled[d.CallID]++
		}
	}
	for call, n := range settled {
		if n != 1 {
			r.t.Errorf("call %s has %d results", call, n)
		}
	}
	if n := count(events, "run.completed"); n != 1 || events[len(events)-1].Type() != "run.completed" {
		r.t.Errorf("%d terminal events; the last events are %v", n, names(events[max(0, len(events)-3):]))
	}
	return events
}

func call(name, args string) scripted.Call {
	return scripted.Call{Name: name, Arguments: json.RawMessage(args)}
}

func calls(pairs ...string) []scripted.Call {
	var out []scripted.Call
	for pair := range slices.Chunk(pairs, 2) {
		out = append(out, call(pair[0], pair[1]))
	}
	return out
}

// toolFunc is a tool without arguments.
func toolFunc(name string, run func(context.Context) (string, error)) tool.Tool {
	return tool.New(name, "A tool of the test's.", func(ctx context.Context, _ struct{}) (string, error) { return run(ctx) })
}

// endsRun makes the tool's result the run's.
func endsRun(t tool.Tool) tool.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		r, err := run(ctx, c)
		r.EndsRun = true
		return r, err
	}
	return t
}

// blocking is a tool that runs until its context ends, and says so.
func blocking(name string, started chan<- struct{}) tool.Tool {
	return toolFunc(name, func(ctx context.Context) (string, error) {
		started <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
}

// modelFunc is a model that streams.
type modelFunc func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error)

func (f modelFunc) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return f(ctx, req, func(llm.Delta) {})
}

func (f modelFunc) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	return f(ctx, req, emit)
}

func said(text string) *llm.Response {
	return &llm.Response{Parts: llm.Parts{llm.Text{Text: text}}, Finish: llm.FinishEnd}
}

// watched is a store that a test can look into and disturb. Hooks run before
// the operation, which does not happen when they return an error.
type watched struct {
	journal.Store
	mu       sync.Mutex
	onAppend func(journal.Batch) error
	appended func(journal.Batch)
	onRenew  func() error
	appends  int
}

func (w *watched) Append(ctx context.Context, b journal.Batch) (int64, error) {
	w.mu.Lock()
	w.appends++
	hook, appended := w.onAppend, w.appended
	w.mu.Unlock()
	if hook != nil {
		if err := hook(b); err != nil {
			return 0, err
		}
	}
	pos, err := w.Store.Append(ctx, b)
	if appended != nil && err == nil {
		appended(b)
	}
	return pos, err
}

func (w *watched) Renew(ctx context.Context, l journal.Lease, ttl time.Duration) (journal.Lease, error) {
	w.mu.Lock()
	hook := w.onRenew
	w.mu.Unlock()
	if hook != nil {
		if err := hook(); err != nil {
			return l, err
		}
	}
	return w.Store.Renew(ctx, l, ttl)
}

// dying is a store whose process dies after so many commits, and the error of that.
func dying(commits int) (*watched, error) {
	dead := errors.New("the process dies")
	store := &watched{Store: memory.New(nil)}
	store.onAppend = func(journal.Batch) error {
		if store.count() > commits {
			return dead
		}
		return nil
	}
	return store, dead
}

func (w *watched) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.appends
}

// holds reports whether a batch carries an event of a kind.
func holds(b journal.Batch, kind string) bool {
	return slices.ContainsFunc(b.Records, func(r journal.Record) bool { return r.Type == kind })
}

// failOnce makes the first append that carries an event of a kind fail.
func failOnce(kind string, err error) func(journal.Batch) error {
	var once sync.Once
	return func(b journal.Batch) (failure error) {
		if holds(b, kind) {
			once.Do(func() { failure = err })
		}
		return failure
	}
}

func mustBe(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// argsTool is a tool with a recipient in its arguments.
func argsTool(name string, run func(args string)) tool.Tool {
	t := tool.New(name, "A tool of the test's.", func(context.Context, struct {
		To string `json:"to"`
	}) (string, error) {
		return "", nil
	})
	t.Run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		run(string(c.Args))
		return tool.Result{Output: "done"}, nil
	}
	return t
}

// accesses declares what every call of a tool touches.
func accesses(a ...event.Access) func(json.RawMessage) []event.Access {
	return func(json.RawMessage) []event.Access { return a }
}
