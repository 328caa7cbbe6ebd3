package engine_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// instant is a model that answers at once, with as many output tokens.
type instant struct{ output int64 }

func (m instant) Generate(context.Context, *llm.Request) (*llm.Response, error) {
	r := said("found")
	r.Usage = llm.Usage{Input: 1, Output: m.output}
	return r, nil
}

// crowd is a run that gives that many tasks at once, of which its money lets as
// many be worked at together, 0 for all of them.
func crowd(t *testing.T, children, together int) (*rig, *engine.Run) {
	const output = 10
	child := newRig(t, memory.New(nil)).model(instant{output}).priced(0, 1000)
	child.cfg.MaxTokens, child.cfg.Limits.USDPerRun = output, budget.None
	var pairs []string
	for i := range children {
		pairs = append(pairs, "ask", fmt.Sprintf(`{"task":"part %d"}`, i))
	}
	r := newRig(t, child.store).turns(
		uses(1, 1, scripted.Turn{ToolCalls: calls(pairs...)}), uses(1, 1, scripted.Turn{Text: "done"}),
	).priced(0, 1000).offers("ask", child)
	r.cfg.MaxTokens, r.cfg.Dispatch = 2, agent.ParallelAll
	l := &r.cfg.Limits
	l.MaxToolCalls, l.MaxParallelTools, l.USDPerRun = budget.None, budget.None, budget.None
	if together > 0 {
		l.USDPerRun = float64(children)*output/1000 + float64(together-1)*output/1000 + 0.003
	}
	return r, r.start(t.Context())
}

// What a child costs does not grow with how many siblings it has, nor with how
// many of them wait for room.
func TestManyChildrenOfOneParentEachCostWhatFewDo(t *testing.T) {
	if testing.Short() {
		t.Skip("runs 600 children")
	}
	for name, together := range map[string]int{"all at once": 0, "four at a time": 4} {
		t.Run(name, func(t *testing.T) {
			each := map[int]uint64{}
			for _, n := range []int{32, 256} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r, run := crowd(t, n, together)
				o := outcome(t, run)
				runtime.ReadMemStats(&after)
				each[n] = (after.TotalAlloc - before.TotalAlloc) / uint64(n)
				output := int64(n)*10 + 2
				if o.FinalOutput != "done" || math.Abs(o.Cost.USD-float64(output)/1000) > 1e-9 || o.Usage.Output != output {
					t.Fatalf("%d children: %+v, cost %+v", n, o, o.Cost)
				}
				if ids := r.children(run.ID); len(ids) != n {
					t.Errorf("%d children", len(ids))
				}
			}
			t.Logf("bytes allocated for each: %v", each)
			if each[256] > 2*each[32] {
				t.Errorf("of a thousand children each allocates %d bytes, of a hundred %d", each[256], each[32])
			}
		})
	}
}

// runReads counts how often a run's row is looked at.
type runReads struct {
	journal.Store
	n atomic.Int64
}

func (s *runReads) Run(ctx context.Context, id string) (journal.Run, error) {
	s.n.Add(1)
	return s.Store.Run(ctx, id)
}

// A parked child's journal is read when it parks, and when it receives a command: not
// on other events, such as the end of a sibling.
func TestParkedChildrenAreLookedAtNoOftenerTheMoreThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		each := map[int]int64{}
		for _, n := range []int{10, 80} {
			store := &runReads{Store: memory.New(nil)}
			pairs := []string{"think", task}
			for range n {
				pairs = append(pairs, "ask", task)
			}
			r := newRig(t, store).turns(scripted.Turn{ToolCalls: calls(pairs...)}, scripted.Turn{Text: "done"}).
				offers("ask", pays(t, store)).offers("think", newRig(t, store).model(takes(30*time.Minute)))
			r.cfg.Dispatch = agent.ParallelAll
			run := r.start(t.Context())
			time.Sleep(time.Minute)
			parked, err := store.Runs(t.Context(), journal.Filter{Parent: run.ID, States: []journal.State{journal.Parked}})
			if err != nil || len(parked) != n {
				t.Fatalf("%d of %d children have parked, %v", len(parked), n, err)
			}
			for _, c := range parked {
				r.send(journal.Command{Run: c.ID, Kind: journal.Approve, CallID: c.ID + "-1-1", By: "ann"})
				synctest.Wait()
			}
			each[n] = store.n.Load() / int64(n)
			if o := outcome(t, run); o.FinalOutput != "done" {
				t.Errorf("%+v", o)
			}
			if parked := count(r.whole(run.ID), "child.parked"); parked != n {
				t.Errorf("%d of %d children parked", parked, n)
			}
		}
		if each[80] > each[10]+1 {
			t.Errorf("of eighty parked children each is looked at %d times, of ten %d", each[80], each[10])
		}
	})
}

// A person who is asked about one call after the other may be asked about many.
func TestManyQuestionsOfOneAnswerEachCostWhatFewDo(t *testing.T) {
	each := map[int]uint64{}
	for _, n := range []int{32, 256} {
		var pairs []string
		for i := range n {
			pairs = append(pairs, "send", fmt.Sprintf(`{"to":"%d"}`, i))
		}
		r := newRig(t).turns(scripted.Turn{ToolCalls: calls(pairs...)}, scripted.Turn{Text: "done"}).
			tools(argsTool("send", func(string) {})).gate("send").
			asker(func(context.Context, event.Question) (event.Resolution, error) {
				return event.Resolution{Kind: event.ApprovalApproved, Approver: "ann"}, nil
			})
		r.env.AskInTurn, r.cfg.Limits.MaxToolCalls = true, budget.None
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if o := outcome(t, r.start(t.Context())); o.FinalOutput != "done" {
			t.Fatalf("%d questions: %+v", n, o)
		}
		runtime.ReadMemStats(&after)
		each[n] = (after.TotalAlloc - before.TotalAlloc) / uint64(n)
	}
	t.Logf("bytes allocated for each: %v", each)
	if each[256] > 2*each[32] {
		t.Errorf("of a thousand questions each allocates %d bytes, of a hundred %d", each[256], each[32])
	}
}
