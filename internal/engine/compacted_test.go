package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/internal/rules/history"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// worker is a model that reads one thing after the other for a number of
// cycles, and sums up when it is asked to. Its requests have a provider's bytes,
// which it holds against those that are encoded without a memo.
type worker struct {
	t      *testing.T
	cycles int
	llm.Encoder
}

func (w *worker) Generate(_ context.Context, req *llm.Request) (*llm.Response, error) {
	last := req.Messages[len(req.Messages)-1].Text()
	if strings.Contains(last, "Write the summary") || strings.Contains(last, "Sum up this transcript") {
		return said(fmt.Sprintf("summary of %d messages", len(req.Messages))), nil
	}
	// What the model does follows from what it sees, as a model's does.
	n := -1
	for _, m := range req.Messages {
		for _, c := range m.Parts.ToolCalls() {
			var args struct{ N int }
			_ = json.Unmarshal(c.Args, &args)
			n = max(n, args.N)
		}
	}
	size := int64(compact.Messages(req.Messages))
	if n+1 >= w.cycles {
		return said("done"), nil
	}
	return &llm.Response{
		Parts: llm.Parts{llm.Text{Text: fmt.Sprint("step ", n+1)}, llm.ToolCall{
			ProviderID: fmt.Sprint("p", n), Name: "read", Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n+1)),
		}},
		Finish: llm.FinishTool, Usage: llm.Usage{Input: size, Output: 20},
	}, nil
}

func (w *worker) Encode(req *llm.Request) (*llm.Encoded, error) {
	got, err := w.Encoder.Encode(req)
	if err != nil {
		return nil, err
	}
	bare := *req
	bare.Memo = nil
	want, err := w.Encoder.Encode(&bare)
	if err == nil && (got.Digest != want.Digest || !slices.Equal(slices.Concat(got.Segments...), slices.Concat(want.Segments...))) {
		w.t.Error("the bytes with a memo are not those without")
	}
	return got, err
}

// long is a rig whose run of so many cycles does not fit in its window.
func long(t *testing.T, cycles int, s compact.Settings) *rig {
	t.Helper()
	r := newRig(t).tools(reading(tool.New("read", "A tool of the test's.", func(_ context.Context, args struct {
		N int `json:"n"`
	}) (string, error) {
		return strings.Repeat(fmt.Sprintf("%d is read. ", args.N), 40), nil
	}))).model(&worker{t: t, cycles: cycles, Encoder: anthropic.New(anthropic.Options{APIKey: "none"})})
	r.cfg.Compact = s
	r.cfg.Limits.MaxCycles, r.cfg.Limits.MaxToolCalls = 2*cycles, 2*cycles
	return r
}

var compacting = []compact.Settings{
	{Window: 3000}, {Window: 3000, Strategy: compact.RollingWindow}, {Window: 3000, Strategy: compact.PeriodicSummary},
	{Window: 3000, Strategy: compact.SummarizeOlder}, {Window: 3000, Strategy: compact.SummarizeOlder, Measure: compact.MeasureProvider, KeepTurns: 1},
}

func compressed(events []event.Event) []event.HistoryCompressed {
	var all []event.HistoryCompressed
	for _, e := range events {
		if d, ok := e.Data.(event.HistoryCompressed); ok {
			all = append(all, d)
		}
	}
	return all
}

func TestAReplayOfACompactedRunGivesTheSameEventsAndBytes(t *testing.T) {
	for seed, settings := range compacting {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 2))
			r := long(t, 60, settings)
			run := r.start(t.Context())
			id := run.ID
			for s := wait(t, run); s.Outcome == nil; s = wait(t, run) {
				run = r.other().resume(id)
				if rng.IntN(3) == 0 {
					run.Interrupt()
				}
			}
			events := r.whole(id)
			if n := len(compressed(events)); n < 3 {
				t.Fatalf("%+v: %d compactions", settings, n)
			}
			got := r.other().replayed(id)
			if asked := count(events, "model.requested"); got.Requests != asked || got.Compared != asked {
				t.Errorf("%+v: %d of %d requests were compared", settings, got.Compared, asked)
			}
			for _, e := range events {
				if e.Type() == event.TypeHistoryCompressed {
					fork, _ := r.fork(id, e.Seq-int64(rng.IntN(2)), event.RunForked{})
					outcome(t, r.resume(fork))
					r.replayed(fork)
				}
			}
		})
	}
}

// The same bytes after a restart and after compaction.
func TestAReplayOfAThousandCompactedStepsSendsTheSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const steps = 1000
		r := long(t, steps, compact.Settings{Window: 20_000})
		run := r.start(t.Context())
		if o := outcome(t, run); o.Cycles != steps+1 {
			t.Fatalf("outcome %+v", o)
		}
		if n := len(compressed(r.whole(run.ID))); n < 10 {
			t.Errorf("%d compactions", n)
		}
		if got := r.other().replayed(run.ID); got.Compared != got.Requests || got.Compared <= steps {
			t.Errorf("%d of %d requests were compared", got.Compared, got.Requests)
		}
	})
}

func TestACompactedRunIsAModelThatAnswersTheSame(t *testing.T) {
	for _, settings := range compacting {
		t.Run(fmt.Sprintf("%+v", settings), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := long(t, 40, settings)
				rec, first, then := r.playAgain()
				// The ids of calls carry their run.
				ids := cmpopts.IgnoreFields(event.HistoryCompressed{}, "Cleared", "Clamped")
				if diff := cmp.Diff(compressed(first), compressed(then), ids); diff != "" {
					t.Errorf("compactions (-recorded +replayed):\n%s", diff)
				}
				r.cfg.Compact.Window = 2500
				outcome(t, r.start(t.Context()))
				if len(rec.differs) == 0 {
					t.Error("another window, and no request differs")
				}
			})
		})
	}
}

func TestAReplayNamesACompactionThatWouldBeOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := long(t, 30, compact.Settings{Window: 3000, Strategy: compact.RollingWindow})
		run := r.start(t.Context())
		outcome(t, run)
		events := r.whole(run.ID)
		at := slices.IndexFunc(events, func(e event.Event) bool { return e.Type() == event.TypeHistoryCompressed })
		other := compressed(events)[0]
		other.Removed, other.Dropped = []event.MessageRange{{From: 1, To: 3}}, 2
		for name, c := range map[string]struct {
			of    event.Type
			data  event.Data
			wants string
		}{
			"less leaves":           {event.TypeHistoryCompressed, other, "another decision"},
			"nothing was to change": {event.TypeCycleStart, other, "this is not decided"},
		} {
			// Not long before, because the keys of calls name the run that they are of.
			fork, b := r.fork(run.ID, events[at].Seq-20, event.RunForked{})
			records, err := r.store.Records(t.Context(), run.ID, b.Seq, 0)
			if err != nil {
				t.Fatal(err)
			}
			found := r.rewritten(fork, records, c.of, c.data)
			if len(found) == 0 || found[0].What != c.wants || found[0].Type != event.TypeHistoryCompressed {
				t.Errorf("%s: %v", name, found)
			}
		}
	})
}

// A compaction is undone by a fork before it: what left is there again, byte
// for byte, and stays where the fork has room for it.
func TestAForkBeforeACompactionUndoesIt(t *testing.T) {
	for _, settings := range compacting {
		synctest.Test(t, func(t *testing.T) {
			r := long(t, 30, settings)
			run := r.start(t.Context())
			outcome(t, run)
			events := r.whole(run.ID)
			at := slices.IndexFunc(events, func(e event.Event) bool { return e.Type() == event.TypeHistoryCompressed })
			d := compressed(events)[0]

			roomy := r.cfg.WithDefaults()
			roomy.Compact.Window = 200_000
			config, err := json.Marshal(roomy)
			if err != nil {
				t.Fatal(err)
			}
			fork, b := r.fork(run.ID, events[at].Seq-1, event.RunForked{Config: config, Changed: []string{"context_window"}})
			before := b.Machine.(*agent.Machine).Transcript()
			outcome(t, r.resume(fork))
			after := r.whole(fork)
			if n := len(compressed(after)); n != 0 {
				t.Fatalf("%+v: the fork is compacted %d times", settings, n)
			}
			if len(before) != d.Dropped+d.Kept-summaries(d) {
				t.Errorf("%+v: %d messages before, %d dropped and %d kept", settings, len(before), d.Dropped, d.Kept)
			}
			if err := history.Lint(before); err != nil {
				t.Error(err)
			}
			got := r.replayed(fork)
			if got.Requests == 0 {
				t.Error("nothing was asked")
			}
		})
	}
}

func summaries(d event.HistoryCompressed) int {
	if d.Summary != "" {
		return 1
	}
	return 0
}

// What a tool pins is in the journal, and in the calls of a replay that has
// recorded tools.
func TestWhatAToolPinsIsJournalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		todo := toolFunc("todo", nil)
		todo.Run = func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Output: "open: mend it", Pin: "todo"}, nil
		}
		r := newRig(t).tools(todo).turns(scripted.Turn{ToolCalls: calls("todo", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		outcome(t, run)
		recorded, err := replay.Tools(t.Context(), r.Past(), run.ID, r.env.Tools)
		if err != nil {
			t.Fatal(err)
		}
		r.env.Tools = recorded
		again := r.turns(scripted.Turn{ToolCalls: calls("todo", "{}")}, scripted.Turn{Text: "done"}).start(t.Context())
		outcome(t, again)
		for _, id := range []string{run.ID, again.ID} {
			if got := results(r.whole(id)); len(got) != 1 || got[0].Pin != "todo" {
				t.Errorf("%+v", got)
			}
		}
	})
}
