package view_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/golden"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/llm"
)

var update = flag.Bool("update", false, "write the golden files")

// recorded returns the journals of recorded runs by name, each with the events of the
// first run and of its descendants, by run.
func recorded(t *testing.T) map[string]journal {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no journals are recorded", err)
	}
	all := map[string]journal{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var j journal
		for line := range bytes.Lines(text) {
			e, err := event.Decode(line)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			j.add(e)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".jsonl")] = j
	}
	return all
}

// journal holds the events of the runs of a tree. The shared events of a fork belong to
// the fork.
type journal struct {
	runs   []string
	events map[string][]*event.Event
}

func (j *journal) add(e *event.Event) {
	if j.events == nil {
		j.events = map[string][]*event.Event{}
	}
	run := e.Run
	if d, forked := e.Data.(event.RunForked); forked {
		j.events[run], j.runs = j.events[d.From], []string{run}
	}
	if j.events[run] == nil {
		j.runs = append(j.runs, run)
	}
	j.events[run] = append(j.events[run], e)
}

// page returns what the page shows of a run with every entry open: its entries with
// their bodies.
func page(v *view.View, events []*event.Event) string {
	var b strings.Builder
	bySeq := map[int64]*event.Event{}
	for _, e := range events {
		bySeq[e.Seq] = e
	}
	depth := map[string]int{}
	for _, n := range v.Entries() {
		if n.Parent != "" {
			depth[n.ID] = depth[n.Parent] + 1
		}
		room := strings.Repeat("    ", depth[n.ID])
		fmt.Fprintf(&b, "%s[%s] %s: %s", room, n.ID, n.Kind, n.Name)
		for _, part := range []string{string(n.State), n.Ref, n.Run, n.Line} {
			if part != "" {
				fmt.Fprintf(&b, " | %s", part)
			}
		}
		if n.Below > 0 {
			fmt.Fprintf(&b, " | %d below, %d failed", n.Below, n.Failures)
		}
		if n.Cost != nil {
			fmt.Fprintf(&b, " | %d in, %d out", n.Usage.Input, n.Usage.Output)
		}
		b.WriteString("\n")
		for _, seq := range v.Events(n.ID) {
			for _, p := range v.Body(bySeq[seq]) {
				for line := range strings.SplitSeq(strings.TrimSpace(p.Line+"\n"+p.Text), "\n") {
					fmt.Fprintf(&b, "%s  %s\n", room, line)
				}
			}
		}
	}
	return b.String()
}

// A journal of each kind of run produces the entries of its golden file.
func TestRecordedRunsHaveTheirEntries(t *testing.T) {
	for name, j := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, run := range j.runs {
				var v view.View
				for _, e := range j.events[run] {
					v.Add(e)
				}
				fmt.Fprintf(&b, "run %s\n%s", run, page(&v, j.events[run]))
			}
			golden.File(t, filepath.Join("testdata", name+".golden"), b.String(), *update)
		})
	}
}

// A reader that applies the changed entries after each event has the same state as a
// new view of all events up to it.
func TestEntriesThatChangedGiveTheWholeView(t *testing.T) {
	for name, j := range recorded(t) {
		for run, events := range j.events {
			var v view.View
			kept := map[string]view.Entry{}
			for i, e := range events {
				for _, n := range v.Add(e).Changed {
					kept[n.ID] = *n
				}
				var whole view.View
				for _, e := range events[:i+1] {
					whole.Add(e)
				}
				all := map[string]view.Entry{}
				for _, n := range whole.Entries() {
					all[n.ID] = *n
				}
				if diff := cmp.Diff(all, kept); diff != "" {
					t.Fatalf("%s: run %s after event %d (-whole +kept):\n%s", name, run, e.Seq, diff)
				}
			}
		}
	}
}

// The body of an event's entry contains what the log of a run prints for the event.
func TestBodiesHaveWhatTheLogPrints(t *testing.T) {
	for name, j := range recorded(t) {
		for run, events := range j.events {
			var v view.View
			updates := map[int64]view.Update{}
			for _, e := range events {
				updates[e.Seq] = v.Add(e)
			}
			lines := 0
			for _, e := range events {
				body := page(&v, events)
				entry := updates[e.Seq].Entry
				for _, p := range updates[e.Seq].Parts {
					for line := range strings.SplitSeq(p.Line+"\n"+p.Text, "\n") {
						if line = strings.TrimSpace(line); line == "" {
							continue
						}
						if lines++; entry == nil || !slices.Contains(v.Events(entry.ID), e.Seq) || !strings.Contains(body, line) {
							t.Errorf("%s: run %s, event %d: %q stands in no body", name, run, e.Seq, line)
						}
					}
				}
			}
			if lines == 0 {
				t.Errorf("%s: the log of run %s is empty", name, run)
			}
		}
	}
}

// No entry of an ended run is open.
func TestNoEntryOfAnEndedRunIsOpen(t *testing.T) {
	ended := 0
	for name, j := range recorded(t) {
		for run, events := range j.events {
			if _, is := events[len(events)-1].Data.(event.RunCompleted); !is {
				continue
			}
			ended++
			var v view.View
			for _, e := range events {
				v.Add(e)
			}
			for _, n := range v.Entries() {
				if n.State == view.Running || n.State == view.Waiting {
					t.Errorf("%s: run %s: %+v", name, run, n)
				}
			}
		}
	}
	if ended < 10 {
		t.Errorf("only %d runs have ended", ended)
	}
}

// fold feeds events of one run to a view, numbered from 1.
func fold(events ...event.Data) (*view.View, []view.Update) {
	v, updates := &view.View{}, []view.Update(nil)
	for _, e := range numbered(events...) {
		updates = append(updates, v.Add(e))
	}
	return v, updates
}

// numbered returns the events of a run with this data.
func numbered(data ...event.Data) (events []*event.Event) {
	cycle := 0
	for i, d := range data {
		if c, is := d.(event.CycleStart); is {
			cycle = c.Cycle
		}
		events = append(events, &event.Event{Run: "r", Seq: int64(i) + 1, Time: time.Unix(int64(i), 0), Cycle: cycle, Data: d})
	}
	return events
}

// rows: ALDO-64
//
// A run has a panel for each cycle, with the text of the model, and in it the calls with
// their results; a compression stands between the cycles, and the terminator at the end of
// a run where one fired.
func TestEachCycleIsAPanelOfItsOwn(t *testing.T) {
	call := func(id string) event.ToolCall {
		return event.ToolCall{CallID: id, Tool: "fs.read", Args: json.RawMessage(`{}`), Describe: "read " + id}
	}
	says := func(text string) event.ModelResponse {
		return event.ModelResponse{Parts: event.Answer{llm.Text{Text: text}}, Model: "m"}
	}
	cycles := []event.Data{
		event.CycleStart{Cycle: 1, MaxCycles: 9}, says("First text."), call("a"), call("b"),
		event.ToolResult{CallID: "b", Output: "output of b", IsError: true}, event.ToolResult{CallID: "a", Output: "output of a"}, event.ToolResults{Cycle: 1},
		event.HistoryCompressed{Dropped: 2, Removed: []event.MessageRange{{From: 1, To: 3}}, Kept: 4},
		event.CycleStart{Cycle: 2, MaxCycles: 9}, says("Second text."), call("c"), event.ToolResult{CallID: "c", Output: "output of c"}, event.ToolResults{Cycle: 2},
		event.HistoryCompressed{Dropped: 1, Removed: []event.MessageRange{{From: 3, To: 4}}, Kept: 5},
		event.CycleStart{Cycle: 3, MaxCycles: 9}, says("Third text."),
	}
	index := 1
	ends := append(slices.Clip(cycles), event.RunTerminatedBy{Reason: event.ReasonConditionMet, Index: &index, Kind: "text-includes"})
	v, _ := fold(ends...)
	golden.File(t, filepath.Join("testdata", "panels.golden"), page(v, numbered(ends...)), *update)
	if v, _ := fold(cycles...); strings.Contains(page(v, numbered(cycles...)), "ends by") {
		t.Error("a run that goes on has a terminator")
	}
}

func TestACallStandsAsItsEventsSay(t *testing.T) {
	call, cycle := event.ToolCall{CallID: "r-1-1", Tool: "pay", Args: json.RawMessage(`{}`)}, event.CycleStart{Cycle: 1}
	asked := event.ToolPendingApproval{CallID: "r-1-1", Tool: "pay", Rule: "always"}
	for _, tt := range []struct {
		name                  string
		events                []event.Data
		call, cycle, question view.State
		failures              int
	}{
		{name: "called", call: view.Running, cycle: view.Running},
		{name: "done", events: []event.Data{event.ToolResult{CallID: "r-1-1"}}, call: view.Done, cycle: view.Running},
		{name: "failed", events: []event.Data{event.ToolResult{CallID: "r-1-1", IsError: true}, event.ToolResults{Cycle: 1}}, call: view.Failed, cycle: view.Done, failures: 1},
		{name: "denied", events: []event.Data{event.ToolResult{CallID: "r-1-1", IsError: true, ErrorType: event.ErrorDenied}}, call: view.Denied, cycle: view.Running, failures: 1},
		{name: "asked", events: []event.Data{asked}, call: view.Waiting, cycle: view.Waiting, question: view.Waiting},
		{name: "approved", events: []event.Data{asked, event.ToolApprovalResolved{CallID: "r-1-1", Kind: event.ApprovalApproved}}, call: view.Running, cycle: view.Running, question: view.Done},
		{
			name: "rejected", call: view.Rejected, cycle: view.Running, question: view.Rejected, failures: 1,
			events: []event.Data{asked, event.ToolApprovalResolved{CallID: "r-1-1", Kind: event.ApprovalRejected}, event.ToolResult{CallID: "r-1-1", IsError: true, ErrorType: event.ErrorRejected}},
		},
		{
			name: "asked again after a rejection of another", call: view.Waiting, cycle: view.Waiting, question: view.Waiting,
			events: []event.Data{asked, event.ToolPendingApproval{CallID: "r-1-2", Tool: "other"}, event.ToolApprovalResolved{CallID: "r-1-2", Kind: event.ApprovalRejected}},
		},
		{
			name: "allowed by a rule since it was asked", call: view.Running, cycle: view.Running, question: view.Cancelled,
			events: []event.Data{asked, event.PolicyDecision{CallID: "r-1-1", Decision: event.DecisionAllow}},
		},
		{
			name: "one of two allowed by a rule", call: view.Running, cycle: view.Waiting, question: view.Cancelled,
			events: []event.Data{asked, event.ToolCall{CallID: "r-1-2", Tool: "other"}, event.ToolPendingApproval{CallID: "r-1-2"}, event.ToolStarted{CallID: "r-1-1"}},
		},
		{name: "cut short", events: []event.Data{event.RunCompleted{}}, call: view.Cancelled, cycle: view.Cancelled},
	} {
		v, _ := fold(append([]event.Data{cycle, call}, tt.events...)...)
		if got := v.Entry("2").State; got != tt.call {
			t.Errorf("%s: the call is %s, want %s", tt.name, got, tt.call)
		}
		if got := v.Entry("1"); got.State != tt.cycle || got.Failures != tt.failures {
			t.Errorf("%s: the cycle is %s with %d failures, want %s with %d", tt.name, got.State, got.Failures, tt.cycle, tt.failures)
		}
		if q := v.Entry("3"); tt.question != "" && (q.Kind != view.Question || q.State != tt.question || q.Parent != "2") {
			t.Errorf("%s: the question is %+v, want %s", tt.name, q, tt.question)
		}
	}
}

// The answer to a question that is a message closes that question and no other.
func TestAMessageAnswersWhatWasAskedForOne(t *testing.T) {
	v, _ := fold(
		event.RunStarted{}, event.CycleStart{Cycle: 1}, event.ToolCall{CallID: "r-1-1"}, event.ToolPendingApproval{CallID: "r-1-1"},
		event.GoalBlocked{ID: "g1", Step: "loop", Number: 1, Asks: "Which port?"}, event.InputReceived{Text: "80"},
		event.GoalBlocked{ID: "g2", Step: "loop", Number: 2, Asks: "Which host?"},
	)
	for id, want := range map[string]view.State{"4": view.Waiting, "5": view.Done, "7": view.Waiting} {
		if n := v.Entry(id); n.Kind != view.Question || n.State != want {
			t.Errorf("question %s is %+v, want %s", id, n, want)
		}
	}
}

// The entry of the run includes the usage of all descendants; a fork excludes what it
// inherits.
func TestTheRunItselfIsAnEntryToo(t *testing.T) {
	cost := func(usd float64) llm.Cost { return llm.Cost{USD: usd, Priced: true} }
	events := []event.Data{
		event.RunStarted{Name: "lead"}, event.CycleStart{Cycle: 1}, event.ModelResponse{Usage: llm.Usage{Input: 7}, Cost: cost(1)},
		event.ToolCall{CallID: "r-1-1"}, event.ChildStarted{Child: "c", CallID: "r-1-1"},
		event.BudgetCommitted{Run: "c", USD: 0.25, Priced: true, Usage: &llm.Usage{Input: 3}}, event.BudgetCommitted{Run: "c", USD: 0.25, Priced: true},
	}
	for _, tt := range []struct {
		name  string
		event event.Data
		state view.State
		line  string
		usd   float64
		in    int64
	}{
		{"goes on", event.ToolResults{Cycle: 1}, view.Running, "", 1.25, 10},
		{"parks", event.RunParked{}, view.Waiting, "", 1.25, 10},
		{"ends", event.RunCompleted{Outcome: event.Outcome{OK: true, FinalOutput: "All is done.\nReally."}}, view.Done, "All is done.", 1.25, 10},
		{"fails", event.RunCompleted{Outcome: event.Outcome{Error: &event.Failure{Message: "no"}, FinalOutput: "Half."}}, view.Failed, "no", 1.25, 10},
		{"is a fork", event.RunForked{}, view.Running, "", 0, 0},
	} {
		v, _ := fold(append(slices.Clip(events), tt.event)...)
		n := v.Run()
		usd := 0.0
		if n.Cost != nil {
			usd = n.Cost.USD
		}
		if n.Name != "lead" || n.State != tt.state || n.Line != tt.line || usd != tt.usd || n.Usage.Input != tt.in || n.Seconds != 0 != (tt.line != "") {
			t.Errorf("a run that %s is %+v", tt.name, n)
		}
		if in := v.Inherited(); in != nil != (tt.in == 0) || in != nil && (in.Usage.Input != 10 || in.Cost.USD != 1.25) {
			t.Errorf("a run that %s inherits %+v", tt.name, in)
		}
	}
}

func TestARunBelowIsPaidByAllAboveIt(t *testing.T) {
	u := llm.Usage{Input: 10, Output: 5}
	v, _ := fold(event.CycleStart{Cycle: 1}, event.ToolCall{CallID: "r-1-1", Tool: "ask"}, event.ChildStarted{Child: "c", Name: "helper", CallID: "r-1-1"},
		event.BudgetCommitted{Run: "c", USD: 0.5, Priced: true, Usage: &u}, event.BudgetCommitted{Run: "c", USD: 0.25, Priced: true, Usage: &u},
		event.ChildParked{Child: "c", Reason: event.ParkApproval})
	for id, kind := range map[string]view.Kind{"1": view.Cycle, "2": view.Call, "3": view.Child} {
		if n := v.Entry(id); n.Kind != kind || n.Cost == nil || n.Cost.USD != 0.75 || n.Usage.Input != 20 {
			t.Errorf("entry %s is %+v", id, n)
		}
	}
	if n := v.Entry("3"); n.State != view.Waiting || n.Parent != "2" || n.Run != "c" {
		t.Errorf("the child is %+v", n)
	}
}

// A cycle with thousands of calls has an entry for each, and an event changes only the
// entries that it concerns.
func TestAnEventChangesFewEntries(t *testing.T) {
	const calls = 2000
	events := []event.Data{event.CycleStart{Cycle: 1}}
	for i := range calls {
		events = append(events, event.ToolCall{CallID: fmt.Sprint("r-1-", i), Tool: "t"})
	}
	for i := range calls {
		events = append(events, event.ToolStarted{CallID: fmt.Sprint("r-1-", i)}, event.ToolResult{CallID: fmt.Sprint("r-1-", i), Output: "x"})
	}
	v, updates := fold(events...)
	if n := len(v.Entries()); n != calls+1 || v.Entry("1").Below != calls {
		t.Errorf("%d entries, %d below the cycle", n, v.Entry("1").Below)
	}
	numbers := 0
	for _, n := range v.Entries() {
		numbers += len(v.Events(n.ID))
	}
	if numbers > len(events) {
		t.Errorf("%d numbers of %d events are kept", numbers, len(events))
	}
	for i, x := range updates {
		if len(x.Changed) > 2 {
			t.Fatalf("event %d changes %d entries", i+1, len(x.Changed))
		}
	}
}

// The recorded runs contain every kind of entry.
func TestTheRecordedRunsHaveEveryKindOfEntry(t *testing.T) {
	kinds := map[view.Kind]int{}
	for _, j := range recorded(t) {
		for _, events := range j.events {
			var v view.View
			for _, e := range events {
				v.Add(e)
			}
			for _, n := range v.Entries() {
				kinds[n.Kind]++
			}
		}
	}
	for _, k := range []view.Kind{view.Cycle, view.Call, view.Child, view.Iteration, view.Step, view.Question, view.Note} {
		if kinds[k] < 2 {
			t.Errorf("%d entries of kind %s, of %v", kinds[k], k, slices.Sorted(maps.Keys(kinds)))
		}
	}
}

// A view that was restored from a snapshot after any event is the view of all events,
// and shows the same about each following one.
func TestAViewContinuesFromEverySnapshot(t *testing.T) {
	for name, j := range recorded(t) {
		for run, events := range j.events {
			var whole view.View
			said := make([]view.Update, len(events))
			kept := make([][]byte, len(events))
			for i, e := range events {
				said[i] = whole.Add(e)
				kept[i] = whole.Snapshot()
			}
			for cut := range events {
				v := view.Restore(kept[cut])
				if v == nil {
					t.Fatalf("%s: run %s: the snapshot after event %d cannot be read", name, run, events[cut].Seq)
				}
				for i := cut; i < len(events); i++ {
					if i > cut {
						if diff := cmp.Diff(said[i].Parts, v.Add(events[i]).Parts); diff != "" {
							t.Fatalf("%s: run %s, from %d, event %d (-whole +restored):\n%s", name, run, events[cut].Seq, events[i].Seq, diff)
						}
					}
					if i > cut+2 && i < len(events)-1 {
						continue
					}
					if !bytes.Equal(kept[i], v.Snapshot()) {
						t.Fatalf("%s: run %s, from %d, event %d: the snapshots differ", name, run, events[cut].Seq, events[i].Seq)
					}
				}
				if diff := cmp.Diff(page(&whole, events), page(v, events)); diff != "" {
					t.Fatalf("%s: run %s, from %d (-whole +restored):\n%s", name, run, events[cut].Seq, diff)
				}
				if diff := cmp.Diff(whole.Since(events[cut].Seq), v.Since(events[cut].Seq)); diff != "" {
					t.Fatalf("%s: run %s, changes since %d (-whole +restored):\n%s", name, run, events[cut].Seq, diff)
				}
				if diff := cmp.Diff(whole.Run(), v.Run()); diff != "" {
					t.Fatalf("%s: run %s, from %d (-whole +restored):\n%s", name, run, events[cut].Seq, diff)
				}
			}
		}
	}
}

func TestADamagedSnapshotIsNotRead(t *testing.T) {
	for _, j := range recorded(t) {
		for _, events := range j.events {
			var v view.View
			for _, e := range events {
				v.Add(e)
			}
			kept := v.Snapshot()
			for n := 0; n < len(kept); n += 1 + len(kept)/200 {
				if view.Restore(kept[:n]) != nil {
					t.Errorf("the first %d of %d bytes are read", n, len(kept))
				}
				other := bytes.Clone(kept)
				other[n] ^= 0x55
				view.Restore(other) // it may be read, and must not panic
			}
		}
	}
}

// A snapshot of an older version of the fold is not continued, so a change of the fold
// changes the version.
func TestAChangedFoldHasAnotherSnapshotVersion(t *testing.T) {
	all, hash := recorded(t), sha256.New()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, run := range all[name].runs {
			var v view.Digest
			for _, e := range all[name].events[run] {
				v.Add(e)
				hash.Write(v.Snapshot())
			}
		}
	}
	path := filepath.Join("testdata", "snapshots")
	got := fmt.Sprintf("%s %x\n", view.SnapshotVersion, hash.Sum(nil))
	was, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	version, _, _ := strings.Cut(string(was), " ")
	switch {
	case string(was) == got:
	case version == view.SnapshotVersion:
		t.Errorf("the recorded runs have other snapshots of version %s: raise SnapshotVersion, and run the test with -update", version)
	case *update:
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the snapshots are of version %s, and %s has version %s: run the test with -update", view.SnapshotVersion, path, version)
	}
}

// A digest continues from a snapshot as well, and the view in it is that of a view which
// keeps no texts.
func TestADigestContinuesFromEverySnapshot(t *testing.T) {
	for name, j := range recorded(t) {
		for run, events := range j.events {
			var whole view.Digest
			var plain view.View
			kept := make([][]byte, len(events))
			for i, e := range events {
				whole.Add(e)
				plain.Add(e)
				kept[i] = whole.Snapshot()
				if v := view.Restore(kept[i]); v == nil || !bytes.Equal(plain.Snapshot(), v.Snapshot()) {
					t.Fatalf("%s: run %s, event %d: the view in the digest's snapshot is another", name, run, e.Seq)
				}
			}
			for cut := range events {
				d := view.RestoreDigest(kept[cut])
				if d == nil {
					t.Fatalf("%s: run %s: the snapshot after event %d cannot be read", name, run, events[cut].Seq)
				}
				for _, e := range events[cut+1:] {
					d.Add(e)
				}
				if !bytes.Equal(kept[len(kept)-1], d.Snapshot()) {
					t.Fatalf("%s: run %s, from %d: the digests differ", name, run, events[cut].Seq)
				}
				a, b := whole.Cycles(), d.Cycles()
				for i := range a { // the calls with their results are not kept
					a[i].Made, b[i].Made = nil, nil
				}
				if diff := cmp.Diff(a, b, cmpopts.IgnoreUnexported(view.CycleLine{})); diff != "" {
					t.Fatalf("%s: run %s, from %d (-whole +restored):\n%s", name, run, events[cut].Seq, diff)
				}
			}
		}
	}
}

// The recorded runs lack some of what a cycle may have.
func TestASnapshotHasAllOfACycle(t *testing.T) {
	var whole view.Digest
	var kept [][]byte
	events := []event.Data{
		event.RunStarted{Kind: "Agent", Config: json.RawMessage(`{"targets": [{"model": "a/b", "context_window": 5000}], "limits": {"max_cycles": 3}}`)},
		event.CycleStart{Cycle: 1, MaxCycles: 3},
		event.ModelRetrying{Attempt: 2},
		event.ModelResponse{Model: "a/b", Usage: llm.Usage{Input: 100, CacheWriteLong: 3}, Cost: llm.Cost{USD: 0.5, Priced: true}, Parts: event.Answer{llm.Text{Text: "I look."}}},
		event.CacheBreak{},
		event.ToolCall{CallID: "c", Tool: "t", Args: json.RawMessage(`{}`)},
		event.HookResult{CallID: "c", Hook: "h"},
		event.ToolResult{CallID: "c", Tool: "t", Output: "no", IsError: true},
		event.RunTerminatedBy{Reason: event.ReasonFinalAnswer, Detail: "it is done"},
	}
	for i, data := range events {
		whole.Add(&event.Event{Seq: int64(i + 1), Run: "r", Data: data})
		kept = append(kept, whole.Snapshot())
	}
	want := whole.Cycles()[0]
	if want.Window != 5000 || want.Retries != 1 || want.Errors != 1 || len(want.Hooks)+len(want.CacheBreaks) != 2 || want.Ends == "" {
		t.Fatalf("the cycle lacks something: %+v", want)
	}
	for cut := range events {
		d := view.RestoreDigest(kept[cut])
		for i, data := range events[cut+1:] {
			d.Add(&event.Event{Seq: int64(cut + i + 2), Run: "r", Data: data})
		}
		got := d.Cycles()[0]
		got.Made, want.Made = nil, nil
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(view.CycleLine{})); diff != "" || got.Own != want.Own && !cmp.Equal(got.Own, want.Own) || got.Ends != want.Ends {
			t.Errorf("from event %d (-whole +restored):\n%s%+v", cut+1, diff, got)
		}
		if !cmp.Equal(whole.Limits, d.Limits) || d.Because != whole.Because {
			t.Errorf("from event %d the limits are %+v, because %q", cut+1, d.Limits, d.Because)
		}
	}
}
