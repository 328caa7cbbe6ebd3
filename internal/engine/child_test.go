package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// offers gives a rig's run an agent behind a tool: another rig is what that
// agent's runs are made of.
func (r *rig) offers(name string, of *rig, beside ...tool.Tool) *rig {
	r.t.Helper()
	all := append([]tool.Tool{tool.ForAgent(name, "An agent of the test's.", of.env.Tools)}, beside...)
	for _, def := range r.env.Tools.Defs() {
		t, _ := r.env.Tools.Lookup(def.Name)
		all = append(all, t)
	}
	r.tools(all...)
	if r.env.Children == nil {
		r.env.Children = map[string]perform.Child{}
	}
	r.env.Children[name] = perform.Child{
		Begin: func(args json.RawMessage) (event.RunStarted, perform.Env, error) {
			var task tool.Task
			if err := json.Unmarshal(args, &task); err != nil {
				return event.RunStarted{}, perform.Env{}, err
			}
			started, err := agent.Start(of.cfg.WithDefaults(), llm.UserText(task.Task))
			return started, of.env, err
		},
		Resume: func(string, event.RunStarted) (perform.Env, error) { return of.env, nil },
	}
	return r
}

// priced gives every model of a rig a price per million tokens.
func (r *rig) priced(input, output float64) *rig {
	for i := range r.cfg.Targets {
		r.cfg.Targets[i].Price = &llm.Price{Input: input, Output: output}
	}
	return r
}

// children are the runs that a run started, oldest first.
func (r *rig) children(id string) []string {
	r.t.Helper()
	var ids []string
	for _, e := range r.journal(id) {
		if d, ok := e.Data.(event.ChildStarted); ok {
			ids = append(ids, d.Child)
		}
	}
	return ids
}

const task = `{"task":"look it up"}`

func uses(input, output int64, t scripted.Turn) scripted.Turn {
	t.Usage = &llm.Usage{Input: input, Output: output}
	return t
}

func TestAnAgentAnswersACallAsARunOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(uses(100, 50, scripted.Turn{Text: "42"})).priced(1, 2)
		r := newRig(t, child.store).turns(
			uses(10, 5, scripted.Turn{ToolCalls: calls("ask", task)}), uses(20, 7, scripted.Turn{Text: "it is 42"}),
		).priced(1, 2).offers("ask", child)
		run := r.start(t.Context())
		o := outcome(t, run)
		events := r.whole(run.ID)
		ids := r.children(run.ID)
		if len(ids) != 1 {
			t.Fatalf("children %v", ids)
		}
		row, err := r.store.Run(t.Context(), ids[0])
		if err != nil || row.Parent != run.ID || row.State != journal.Ended {
			t.Fatalf("%+v, %v", row, err)
		}
		for _, e := range r.whole(ids[0]) {
			if e.Parent != run.ID {
				t.Errorf("%s names the parent %q", e.Type(), e.Parent)
			}
		}
		if got := results(events); len(got) != 1 || got[0].Output != "42" || got[0].IsError || !got[0].Untrusted {
			t.Errorf("%+v", got)
		}
		if o.FinalOutput != "it is 42" || o.Usage.Input != 130 || o.Usage.Output != 62 || !near(o.Cost.USD, 130e-6+124e-6) || !o.Cost.Priced {
			t.Errorf("outcome %+v, cost %+v", o, o.Cost)
		}
		for _, e := range events {
			if d, ok := e.Data.(event.ChildFinished); ok && (d.Outcome.Usage.Input != 100 || d.CallID != run.ID+"-1-1" || d.Child != ids[0]) {
				t.Errorf("%+v", d)
			}
		}
	})
}

func near(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 }

// The child's own journal has each reservation behind the parent's: nothing is
// called that the parent's budget has not set aside on disk.
func TestAChildsCallIsSetAsideInItsParentsJournalFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(scripted.Turn{Text: "42"}).priced(1, 2)
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).priced(1, 2).offers("ask", child)
		run := r.start(t.Context())
		outcome(t, run)
		id := r.children(run.ID)[0]
		at := map[string]int64{}
		for _, e := range append(r.journal(run.ID), r.journal(id)...) {
			switch d := e.Data.(type) {
			case event.BudgetReserved:
				if d.Run == id {
					at["above"] = e.Pos
				} else if e.Run == id {
					at["below"] = e.Pos
				}
			case event.ModelRequested:
				if e.Run == id {
					at["call"] = e.Pos
				}
			case event.BudgetCommitted:
				if d.Run == id {
					at["used above"] = e.Pos
				} else if e.Run == id {
					at["used below"] = e.Pos
				}
			case event.ChildFinished:
				at["finished"] = e.Pos
			}
		}
		order := []string{"above", "below", "call", "used below", "used above", "finished"}
		for i, what := range order {
			if at[what] == 0 || i > 0 && at[what] <= at[order[i-1]] {
				t.Fatalf("%q is out of order: %v", what, at)
			}
		}
	})
}

func TestAParentsLimitBoundsItsChildWhateverItsOwnSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A call of 100 output tokens at a dollar a thousand is USD 0.10 and its input.
		child := newRig(t).turns(
			uses(10, 900, scripted.Turn{ToolCalls: calls("read", "{}")}), uses(10, 900, scripted.Turn{ToolCalls: calls("read", "{}")}),
			uses(10, 10, scripted.Turn{Text: "never said"}),
		).priced(0, 1000).tools(toolFunc("read", well))
		child.cfg.MaxTokens, child.cfg.Limits.USDPerRun = 2000, 100
		r := newRig(t, child.store).turns(
			uses(10, 10, scripted.Turn{ToolCalls: calls("ask", task)}), uses(10, 10, scripted.Turn{Text: "over"}),
		).priced(0, 1000).offers("ask", child)
		r.cfg.MaxTokens, r.cfg.Limits.USDPerRun = 1000, 2.5
		run := r.start(t.Context())
		o := outcome(t, run)
		if o.Cost.USD > 2.5 {
			t.Errorf("the tree cost %v", o.Cost.USD)
		}
		id := r.children(run.ID)[0]
		var caps []int64
		for _, e := range r.whole(id) {
			if d, ok := e.Data.(event.BudgetReserved); ok {
				caps = append(caps, d.Output)
			}
		}
		// USD 2.49 are left of the parent's 2.50: enough for 2000 tokens, then for less than 1600, then for too little.
		if len(caps) != 2 || caps[0] != 2000 || caps[1] > 1590 || caps[1] < 1580 {
			t.Errorf("the child's calls were capped at %v", caps)
		}
		events := r.journal(id)
		end, _ := events[len(events)-1].Data.(event.RunCompleted)
		if end.Outcome.Reason != "budget:usd_per_run" || !strings.Contains(end.Outcome.NextSafeAction, "the run which started this one") {
			t.Errorf("the child ended as %+v", end.Outcome)
		}
		if got := results(r.whole(run.ID)); len(got) != 1 || !got[0].IsError || got[0].ErrorType != event.ErrorAgent ||
			!strings.Contains(got[0].Output, "budget:usd_per_run") || !strings.Contains(got[0].Output, "raise usd_per_run there") {
			t.Errorf("%+v", got)
		}
	})
}

// What is set aside above is a cap on the answer as well, also where the child
// itself has no limit that would need one.
func TestAChildWithoutLimitsIsHeldToWhatItsParentSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := &boundless{}
		child := newRig(t).model(model).priced(0, 1000)
		child.cfg.Limits.USDPerRun = budget.None
		r := newRig(t, child.store).turns(
			uses(10, 10, scripted.Turn{ToolCalls: calls("ask", task)}), uses(10, 10, scripted.Turn{Text: "over"}),
		).priced(0, 1000).offers("ask", child)
		r.cfg.MaxTokens, r.cfg.Limits.USDPerRun = 1000, 2.5
		o := outcome(t, r.start(t.Context()))
		// USD 0.01 of the 2.50 are used, and a token costs a tenth of a cent.
		if len(model.caps) != 1 || model.caps[0] < 2480 || model.caps[0] > 2490 || o.Cost.USD > 2.5 {
			t.Errorf("the child was asked for at most %d tokens, and the tree cost USD %v", model.caps, o.Cost.USD)
		}
	})
}

// boundless is a model that says as much as it is let.
type boundless struct{ caps []int }

func (m *boundless) Generate(_ context.Context, req *llm.Request) (*llm.Response, error) {
	m.caps = append(m.caps, req.MaxTokens)
	r := said("and so on")
	r.Usage = llm.Usage{Input: 1, Output: 100_000}
	if req.MaxTokens > 0 {
		r.Usage.Output = int64(req.MaxTokens)
	}
	return r, nil
}

func TestAChildIsNotResumedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(scripted.Turn{ToolCalls: calls("pay", "{}")}, scripted.Turn{Text: "paid"}).tools(toolFunc("pay", well)).gate("pay")
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		id := r.children(run.ID)[0]
		_, err := r.Resume(t.Context(), id, func(event.RunStarted) (perform.Env, error) { return child.env, nil })
		if e, ok := errors.AsType[*engine.ChildError](err); !ok || e.Parent != run.ID || !strings.Contains(err.Error(), "when run "+run.ID+" is resumed") {
			t.Fatalf("%v", err)
		}
	})
}

func TestAChildThatWaitsForADecisionParksItsParent(t *testing.T) {
	for name, to := range map[string]func(parent, child string) string{
		"decided on the child":  func(_, child string) string { return child },
		"decided on the parent": func(parent, _ string) string { return parent },
	} {
		t.Run(name, func(t *testing.T) { parksAndGoesOn(t, to) })
	}
}

func parksAndGoesOn(t *testing.T, to func(parent, child string) string) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(scripted.Turn{ToolCalls: calls("pay", "{}")}, scripted.Turn{Text: "paid"}).tools(toolFunc("pay", well)).gate("pay")
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		id := r.children(run.ID)[0]
		if s := wait(t, run); !strings.Contains(s.Parked.Detail, id) || !strings.Contains(s.Parked.Detail, id+"-1-1") || len(s.Parked.CallIDs) > 0 {
			t.Errorf("%+v", s.Parked)
		}
		again := r.other().resume(run.ID) // no decision yet
		parkedAs(t, again, event.ParkApproval)
		r.send(journal.Command{Run: to(run.ID, id), Kind: journal.Approve, CallID: id + "-1-1", By: "ada"})
		last := r.other().resume(run.ID)
		if o := outcome(t, last); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		if got := results(r.whole(run.ID)); got[0].Output != "paid" {
			t.Errorf("%+v", got)
		}
		if n := count(r.whole(id), "model.requested"); n != 2 {
			t.Errorf("the child called its model %d times", n)
		}
	})
}

func well(context.Context) (string, error) { return "ok", nil }
