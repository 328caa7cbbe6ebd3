package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// rows: HAR-2
func TestNoEffectStartsBeforeItsIntentIsStored(t *testing.T) {
	for _, intent := range []string{"model.requested", "tool.started"} {
		t.Run(intent, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var models, tools atomic.Int32
				store := &watched{Store: memory.New(nil), onAppend: failOnce(intent, journal.ErrFull)}
				r := newRig(t, store).tools(toolFunc("work", func(context.Context) (string, error) {
					tools.Add(1)
					return "", nil
				})).model(modelFunc(func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
					models.Add(1)
					if len(req.Messages) > 1 {
						return said("done"), nil
					}
					return &llm.Response{Parts: llm.Parts{llm.ToolCall{Name: "work"}}}, nil
				}))
				run := r.start(t.Context())
				_, err := run.Wait(t.Context())
				mustBe(t, err, journal.ErrFull)
				if intent == "model.requested" && models.Load() != 0 || tools.Load() != 0 {
					t.Errorf("%d model calls and %d tool calls began without a stored intent", models.Load(), tools.Load())
				}
			})
		})
	}
}

// rows: HAR-25
func TestAnAnswerIsStoredBeforeAnythingActsOnIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Bool
		store := &watched{Store: memory.New(nil)}
		store.onAppend = func(b journal.Batch) error {
			if holds(b, "model.response") && ran.Load() {
				t.Error("the tool ran before the answer that asked for it was stored")
			}
			return nil
		}
		r := newRig(t, store).turns(scripted.Turn{ToolCalls: []scripted.Call{call("work", "{}")}}).
			tools(endsRun(toolFunc("work", func(context.Context) (string, error) { ran.Store(true); return "done", nil })))
		outcome(t, r.start(t.Context()))
		if !ran.Load() {
			t.Error("the tool never ran")
		}
	})
}

func TestNothingIsPublishedBeforeItIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(nil)
		open := make(chan struct{})
		store := &watched{Store: inner, onAppend: func(journal.Batch) error { <-open; return nil }}
		r := newRig(t, store).turns(scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		var seen atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range run.Events(t.Context(), true) {
				if err != nil {
					t.Error(err)
					return
				}
				row, err := inner.Run(t.Context(), run.ID)
				if err != nil || row.Seq < e.Seq {
					t.Errorf("event %d was published when %d were stored (%v)", e.Seq, row.Seq, err)
				}
				if e.Seq > 0 {
					seen.Store(e.Seq)
				}
			}
		}()
		for stored := int64(1); ; {
			synctest.Wait()
			if got := seen.Load(); got != stored {
				t.Errorf("the subscriber has seen %d events when %d are stored", got, stored)
			}
			select {
			case <-done:
				return
			case open <- struct{}{}:
			}
			synctest.Wait()
			row, err := inner.Run(t.Context(), run.ID)
			if err != nil {
				t.Fatal(err)
			}
			stored = row.Seq
		}
	})
}

func TestFullJournalIsReportedAndRunResumesLater(t *testing.T) {
	for _, tt := range []struct {
		effect   event.Effect
		runs     int32
		inDoubts int
	}{
		{event.EffectAtMostOnce, 1, 1},
		{event.EffectIdempotent, 2, 0},
	} {
		t.Run(string(tt.effect), func(t *testing.T) {
			file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = file.Close() })
			var ran atomic.Int32
			work := toolFunc("work", func(context.Context) (string, error) { ran.Add(1); return "worked", nil })
			work.Effect = tt.effect
			store := &watched{Store: file, onAppend: failOnce("tool_result", journal.ErrFull)}
			r := newRig(t, store).tools(work).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})

			run := r.start(t.Context())
			_, err = run.Wait(t.Context())
			mustBe(t, err, journal.ErrFull)
			var failed error
			for _, err := range run.Events(t.Context(), false) {
				failed = err
			}
			mustBe(t, failed, journal.ErrFull)

			if o := outcome(t, r.resume(run.ID)); !o.OK {
				t.Errorf("the resumed run ended with %+v", o)
			}
			doubts := 0
			for _, res := range results(r.whole(run.ID)) {
				if res.ErrorType == event.ErrorInDoubt {
					doubts++
				}
			}
			if ran.Load() != tt.runs || doubts != tt.inDoubts {
				t.Errorf("the tool ran %d times and %d results are in doubt; want %d and %d", ran.Load(), doubts, tt.runs, tt.inDoubts)
			}
		})
	}
}

// rows: ALDO-63
func TestResumeFromAnyEventRepeatsNothingSettled(t *testing.T) {
	var ran atomic.Int32
	work := toolFunc("work", func(context.Context) (string, error) { ran.Add(1); return "worked", nil })
	script := []scripted.Turn{
		{Text: "first", ToolCalls: calls("work", "{}", "work", "{}")},
		{Error: &scripted.Failure{Status: 400, Class: llm.ClassOverloaded, Partial: "half an"}},
		{Text: "second", ToolCalls: calls("work", "{}")},
		{Text: "done"},
	}
	synctest.Test(t, func(t *testing.T) {
		whole := newRig(t).tools(work).turns(script...)
		done := whole.start(t.Context())
		want := outcome(t, done)
		events := whole.whole(done.ID)
		records, err := whole.store.Records(t.Context(), done.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for cut := 1; cut < len(records); cut++ {
			r := newRig(t, leftBehind(t, records[:cut])).tools(work).turns(script...)
			ran.Store(0)
			got := outcome(t, r.resume(done.ID))
			if got.Reason != want.Reason || got.FinalOutput != want.FinalOutput || got.Cycles != want.Cycles {
				t.Errorf("cut after %d (%s): outcome %+v, want %+v", cut, events[cut-1].Type(), got, want)
			}
			if before, all := count(events[:cut], "tool.started"), 3; int(ran.Load()) != all-before {
				t.Errorf("cut after %d (%s): %d calls ran again, %d were started before", cut, events[cut-1].Type(), ran.Load(), before)
			}
			after := r.whole(done.ID)
			if strings.Join(names(after[:cut]), " ") != strings.Join(names(events[:cut]), " ") {
				t.Errorf("cut after %d: what was there has changed", cut)
			}
			folded := agent.New()
			for i := range after {
				if err := folded.Apply(&after[i]); err != nil {
					t.Fatalf("cut after %d: %v", cut, err)
				}
			}
		}
	})
}

// leftBehind is a journal whose only run was left by a process that is gone.
func leftBehind(t *testing.T, records []journal.Record) journal.Store {
	t.Helper()
	store := memory.New(nil)
	run, last := records[0].Run, records[len(records)-1]
	first, err := event.Decode(records[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	lease, _, err := store.Create(t.Context(), journal.Run{ID: run, Kind: "Agent", Created: first.Time}, journal.Batch{
		Lease: journal.Lease{Run: run, Owner: "gone"}, Records: records, Head: event.Hash(last.Body),
		Status: journal.Progress{State: journal.Running},
	})
	if err == nil {
		err = store.Release(t.Context(), lease)
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}
