package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/openai"
	llmreplay "github.com/pawlrun/pawl/llm/replay"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// wired answers from a script and encodes requests as a provider's wire does.
type wired struct {
	llm.Streamer
	llm.Encoder
}

func onWire(turns ...scripted.Turn) wired {
	return wired{scripted.New("test", turns...), anthropic.New(anthropic.Options{APIKey: "none"})}
}

// replayed replays a run and fails the test when it diverges.
func (r *rig) replayed(run string) replay.Replayed {
	r.t.Helper()
	got, err := replay.Run(r.t.Context(), r.Past(), run, r.env.Model)
	if err != nil {
		r.t.Fatalf("replay run %s: %v", run, err)
	}
	for _, d := range got.Divergences {
		r.t.Errorf("run %s: %s", run, d)
	}
	return got
}

// randomTurns is a script of answers, calls and failures, the same for a seed.
func randomTurns(rng *rand.Rand) []scripted.Turn {
	var turns []scripted.Turn
	for range 1 + rng.IntN(8) {
		switch rng.IntN(6) {
		case 0:
			turns = append(turns, scripted.Turn{Error: &scripted.Failure{Class: llm.ClassOverloaded, Partial: "half"}})
		case 1:
			turns = append(turns, scripted.Turn{Text: "cut", ToolCalls: calls("read", "{}"), Finish: llm.FinishLength})
		case 2:
			turns = append(turns, scripted.Turn{})
		default:
			var t scripted.Turn
			for i := range 1 + rng.IntN(4) {
				name := []string{"read", "write", "gated", "broken", "unknown"}[rng.IntN(5)]
				t.ToolCalls = append(t.ToolCalls, call(name, fmt.Sprintf(`{"n":%d}`, i)))
			}
			turns = append(turns, t)
		}
	}
	return append(turns, scripted.Turn{Text: "done"})
}

// rows: ALDO-63
func TestAReplayGivesTheSameEventsAndRequests(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			model := llm.Model(onWire(randomTurns(rng)...))
			if seed%2 == 1 {
				model = scripted.New("test", randomTurns(rng)...) // sends nothing, and is compared all the same
			}
			r := newRig(t).tools(reading(numbered("read", nil)), numbered("write", nil), numbered("gated", nil), numbered("broken", errors.New("broken"))).
				model(model).gate("gated")
			run := r.start(t.Context())
			id := run.ID
			if rng.IntN(3) == 0 {
				run.Interrupt()
			}
			for range 20 {
				s := wait(t, run)
				if s.Outcome != nil {
					break
				}
				for _, p := range s.Pending {
					kind := []journal.CommandKind{journal.Approve, journal.Reject}[rng.IntN(2)]
					r.send(journal.Command{Run: id, Kind: kind, CallID: p.ID, By: "ann"})
				}
				r.send(journal.Command{Run: id, Kind: journal.Input, Text: "and mind this", By: "ann"})
				run = r.resume(id)
			}
			got := r.replayed(id)
			events := r.whole(id)
			asked := count(events, "model.requested")
			if got.Events != int64(len(events)) || got.Requests != asked || got.Compared != asked || got.Decisions < 2*asked {
				t.Errorf("seed %d: %+v of %d events with %d requests", seed, got, len(events), asked)
			}
			fork, _ := r.fork(id, 1+rng.Int64N(int64(len(events))), event.RunForked{})
			r.replayed(fork)
		})
	}
}

func TestAReplayOfAThousandStepsSendsTheSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const steps = 1000
		turns := make([]scripted.Turn, steps)
		for i := range turns {
			turns[i] = scripted.Turn{Text: fmt.Sprint("step ", i), ToolCalls: []scripted.Call{call("read", fmt.Sprintf(`{"n":%d}`, i))}}
		}
		r := newRig(t).tools(reading(numbered("read", nil))).model(onWire(append(turns, scripted.Turn{Text: "done"})...))
		r.cfg.Limits.MaxCycles, r.cfg.Limits.MaxToolCalls = 2*steps, 2*steps
		run := r.start(t.Context())
		if o := outcome(t, run); o.Cycles != steps+1 {
			t.Fatalf("outcome %+v", o)
		}
		if got := r.other().replayed(run.ID); got.Compared != steps+1 {
			t.Errorf("%d of %d requests were compared", got.Compared, steps+1)
		}
	})
}

// What a search is sent as depends on whether it found anything. A fork may say
// that it did, after the model was asked in vain with the words of its failure.
func TestAForkThatReplacesAFailedSearchIsReplayedTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		find := toolFunc("find", func(context.Context) (string, error) { return "", errors.New("the catalogue is away") })
		find.Search = true
		clock := numbered("clock", nil)
		clock.Deferred = true
		turn := 0
		r := newRig(t).tools(find, clock).model(struct {
			modelFunc
			llm.Encoder
		}{
			func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
				switch turn++; turn {
				case 1:
					return &llm.Response{Parts: llm.Parts{llm.ToolCall{
						ProviderID: "call_a1b2c3d4e5", Name: "find", Args: []byte(`{"q":"time"}`), Raw: []byte(`{"id":"tsc_1","type":"tool_search_call"}`),
					}}}, nil
				case 2:
					return nil, &llm.Error{Class: llm.ClassOverloaded, Message: "later"}
				}
				return said("done"), nil
			},
			openai.New(openai.Options{Provider: "test"}),
		})
		r.cfg.Targets[0].Model = "test/gpt-5.4"
		model := r.env.Model
		r.env.Model = func(target string) (llm.Model, string, error) {
			m, _, err := model(target)
			return m, "gpt-5.4", err
		}
		run := r.start(t.Context())
		outcome(t, run)
		failed := slices.IndexFunc(r.whole(run.ID), func(e event.Event) bool { return e.Type() == event.TypeModelAttemptFailed })
		fork, _ := r.fork(run.ID, int64(failed+1), event.RunForked{Results: []event.ForkedResult{{CallID: run.ID + "-1-1", Output: "found clock"}}})
		outcome(t, r.resume(fork))
		if got := r.other().replayed(fork); got.Compared != 3 {
			t.Errorf("%d requests were compared, want 3", got.Compared)
		}
	})
}

func TestAReplayNamesWhatWouldBeOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).tools(reading(numbered("read", nil))).
			model(onWire(scripted.Turn{ToolCalls: calls("read", "{}")}, scripted.Turn{Text: "done"}))
		run := r.start(t.Context())
		outcome(t, run)
		other := anthropic.New(anthropic.Options{APIKey: "none"})
		got, err := replay.Run(t.Context(), r.Past(), run.ID, func(string) (llm.Model, string, error) { return wired{nil, other}, "another-name", nil })
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Divergences) != 2 || got.Divergences[0].Type != event.TypeModelRequested || got.Divergences[0].Recorded == got.Divergences[0].Now {
			t.Errorf("another wire: %v", got.Divergences)
		}
		// A journal whose driver decided what the machine does not.
		for name, c := range map[string]struct {
			of    event.Type
			data  event.Data
			wants string
		}{
			"another decision": {event.TypeToolResults, event.ToolResults{Cycle: 1, Results: []event.ResultRef{}}, "another decision"},
			"no decision":      {event.TypeToolResults, event.BudgetWarning{Setting: "usd_per_run"}, "this is not decided"},
		} {
			fork, b := r.fork(run.ID, 1, event.RunForked{})
			records, err := r.store.Records(t.Context(), run.ID, b.Seq, 0)
			if err != nil {
				t.Fatal(err)
			}
			found := r.rewritten(fork, records, c.of, c.data)
			if len(found) == 0 || found[0].What != c.wants {
				t.Errorf("%s: %v", name, found)
			}
		}
	})
}

// rewritten copies events of a run behind its fork, up to the first of a type,
// which is replaced, and replays that.
func (r *rig) rewritten(fork string, records []journal.Record, of event.Type, data event.Data) []replay.Divergence {
	r.t.Helper()
	r.forged = true
	row, err := r.store.Run(r.t.Context(), fork)
	if err != nil {
		r.t.Fatal(err)
	}
	lease, err := r.store.Acquire(r.t.Context(), fork, "somebody", "", 1)
	if err != nil {
		r.t.Fatal(err)
	}
	b := journal.Batch{Lease: lease, Head: row.Head, Status: row.Progress, Release: true}
	for _, rec := range records {
		e, err := event.Decode(rec.Body)
		if err != nil {
			r.t.Fatal(err)
		}
		last := e.Type() == of
		if last {
			e.Data = data
		}
		e.Run, e.Seq, e.Prev = fork, row.Seq+1+int64(len(b.Records)), b.Head
		body, err := event.Encode(e)
		if err != nil {
			r.t.Fatal(err)
		}
		b.Records = append(b.Records, journal.Record{Run: fork, Seq: e.Seq, Type: string(e.Type()), Body: body})
		if b.Head = event.Hash(body); last {
			break
		}
	}
	if _, err := r.store.Append(r.t.Context(), b); err != nil {
		r.t.Fatal(err)
	}
	got, err := replay.Run(r.t.Context(), r.Past(), fork, r.env.Model)
	if len(got.Divergences) == 0 && err != nil {
		r.t.Fatal(err)
	}
	// The keys of calls name the run that started them.
	return slices.DeleteFunc(got.Divergences, func(d replay.Divergence) bool { return d.Type == event.TypeToolStarted })
}

// answering is a recorded run in the place of a model, and what it was asked
// otherwise.
type answering struct {
	calls   int
	differs []llmreplay.Difference
}

// onRecord has a run's record answer the rig's next runs.
func (r *rig) onRecord(run string) *answering {
	r.t.Helper()
	calls, err := r.Past().Recording(r.t.Context(), run)
	if err != nil {
		r.t.Fatal(err)
	}
	rec := &answering{calls: len(calls)}
	r.model(llmreplay.New(run, calls, func(d llmreplay.Difference) { rec.differs = append(rec.differs, d) }))
	return rec
}

// playAgain starts a run and another one on its record, and holds that both run
// alike.
func (r *rig) playAgain() (rec *answering, first, then []event.Event) {
	r.t.Helper()
	run := r.start(r.t.Context())
	want := outcome(r.t, run)
	rec = r.onRecord(run.ID)
	again := r.start(r.t.Context())
	got := outcome(r.t, again)
	if len(rec.differs) != 0 {
		r.t.Errorf("the same run asks otherwise: %v", rec.differs)
	}
	if got.FinalOutput != want.FinalOutput || got.Cycles != want.Cycles {
		r.t.Errorf("the run ended as %+v, its replay as %+v", want, got)
	}
	first, then = r.whole(run.ID), r.whole(again.ID)
	if diff := cmp.Diff(names(first), names(then)); diff != "" {
		r.t.Errorf("events (-recorded +replayed):\n%s", diff)
	}
	return rec, first, then
}

func TestARecordedRunIsAModelThatAnswersTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := eventful(t)
		rec, _, _ := r.playAgain()
		r.cfg.System = "Be brief."
		outcome(t, r.start(t.Context()))
		if len(rec.differs) != rec.calls || rec.differs[0].Segment != "system prompt" {
			t.Errorf("another prompt: %d of %d requests differ: %v", len(rec.differs), rec.calls, rec.differs)
		}
	})
}

// numbered is a tool that takes a number and gives it back, or fails.
func numbered(name string, err error) tool.Tool {
	return tool.New(name, "A tool of the test's.", func(_ context.Context, args struct {
		N int `json:"n,omitempty"`
	}) (string, error) {
		return fmt.Sprint(name, " ", args.N), err
	})
}

// reading is a tool that only reads.
func reading(t tool.Tool) tool.Tool {
	t.ReadOnly, t.Concurrent, t.Effect = true, true, event.EffectPure
	return t
}

// What is asked about several calls at once has the same times when it is
// decided again, one event after the other.
func TestQuestionsAboutSeveralCallsAreReplayed(t *testing.T) {
	for _, approve := range []agent.ApproveMode{agent.ApproveAll, agent.ApproveDeny, agent.ApproveBypass} {
		t.Run(string(approve), func(t *testing.T) {
			r := newRig(t).tools(printing("ask", tool.Result{Output: "asked"}, nil)).gate("ask")
			r.cfg.Approve, r.cfg.Approvals.Seconds = approve, 3600
			r.turns(scripted.Turn{ToolCalls: calls("ask", "{}", "ask", "{}", "ask", "{}")}, scripted.Turn{Text: "done"})
			run := r.start(t.Context())
			drain(t, run, false)
			if n := count(r.whole(run.ID), "tool.approval_resolved"); n != 3 {
				t.Fatalf("%d decisions", n)
			}
			r.replayed(run.ID)
		})
	}
}

// The source of a replay's results is not in its journal: a process that resumed it
// would repeat the effects of the run that it replays. A fork of it has tools of its
// own.
func TestAReplayIsNotTakenUpWithToolsThatAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).turns(scripted.Turn{Text: "done"})
		started := r.started()
		started.Replays = "k7x2"
		id := engine.NewID()
		err := r.Create(t.Context(), id, started, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := r.Resume(t.Context(), id, func(event.RunStarted) (perform.Env, error) { return r.env, nil })
			if !errors.Is(err, engine.ErrReplay) || !strings.Contains(err.Error(), "k7x2") {
				t.Errorf("the replay: %v", err)
			}
		}
		fork, _ := r.fork(id, 1, event.RunForked{})
		if o := outcome(t, r.resume(fork)); !o.OK {
			t.Errorf("a fork of it ended as %+v", o)
		}
	})
}
