package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// writeJournal writes the journal of this version's runs to a new file, which
// later versions are held to. A file that is there is never written again.
var writeJournal = flag.String("write-journal", "", "write testdata/journals/`NAME`.db")

// oldRun is one sort of run that a journal holds.
type oldRun struct {
	name string
	// rig is what the run is made of, live how it comes to stand where it was left.
	rig  func(t *testing.T, store journal.Store) *rig
	live func(r *rig, store *watched)
	// state and detail are those of its row, and final is how it ends in the end.
	state  journal.State
	detail string
	final  event.Reason
}

// steps is a model that makes a call for each of the tools, one after the other,
// and then is done. What it says follows from the request alone.
func steps(names ...string) llm.Model {
	return modelFunc(func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		made := 0
		for _, m := range req.Messages {
			for _, c := range m.Parts.ToolCalls() {
				_, err := fmt.Sscanf(string(c.Args), `{"task":"part %d"}`, &made)
				if made++; err != nil {
					return nil, err
				}
			}
		}
		if made >= len(names) {
			return said("done"), nil
		}
		return &llm.Response{
			Parts:  llm.Parts{llm.Text{Text: "a step"}, llm.ToolCall{ProviderID: fmt.Sprint("p", made), Name: names[made], Args: json.RawMessage(fmt.Sprintf(`{"task":"part %d"}`, made))}},
			Finish: llm.FinishTool, Usage: llm.Usage{Input: 100, Output: 20},
		}, nil
	})
}

func oldTools() []tool.Tool {
	read := argsTool("read", func(string) {})
	read.Run = func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Output: strings.Repeat("it is read ", 60)}, nil
	}
	read.Effect, read.ReadOnly, read.Schema = event.EffectPure, true, anySchema
	pay := argsTool("pay", func(string) {})
	pay.Schema = anySchema
	return []tool.Tool{read, pay}
}

var anySchema = json.RawMessage(`{"type":"object"}`)

func oldRuns() []oldRun {
	of := func(names ...string) func(*testing.T, journal.Store) *rig {
		return func(t *testing.T, store journal.Store) *rig {
			return newRig(t, store).tools(oldTools()...).model(steps(names...)).priced(1, 2).gate("pay")
		}
	}
	above := func(child func(*testing.T, journal.Store) *rig) func(*testing.T, journal.Store) *rig {
		return func(t *testing.T, store journal.Store) *rig {
			return of("read", "ask")(t, store).offers("ask", child(t, store))
		}
	}
	drives := func(r *rig, _ *watched) { wait(r.t, r.start(r.t.Context())) }
	return []oldRun{
		{name: "plain", rig: of("read", "read"), live: drives, state: journal.Ended, detail: "final_answer", final: event.ReasonFinalAnswer},
		{name: "parent", rig: above(of("read")), live: drives, state: journal.Ended, detail: "final_answer", final: event.ReasonFinalAnswer},
		{name: "parked", rig: of("read", "pay"), live: drives, state: journal.Parked, detail: "approval_required", final: event.ReasonFinalAnswer},
		{name: "parkedbelow", rig: above(of("pay")), live: drives, state: journal.Parked, detail: "approval_required", final: event.ReasonFinalAnswer},
		{name: "forked", rig: of("read", "read"), live: func(r *rig, _ *watched) {
			wait(r.t, r.resume(must(r.Branch(r.t.Context(), "plain", 12))(r)))
		}, state: journal.Ended, detail: "final_answer", final: event.ReasonFinalAnswer},
		{name: "compacted", rig: func(t *testing.T, store journal.Store) *rig {
			r := of("read", "read", "read", "read", "read", "read")(t, store)
			r.cfg.Compact = compact.Settings{Window: 600, Strategy: compact.RollingWindow}
			return r
		}, live: drives, state: journal.Ended, detail: "final_answer", final: event.ReasonFinalAnswer},
		{name: "cancelled", rig: above(of("pay")), live: func(r *rig, _ *watched) {
			run := r.start(r.t.Context())
			wait(r.t, run)
			r.send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann", Text: "enough"})
		}, state: journal.Ended, detail: "cancelled", final: event.ReasonCancelled},
		{name: "limited", rig: func(t *testing.T, store journal.Store) *rig {
			r := of("read", "read", "read")(t, store)
			r.cfg.Limits.MaxCycles = 2
			return r
		}, live: drives, state: journal.Ended, detail: "maxCycles", final: event.ReasonMaxCycles},
		{name: "left", rig: above(of("read")), live: func(r *rig, store *watched) {
			store.onAppend = failOnce("child.finished", errors.New("the process dies"))
			_, _ = r.start(r.t.Context()).Wait(r.t.Context())
			store.onAppend = nil
		}, state: journal.Running, final: event.ReasonFinalAnswer},
	}
}

// must makes the fork of a branch.
func must(b *drive.Branch, err error) func(*rig) string {
	return func(r *rig) string {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
		id, err := r.Fork(r.t.Context(), b, event.RunForked{})
		if err != nil {
			r.t.Fatal(err)
		}
		return id
	}
}

func TestWriteAJournal(t *testing.T) {
	if *writeJournal == "" {
		t.Skip("only with -write-journal")
	}
	path := filepath.Join("testdata", "journals", *writeJournal+".db")
	if _, err := os.Stat(path); err == nil {
		t.Fatalf("%s is there", path)
	}
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range oldRuns() {
		w := &watched{Store: store}
		r := o.rig(t, w)
		made := 0
		r.Engine = engine.New(w, newMachine, engine.Options{NewID: func() string {
			if made++; made > 1 {
				return fmt.Sprint(o.name, made)
			}
			return o.name
		}})
		o.live(r, w)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// What an older version has written is read, verified, replayed, forked and gone
// on with.
func TestJournalsOfOlderVersionsGoOn(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "journals", "*.db"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		for _, o := range oldRuns() {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".db")+"/"+o.name, func(t *testing.T) {
				o.goesOn(t, oldJournal(t, file))
			})
		}
	}
}

// oldJournal is a copy of a journal.
func oldJournal(t *testing.T, file string) journal.Store {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "journal.db")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func (o oldRun) goesOn(t *testing.T, store journal.Store) {
	r := o.rig(t, store)
	row, err := store.Run(t.Context(), o.name)
	if err != nil || row.State != o.state || row.Detail != o.detail {
		t.Fatalf("it is %s (%s), %v", row.State, row.Detail, err)
	}
	ids := append([]string{o.name}, r.children(o.name)...)
	for _, id := range ids {
		if _, err := journal.Verify(t.Context(), store, id, ""); err != nil {
			t.Error(err)
		}
		if _, err := r.Inspect(t.Context(), id); err != nil {
			t.Error(err)
		}
		r.replayed(id)
	}
	for _, at := range []int64{1, row.Seq / 2, row.Seq} {
		b, err := r.Branch(t.Context(), o.name, at)
		fork := must(b, err)(r)
		if state := wait(t, r.resume(fork)); state.Outcome == nil && state.Parked == nil {
			t.Errorf("its fork at %d is %+v", at, state)
		}
		r.replayed(fork)
	}
	if row.State == journal.Ended {
		return
	}
	// An approval that was given under another reading of the rules is asked for anew.
	approveAll := func() {
		for _, id := range ids {
			m, err := r.Inspect(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range m.State().Pending {
				r.send(journal.Command{Run: o.name, Kind: journal.Approve, CallID: p.ID, By: "ann"})
			}
		}
	}
	approveAll()
	state := wait(t, r.resume(o.name))
	if state.Outcome == nil {
		approveAll()
		state = wait(t, r.resume(o.name))
	}
	if state.Outcome == nil || state.Outcome.Reason != o.final {
		t.Errorf("it ends as %+v", state)
	}
	r.replayed(o.name)
}

// The sorts are those that the journal holds, not only by name.
func TestOldJournalsHoldEachSort(t *testing.T) {
	store := oldJournal(t, filepath.Join("testdata", "journals", "1.db"))
	for run, kind := range map[string]event.Type{
		"plain": event.TypeToolResult, "parent": event.TypeChildFinished, "parked": event.TypeToolPendingApproval,
		"parkedbelow": event.TypeChildParked, "forked": event.TypeRunForked, "compacted": event.TypeHistoryCompressed,
		"cancelled": event.TypeCancelRequested, "limited": event.TypeRunTerminatedBy, "left": event.TypeChildStarted,
	} {
		records, err := store.Records(t.Context(), run, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		held := false
		for _, r := range records {
			held = held || r.Type == string(kind)
		}
		if !held {
			t.Errorf("%s has no %s", run, kind)
		}
	}
}
