package engine_test

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// grown is a tree that has ended: a run, and a child that called a tool.
func grown(t *testing.T) (r, child *rig, run string) {
	child = newRig(t).turns(scripted.Turn{ToolCalls: calls("look", "{}")}, scripted.Turn{Text: "42"}).priced(1, 2).tools(toolFunc("look", well))
	r = newRig(t, child.store).turns(
		scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"},
	).priced(1, 2).offers("ask", child)
	started := r.start(t.Context())
	outcome(t, started)
	return r, child, started.ID
}

func TestATreeIsReplayedRunByRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, child, run := grown(t)
		if got := r.replayed(run); got.Decisions == 0 || got.Requests != 2 {
			t.Errorf("%+v", got)
		}
		if got := child.replayed(r.children(run)[0]); got.Decisions == 0 || got.Requests != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// With the tools of the record a child is not started again: its call gives
// what it gave.
func TestARecordedAgentIsNotStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, run := grown(t)
		recorded, err := replay.Tools(t.Context(), r.Past(), run, r.env.Tools)
		if err != nil {
			t.Fatal(err)
		}
		r.env.Tools, r.env.Children = recorded, nil
		again := r.start(t.Context())
		if o := outcome(t, again); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		if got := results(r.whole(again.ID)); got[0].Output != "42" || len(r.children(again.ID)) != 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestAForkBeginsWhereNoChildIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, run := grown(t)
		events := r.journal(run)
		at := func(kind string) int64 { return int64(slices.Index(names(events), kind) + 1) }
		for _, inside := range []int64{at("child.started"), at("child.started") + 1, at("child.finished")} {
			b, err := r.Branch(t.Context(), run, inside)
			if err != nil || b.Seq >= at("model.response") {
				t.Errorf("a fork at %d begins at %d (%v)", inside, b.Seq, err)
			}
		}
		b, err := r.Branch(t.Context(), run, at("tool.results"))
		if err != nil || b.Seq != at("tool.results") {
			t.Fatalf("%+v, %v", b, err)
		}
		id, err := r.Fork(t.Context(), b, event.RunForked{})
		if err != nil {
			t.Fatal(err)
		}
		r.turns(scripted.Turn{}, scripted.Turn{Text: "otherwise"}).priced(1, 2)
		if o := outcome(t, r.resume(id)); o.FinalOutput != "otherwise" || o.Usage.Output > 40 {
			t.Errorf("%+v", o)
		}
	})
}

// A fork of a child is a run of its own, without a parent's budget.
func TestAForkOfAChildHasNoParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, child, run := grown(t)
		id := r.children(run)[0]
		b, err := r.Branch(t.Context(), id, int64(slices.Index(names(r.journal(id)), "tool.results")+1))
		if err != nil {
			t.Fatal(err)
		}
		fork, err := r.Fork(t.Context(), b, event.RunForked{})
		if err != nil {
			t.Fatal(err)
		}
		if o := outcome(t, child.other().resume(fork)); o.FinalOutput != "42" {
			t.Errorf("%+v", o)
		}
	})
}

func TestATreeIsExportedAndVerifiedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, run := grown(t)
		var out bytes.Buffer
		got, err := journal.Export(t.Context(), r.store, run, &out)
		if err != nil || got.Runs != 2 {
			t.Fatalf("%+v, %v", got, err)
		}
		if rows := bytes.Count(out.Bytes(), []byte(`"row":`)); rows != 2 {
			t.Errorf("%d runs are in the export", rows)
		}
		for _, id := range append(r.children(run), run) {
			if _, err := journal.Verify(t.Context(), r.store, id, ""); err != nil {
				t.Error(err)
			}
		}
	})
}

// Whatever a child calls a model for is set aside above first: its cycles, a
// retry, a fallback, a stream that broke, and a summary.
func TestEveryCallOfAChildDrawsFromItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := "a long story that goes on and on, sentence after sentence, and never comes to its end. "
		for range 4 {
			long += long
		}
		child := newRig(t).turns(
			scripted.Turn{Error: &scripted.Failure{Class: llm.ClassOverloaded, Partial: "half a"}},
			uses(300, 200, scripted.Turn{Text: long, ToolCalls: calls("look", "{}")}),
			uses(600, 200, scripted.Turn{Text: long, ToolCalls: calls("look", "{}")}),
			uses(900, 200, scripted.Turn{Text: long, ToolCalls: calls("look", "{}")}),
			uses(400, 20, scripted.Turn{Text: "the story so far"}),
			uses(100, 20, scripted.Turn{Text: "the end"}), uses(100, 20, scripted.Turn{Text: "the end"}), uses(100, 20, scripted.Turn{Text: "the end"}),
		).priced(1, 2).tools(toolFunc("look", well))
		child.cfg.Targets = append(child.cfg.Targets, agent.Target{Model: "test/other", Price: &llm.Price{Input: 3, Output: 4}})
		child.cfg.Compact = compact.Settings{Window: 1200, Strategy: compact.SummarizeOlder, KeepMessages: 2}
		child.cfg.MaxTokens = 500
		r := newRig(t, child.store).turns(
			scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"},
		).priced(1, 2).offers("ask", child)
		run := r.start(t.Context())
		outcome(t, run)
		id := r.children(run.ID)[0]
		above := map[string]bool{}
		for _, e := range r.whole(run.ID) {
			if d, ok := e.Data.(event.BudgetReserved); ok && d.Run == id {
				above[d.ID] = true
			}
		}
		kinds, open := map[string]int{}, ""
		for _, e := range r.whole(id) {
			switch d := e.Data.(type) {
			case event.BudgetReserved:
				if open = d.ID; !above[d.ID] {
					t.Errorf("%s was not set aside above", d.ID)
				}
			case event.ModelRequested:
				kinds[string(d.Purpose)+" "+d.Model]++
				if open == "" {
					t.Errorf("attempt %d at %s has nothing set aside", d.Attempt, d.Model)
				}
			case event.BudgetCommitted:
				open = ""
			}
		}
		if kinds[" test/model"] == 0 || kinds[" test/other"] == 0 || kinds["summary test/other"] == 0 {
			t.Errorf("the child called %v", kinds)
		}
		r.balanced(run.ID)
	})
}

// An agent that was offered when the run began and is not any more leaves an
// error, and no child behind.
func TestAnAgentThatIsGoneEndsItsChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(scripted.Turn{ToolCalls: calls("pay", "{}")}).tools(toolFunc("pay", well)).gate("pay")
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		r.env.Children = map[string]perform.Child{}
		if o := outcome(t, r.other().resume(run.ID)); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		if got := results(r.whole(run.ID)); got[0].ErrorType != event.ErrorUnavailable {
			t.Errorf("%+v", got)
		}
		r.whole(r.children(run.ID)[0])
	})
}
