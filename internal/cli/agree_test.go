package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/compare"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/server/agui"
	"github.com/pawlrun/pawl/internal/signals"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
)

// recordedTree is a recorded run with those below it: the events of the whole tree as they
// came, and those of each run.
type recordedTree struct {
	all   []*event.Event
	runs  []string
	of    map[string][]*event.Event
	views map[string]*view.View
}

// recordedTrees are the recorded runs of every kind by name. The models of the records cost
// nothing, so each token is given a price that a float adds up without an error.
func recordedTrees(t *testing.T) map[string]*recordedTree {
	t.Helper()
	paths, err := filepath.Glob("../view/testdata/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatal("no journals are recorded", err)
	}
	trees := map[string]*recordedTree{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r := &recordedTree{of: map[string][]*event.Event{}, views: map[string]*view.View{}}
		for line := range bytes.Lines(text) {
			e, err := event.Decode(line)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			r.add(e)
		}
		trees[strings.TrimSuffix(filepath.Base(path), ".jsonl")] = r
	}
	return trees
}

func (r *recordedTree) add(e *event.Event) {
	if d, forked := e.Data.(event.RunForked); forked { // the run before it is not of the tree
		r.of[e.Run], r.views[e.Run], r.runs = r.of[d.From], r.views[d.From], []string{e.Run}
	}
	e.Data = priced(e.Data)
	if r.of[e.Run] == nil {
		r.runs, r.views[e.Run] = append(r.runs, e.Run), &view.View{}
	}
	r.all, r.of[e.Run] = append(r.all, e), append(r.of[e.Run], e)
	r.views[e.Run].Add(e)
}

func (r *recordedTree) root() string { return r.runs[0] }

func priced(data event.Data) event.Data {
	usd := func(u llm.Usage) float64 { return float64(u.Input)/1024 + float64(u.Output)/256 }
	outcome := func(o event.Outcome) event.Outcome {
		if o.Cost != nil {
			o.Cost = &llm.Cost{USD: usd(o.Usage), Priced: true}
		}
		return o
	}
	switch d := data.(type) {
	case event.ModelResponse:
		d.Cost = llm.Cost{USD: usd(d.Usage), Priced: true}
		return d
	case event.ModelAttemptFailed:
		d.Cost = llm.Cost{USD: usd(d.Usage), Priced: true}
		return d
	case event.BudgetCommitted:
		if d.Usage != nil {
			d.USD, d.Priced = usd(*d.Usage), true
		}
		return d
	case event.RunCompleted:
		d.Outcome = outcome(d.Outcome)
		return d
	case event.ChildFinished:
		d.Outcome = outcome(d.Outcome)
		return d
	}
	return data
}

// session is a session whose journal holds the runs.
func (r *recordedTree) session(t *testing.T) *session {
	t.Helper()
	store := memory.New(time.Now)
	for _, run := range r.runs {
		var b journal.Batch
		row := journal.Run{ID: run, Root: r.root(), Depth: 1}
		b.Status.State = journal.Running
		for i, e := range r.of[run] {
			stored := *e
			stored.Run, stored.Seq = run, int64(i)+1
			body, err := event.Encode(&stored)
			if err != nil {
				t.Fatal(err)
			}
			switch d := e.Data.(type) {
			case event.RunStarted:
				row.Kind, row.Name, row.Parent, row.Created = d.Kind, d.Name, d.Parent, e.Time
				if row.Parent != "" {
					row.Depth = 2
				}
			case event.CycleStart:
				b.Status.Cycles = d.Cycle
			case event.RunParked:
				b.Status.State, b.Status.Detail = journal.Parked, string(d.Reason)
			case event.RunResumed:
				b.Status.State, b.Status.Detail = journal.Running, ""
			case event.RunCompleted:
				b.Status.State, b.Status.Detail = journal.Ended, string(d.Outcome.Reason)
				if b.Status.Outcome, err = json.Marshal(d.Outcome); err != nil {
					t.Fatal(err)
				}
			}
			b.Records, b.Time = append(b.Records, journal.Record{Run: run, Seq: stored.Seq, Type: string(e.Type()), Body: body}), e.Time
			b.Head = event.Hash(body)
		}
		b.Release = true
		if _, _, err := store.Create(t.Context(), row, b); err != nil {
			t.Fatal(err)
		}
	}
	e := engine.New(store, versions.Make, engine.Options{})
	return &session{store: store, engine: e, controller: control.New(store, e)}
}

// figures are what every surface says of a run.
type figures struct {
	name  string
	state view.State
	in    int64
	out   int64
	usd   float64
}

func figuresOf(name string, state view.State, u llm.Usage, c *llm.Cost) figures {
	f := figures{name: name, state: state, in: u.Input, out: u.Output}
	if c != nil {
		f.usd = c.USD
	}
	return f
}

func entryFigures(n *view.Entry) figures { return figuresOf(n.Name, n.State, n.Usage, n.Cost) }

// stateFor is the state of a run that has this status. What a limit stopped may be all
// right, as a loop is that did its iterations.
func stateFor(status string, ok bool) view.State {
	if status == string(event.StatusStopped) && ok {
		return view.Done
	}
	return map[string]view.State{
		string(event.StatusCompleted): view.Done, string(event.StatusFailed): view.Failed, string(event.StatusStopped): view.Failed,
		string(event.StatusCancelled): view.Cancelled, string(journal.Parked): view.Waiting, string(journal.Running): view.Running,
	}[status]
}

// outcomeIn is the outcome in a row, the zero value for a run that goes on.
func outcomeIn(t *testing.T, row journal.Run) (o event.Outcome) {
	t.Helper()
	if row.Outcome != nil {
		if err := json.Unmarshal(row.Outcome, &o); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// Each recorded run of each kind has the same names, states, tokens and costs on every
// surface: runs show, log, tree and diff, the live terminal, AG-UI, spans, and the entries
// that HTTP shows.
func TestEverySurfaceSaysTheSameOfARun(t *testing.T) {
	kinds, spent, failed := map[string]bool{}, 0, 0
	for name, r := range recordedTrees(t) {
		t.Run(name, func(t *testing.T) {
			s := r.session(t)
			for _, run := range r.runs {
				want := r.views[run].Run()
				row, err := s.store.Run(t.Context(), run)
				if err != nil {
					t.Fatal(err)
				}
				kinds[row.Kind] = true
				if want.Usage.Output > 0 && want.Cost.USD > 0 {
					spent++
				}
				if want.State == view.Failed {
					failed++
				}
				r.agreesWithItself(t, run)
				r.agreesWithShow(t, s, row)
				r.agreesWithDiff(t, s, row)
				r.agreesWithLog(t, run)
			}
			r.agreesWithTree(t, s)
			r.agreesWithTerminal(t)
			r.agreesWithAGUI(t)
			r.agreesWithSpans(t)
		})
	}
	for _, kind := range []string{"Agent", "Team", "Workflow", "Loop", "Goal"} {
		if !kinds[kind] {
			t.Errorf("no %s is recorded", kind)
		}
	}
	if spent < 20 || failed < 3 {
		t.Errorf("%d recorded runs cost something, %d failed", spent, failed)
	}
}

// agreesWithItself compares the run with its outcome and with the sum of its entries.
func (r *recordedTree) agreesWithItself(t *testing.T, run string) {
	t.Helper()
	v := r.views[run]
	events := r.of[run]
	if d, ended := events[len(events)-1].Data.(event.RunCompleted); ended {
		o := d.Outcome
		if got, want := entryFigures(v.Run()), figuresOf(v.Run().Name, stateFor(string(o.Status), o.OK), o.Usage, o.Cost); got != want {
			t.Errorf("run %s is %+v, its outcome %+v", run, got, want)
		}
	}
	var sum view.Spent
	for _, n := range v.Below("") {
		if n.Cost != nil {
			sum.Spend(n.Usage, *n.Cost)
		}
	}
	if in := v.Inherited(); in != nil && in.Cost != nil { // the entries of a fork have what it shares
		sum.Used.Input, sum.Used.Output, sum.Cost.USD = sum.Used.Input-in.Usage.Input, sum.Used.Output-in.Usage.Output, sum.Cost.USD-in.Cost.USD
	}
	if got, want := figuresOf("", "", sum.Used, sum.Cost), figuresOf("", "", v.Run().Usage, v.Run().Cost); v.Steps.Ledger == nil && got != want {
		t.Errorf("the entries of run %s have %+v, the run %+v", run, got, want)
	}
}

// agreesWithShow compares with the page of 'runs show'.
func (r *recordedTree) agreesWithShow(t *testing.T, s *session, row journal.Run) {
	t.Helper()
	v := r.views[row.ID]
	p, err := s.page(t.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	o := outcomeIn(t, row)
	if got, want := figuresOf(p.Name, stateFor(cmp.Or(string(o.Status), string(row.State)), o.OK), p.Usage, p.Cost), entryFigures(v.Run()); got != want {
		t.Errorf("runs show %s has %+v, the view %+v", row.ID, got, want)
	}
	var b strings.Builder
	p.head(&b, "pawl")
	if u := v.Run().Usage; !strings.Contains(b.String(), fmt.Sprintf("%d tokens in (%d cached), %d out, %s\n", u.Input, u.CacheRead, u.Output, money(v.Run().Cost, u))) {
		t.Errorf("runs show %s prints no %+v:\n%s", row.ID, u, b.String())
	}
	cycles := 0
	for _, n := range v.Below("") {
		if n.Kind != view.Cycle {
			continue
		}
		c := p.PerCycle[cycles]
		cost := llm.Cost{USD: c.USD}
		if got, want := figuresOf(n.Name, n.State, c.Usage, &cost), entryFigures(n); got != want || !strings.HasPrefix(n.Name, fmt.Sprint("cycle ", c.Cycle)) {
			t.Errorf("runs show %s has cycle %+v, the view %+v", row.ID, got, want)
		}
		cycles++
	}
	if cycles != len(p.PerCycle) {
		t.Errorf("runs show %s has %d cycles, the view %d", row.ID, len(p.PerCycle), cycles)
	}
}

// agreesWithDiff compares with what 'runs diff' reads: cycles without what the runs below
// them used.
func (r *recordedTree) agreesWithDiff(t *testing.T, s *session, row journal.Run) {
	t.Helper()
	v := r.views[row.ID]
	d, err := compare.Runs(t.Context(), s.store, row.ID, row.ID)
	if err != nil {
		t.Fatal(err)
	}
	var cycles []*view.Entry
	for _, n := range v.Below("") {
		if n.Kind == view.Cycle {
			cycles = append(cycles, n)
		}
	}
	if len(cycles) != len(d.Cycles) {
		t.Fatalf("runs diff has %d cycles of %s, the view %d", len(d.Cycles), row.ID, len(cycles))
	}
	for i, pair := range d.Cycles {
		n, c, calls := cycles[i], pair.Left, 0
		for _, call := range v.Below(n.ID) {
			if call.Kind != view.Call {
				continue
			}
			if call.Cost != nil {
				c.Usage, c.Cost = c.Usage.Add(call.Usage), c.Cost+call.Cost.USD
			}
			if call.Name != firstLine(c.Calls[calls], 100) || call.Line != firstLine(view.Complaint(c.Results[calls]), 160) {
				t.Errorf("runs diff has call %q of %s with %q, the view %+v", c.Calls[calls], row.ID, c.Results[calls], call)
			}
			calls++
		}
		if got, want := figuresOf(n.Name, n.State, c.Usage, &llm.Cost{USD: c.Cost}), entryFigures(n); got != want || calls != len(c.Calls) {
			t.Errorf("runs diff has cycle %+v of %s with %d calls, the view %+v with %d", got, row.ID, len(c.Calls), want, calls)
		}
	}
	if len(d.Below) != len(v.Children()) {
		t.Errorf("runs diff has %d runs below %s, the view %d", len(d.Below), row.ID, len(v.Children()))
	}
}

// agreesWithLog compares with the end of 'runs log'.
func (r *recordedTree) agreesWithLog(t *testing.T, run string) {
	t.Helper()
	var out strings.Builder
	log := newConversation(&out, screen{}, "pawl")
	for _, e := range r.of[run] {
		if err := log.show(*e); err != nil {
			t.Fatal(err)
		}
	}
	n := r.views[run].Run()
	if n.State != view.Waiting && n.State != view.Running && !strings.Contains(out.String(), saysSpent(n)) {
		t.Errorf("the log of %s has no %q:\n%s", run, saysSpent(n), out.String())
	}
	if !strings.Contains(out.String(), ": "+n.Name+"\n") {
		t.Errorf("the log of %s does not name it %s", run, n.Name)
	}
}

func saysSpent(n *view.Entry) string {
	return fmt.Sprintf("%d tokens in, %d out, %s", n.Usage.Input, n.Usage.Output, money(n.Cost, n.Usage))
}

// agreesWithTree compares with the nodes of 'runs tree'.
func (r *recordedTree) agreesWithTree(t *testing.T, s *session) {
	t.Helper()
	row, err := s.store.Run(t.Context(), r.root())
	if err != nil {
		t.Fatal(err)
	}
	root, err := s.tree(t.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	nodes := 0
	var walk func(n node, above *view.View)
	walk = func(n node, above *view.View) {
		nodes++
		want := entryFigures(r.views[n.ID].Run())
		if above != nil { // how a step stands is for the run above to say
			if c := above.Child(n.ID); c.Finished != nil {
				want.state = stateFor(string(c.Finished.Status), false)
			}
		}
		if got := figuresOf(n.Name, stateFor(n.Status, outcomeIn(t, n.Run).OK), n.Usage, n.Cost); got != want {
			t.Errorf("runs tree has %s as %+v, the view %+v", n.ID, got, want)
		}
		for _, child := range n.Children {
			walk(child, r.views[n.ID])
		}
	}
	walk(root, nil)
	if nodes != len(r.runs) {
		t.Errorf("runs tree has %d runs of %d", nodes, len(r.runs))
	}
}

// agreesWithTerminal compares with the live lines just before the root stops, and with the
// lines that stay.
func (r *recordedTree) agreesWithTerminal(t *testing.T) {
	t.Helper()
	p, out, _ := aTerminal(200)
	v := newTextView(io.Discard, p, screen{}, 0, "pawl")
	views := map[string]*view.View{}
	for _, e := range r.all {
		if d, forked := e.Data.(event.RunForked); forked {
			views[e.Run] = views[d.From]
		}
		if views[e.Run] == nil {
			views[e.Run] = &view.View{}
		}
		views[e.Run].Add(e)
		if err := v.show(*e); err != nil {
			t.Fatal(err)
		}
		for _, w := range append([]*working{v.work.root}, v.work.order...) {
			of := views[w.run]
			if of == nil || v.work.over() { // nothing is known of a run that only its parent tells of
				continue
			}
			line := w.summary(ink{}, true, p.now())
			if n := of.Run(); n.Cost != nil && !strings.Contains(line, money(n.Cost, n.Usage)) || of.Position().Cycle > 0 && !strings.HasPrefix(line, view.Position(of.Position())) {
				t.Fatalf("after event %d of %s the live line of %s is %q, the view has %+v", e.Seq, e.Run, w.run, line, n)
			}
		}
	}
	if n := r.views[r.root()].Run(); n.State != view.Waiting && n.State != view.Running && !strings.Contains(out.String(), saysSpent(n)) {
		t.Errorf("the terminal has no %q:\n%s", saysSpent(n), out)
	}
}

// agreesWithAGUI compares with the events of AG-UI, which tells of no tokens.
func (r *recordedTree) agreesWithAGUI(t *testing.T) {
	t.Helper()
	root := r.root()
	words := agui.New(root)
	names, states, calls := map[string]string{}, map[string]view.State{}, map[string]string{}
	for _, e := range r.all {
		for _, said := range words.Translate(e) {
			switch said.Type {
			case "SUBAGENT_STARTED":
				names[said.SubagentRunID] = said.Name
			case "SUBAGENT_FINISHED":
				states[said.SubagentRunID] = map[string]view.State{"success": view.Done, "suspended": view.Waiting}[said.Outcome.Type]
			case "SUBAGENT_ERROR":
				states[said.SubagentRunID] = view.Failed
			case "RUN_ERROR":
				states[root] = view.Failed
			case "RUN_FINISHED":
				states[root] = map[string]view.State{"success": view.Done, "cancelled": view.Cancelled, "interrupt": view.Waiting}[said.Outcome.Type]
			case "TOOL_CALL_START":
				calls[said.ToolCallID] = said.ToolCallName
			}
		}
	}
	called := 0
	for _, run := range r.runs {
		v := r.views[run]
		for _, n := range v.Entries() {
			if n.Kind == view.Call && v.Inherited() == nil {
				called++
				if calls[n.Ref] == "" {
					t.Errorf("AG-UI has no call %s", n.Ref)
				}
			}
		}
		if n := v.Run(); states[run] != n.State {
			t.Errorf("AG-UI has %s as %q, the view %q", run, states[run], n.State)
		}
		for _, c := range v.Children() {
			if names[c.Run] != c.Name {
				t.Errorf("AG-UI names %s %q, the view %q", c.Run, names[c.Run], c.Name)
			}
		}
	}
	if len(calls) < called {
		t.Errorf("AG-UI has %d calls, the views %d", len(calls), called)
	}
}

// agreesWithSpans compares with the spans of the runs, their answers and their calls.
func (r *recordedTree) agreesWithSpans(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spans.jsonl")
	x, err := signals.Open(signals.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	observe := x.Observer().Run
	for _, run := range r.runs {
		n := r.views[run].Run()
		kind := ""
		if d, is := r.of[run][0].Data.(event.RunStarted); is {
			kind = d.Kind
		}
		hear := observe(perform.RunInfo{Run: run, Root: r.root(), Kind: kind, Name: n.Name, Began: n.Start})
		for _, e := range r.of[run] {
			hear(e)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r.compareSpans(t, text)
}

func (r *recordedTree) compareSpans(t *testing.T, text []byte) {
	t.Helper()
	type span struct {
		Name       string
		Attributes []struct {
			Key   string
			Value struct {
				IntValue    string
				DoubleValue float64
				StringValue string
			}
		}
		Status struct{ Code int }
	}
	whole, answers, failed := map[string]figures{}, map[string]figures{}, map[string]map[string]bool{}
	for line := range bytes.Lines(text) {
		var request struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []span } }
		}
		if err := json.Unmarshal(line, &request); err != nil {
			t.Fatal(err)
		}
		if len(request.ResourceSpans) == 0 { // metrics
			continue
		}
		for _, s := range request.ResourceSpans[0].ScopeSpans[0].Spans {
			var u llm.Usage
			usd, run, call := 0.0, "", ""
			for _, a := range s.Attributes {
				switch a.Key {
				case "gen_ai.usage.input_tokens":
					_, _ = fmt.Sscan(a.Value.IntValue, &u.Input)
				case "gen_ai.usage.output_tokens":
					_, _ = fmt.Sscan(a.Value.IntValue, &u.Output)
				case "pawl.cost.usd":
					usd = a.Value.DoubleValue
				case "pawl.run.id":
					run = a.Value.StringValue
				case "gen_ai.tool.call.id":
					call = a.Value.StringValue
				}
			}
			state := view.Done
			if s.Status.Code == 2 {
				state = view.Failed
			}
			operation, name, _ := strings.Cut(s.Name, " ")
			switch operation {
			case "chat":
				sum := answers[run]
				answers[run] = figures{in: sum.in + u.Input, out: sum.out + u.Output, usd: sum.usd + usd}
			case "execute_tool":
				if failed[run] == nil {
					failed[run] = map[string]bool{}
				}
				failed[run][call] = state == view.Failed
			default:
				whole[run] = figures{name, state, u.Input, u.Output, usd}
			}
		}
	}
	for _, run := range r.runs {
		v := r.views[run]
		want := entryFigures(v.Run())
		if want.state == view.Done || want.state == view.Failed {
			if whole[run] != want {
				t.Errorf("the span of %s is %+v, the view has %+v", run, whole[run], want)
			}
		}
		own := answers[run]
		for _, c := range v.Children() {
			f := figuresOf("", "", c.Used, c.Cost)
			own.in, own.out, own.usd = own.in+f.in, own.out+f.out, own.usd+f.usd
		}
		if want.name, want.state = "", ""; v.Inherited() == nil && own != want {
			t.Errorf("the answers of %s and the runs below it have spans of %+v, the view has %+v", run, own, want)
		}
		for id, failure := range failed[run] {
			var n *view.Entry
			for _, x := range v.Entries() {
				if x.Kind == view.Call && x.Ref == id {
					n = x
				}
			}
			if n == nil || failure == (n.State == view.Done) {
				t.Errorf("the span of call %s failed %t, the view has %+v", id, failure, n)
			}
		}
	}
}
