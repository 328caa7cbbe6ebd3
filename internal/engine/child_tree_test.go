package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// slowly is a model whose every answer takes a while and uses that many output
// tokens. It counts its calls, and how many were under way at once.
type slowly struct {
	mu                 sync.Mutex
	calls, now, atOnce int
	takes              time.Duration
	output             int64
}

func (s *slowly) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *slowly) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	s.mu.Lock()
	s.calls++
	s.now++
	s.atOnce = max(s.atOnce, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
	}()
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r := said("found")
	r.Usage = llm.Usage{Input: 1, Output: s.output}
	return r, nil
}

// asksTwice is a parent that gives the same agent two tasks at once.
func asksTwice(t *testing.T, child *rig) *rig {
	return newRig(t, child.store).turns(
		uses(1, 1, scripted.Turn{ToolCalls: calls("ask", task, "ask", `{"task":"and the other"}`)}), uses(1, 1, scripted.Turn{Text: "done"}),
	).priced(0, 1000).offers("ask", child)
}

func TestSiblingsShareWhatTheirParentHasLeft(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cap    float64
		output int64
		calls  int
		atOnce int
		failed int
	}{
		{"room for both at once", 5, 2000, 2, 2, 0},
		{"the second has less room", 3.5, 1400, 2, 2, 0},
		{"the second waits for what the first leaves", 2.5, 500, 2, 1, 0},
		{"the first leaves nothing", 2.5, 2000, 1, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := &slowly{takes: time.Minute, output: tt.output}
				child := newRig(t).model(model).priced(0, 1000)
				child.cfg.MaxTokens, child.cfg.Limits.USDPerRun = 2000, 100
				r := asksTwice(t, child)
				r.cfg.MaxTokens, r.cfg.Limits.USDPerRun = 100, tt.cap
				run := r.start(t.Context())
				o := outcome(t, run)
				if o.Cost.USD > tt.cap || model.calls != tt.calls || model.atOnce != tt.atOnce {
					t.Errorf("%d calls, %d at once, for USD %v", model.calls, model.atOnce, o.Cost.USD)
				}
				failed := 0
				for _, d := range results(r.whole(run.ID)) {
					if d.IsError {
						failed++
					}
				}
				if failed != tt.failed {
					t.Errorf("%d children failed, want %d", failed, tt.failed)
				}
			})
		})
	}
}

// An answer to a child is given once its parent's reservation is on disk, however
// long the disk takes.
func TestAChildWaitsForItsParentsDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t, &watched{Store: newRig(t).store}).model(&slowly{}).priced(0, 1)
		store := child.store.(*watched)
		r := asksTwice(t, child)
		slow := 0
		store.onAppend = func(b journal.Batch) error {
			for _, rec := range b.Records {
				e, err := event.Decode(rec.Body)
				if err != nil {
					return err
				}
				if d, ok := e.Data.(event.BudgetReserved); ok && d.Run != "" {
					slow++
					time.Sleep(3 * time.Second)
				}
			}
			return nil
		}
		run := r.start(t.Context())
		outcome(t, run)
		reserved := map[string]int64{}
		for _, e := range r.journal(run.ID) {
			if d, ok := e.Data.(event.BudgetReserved); ok && d.Run != "" {
				reserved[d.Run] = e.Pos
			}
		}
		for _, id := range r.children(run.ID) {
			for _, e := range r.journal(id) {
				if _, ok := e.Data.(event.BudgetReserved); ok && e.Pos < reserved[id] {
					t.Errorf("%s has its reservation before its parent has it", id)
				}
			}
		}
		if slow == 0 || len(reserved) != 2 {
			t.Errorf("%d slow writes, reservations %v", slow, reserved)
		}
	})
}

// What a child bills beyond its reservation stops the whole tree.
func TestNothingStartsInATreeAfterAnOverrun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(
			uses(1, 9000, scripted.Turn{ToolCalls: calls("look", "{}")}), uses(1, 1, scripted.Turn{Text: "never"}),
		).priced(0, 1000).tools(toolFunc("look", well))
		child.cfg.MaxTokens, child.cfg.Limits.USDPerRun = 1000, 100
		r := newRig(t, child.store).turns(
			uses(1, 1, scripted.Turn{ToolCalls: calls("ask", task)}), uses(1, 1, scripted.Turn{Text: "never"}),
		).priced(0, 1000).offers("ask", child)
		r.cfg.MaxTokens, r.cfg.Limits.USDPerRun = 100, 5
		run := r.start(t.Context())
		o := outcome(t, run)
		events := r.whole(run.ID)
		if o.Reason != "budget:usd_per_run" || count(events, "budget.overrun") != 1 || count(events, "budget.warning") == 0 || !near(o.Cost.USD, 9.001) {
			t.Errorf("%+v, cost %+v", o, o.Cost)
		}
		id := r.children(run.ID)[0]
		if n := count(r.whole(id), "model.requested"); n != 1 {
			t.Errorf("the child made %d calls", n)
		}
		if n := count(events, "model.requested"); n != 1 {
			t.Errorf("the parent made %d calls", n)
		}
	})
}

func TestAChildWaitsWhereItsParentsOwnerWantsToBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).model(&slowly{output: 10}).priced(0, 1000)
		child.cfg.MaxTokens = 2000
		r := newRig(t, child.store).turns(
			uses(1, 1, scripted.Turn{ToolCalls: calls("ask", task)}), uses(1, 1, scripted.Turn{Text: "done"}),
		).priced(0, 1000).offers("ask", child)
		r.cfg.MaxTokens, r.cfg.Limits.USDPerRun = 100, 0.5
		r.cfg.OnBudget = map[string]agent.OnBudget{"usd_per_run": agent.BudgetAsk}
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkInput)
		s := wait(t, run)
		if !strings.Contains(s.Parked.Detail, "raise it there") || s.Parked.Limit != "usd_per_run" {
			t.Errorf("%+v", s.Parked)
		}
		parkedAs(t, r.other().resume(run.ID), event.ParkInput)
		raise := journal.Command{Run: run.ID, Kind: journal.Raise, Setting: "usd_per_run", Value: s.Parked.AtLeast - 1e-6}
		var small *engine.RaiseError
		if err := r.Send(t.Context(), raise); !errors.As(err, &small) || small.AtLeast != s.Parked.AtLeast {
			t.Errorf("a limit that the child would park at again: %v", err)
		}
		raise.Value = s.Parked.AtLeast
		r.send(raise)
		if o := outcome(t, r.other().resume(run.ID)); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		if n := count(r.whole(r.children(run.ID)[0]), "budget.refused"); n != 2 {
			t.Errorf("refused %d times", n)
		}
	})
}

// siblings asks for two children, whose model takes a minute. The budget is enough for one
// at a time.
func siblings(t *testing.T) (*rig, *slowly) {
	model := &slowly{takes: time.Minute, output: 10}
	child := newRig(t).model(model).priced(0, 1000)
	child.cfg.MaxTokens = 2000
	r := asksTwice(t, child)
	r.cfg.MaxTokens, r.cfg.Limits.USDPerRun = 100, 2.5
	return r, model
}

func TestARaiseLetsAChildGoOnThatWaitsForItsSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := siblings(t)
		run := r.start(t.Context())
		time.Sleep(10 * time.Second)
		if n := model.count(); n != 1 {
			t.Fatalf("%d calls under way", n)
		}
		r.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: "usd_per_run", Value: 50})
		time.Sleep(10 * time.Second)
		if n := model.count(); n != 2 {
			t.Fatalf("%d calls under way after the raise", n)
		}
		outcome(t, run)
	})
}

func TestACancelOfAParentEndsItsChildren(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  bool
		when func(*rig, *engine.Run) *engine.Run
	}{
		{"while they go", false, func(r *rig, run *engine.Run) *engine.Run {
			time.Sleep(10 * time.Second)
			r.send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ada", Text: "enough"})
			return run
		}},
		{"while they are parked and nobody drives", true, func(r *rig, run *engine.Run) *engine.Run {
			parkedAs(r.t, run, event.ParkApproval)
			r.other().send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ada", Text: "enough"})
			return run
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				child := newRig(t).model(&slowly{takes: time.Hour}).priced(0, 1000)
				if tt.ask {
					child.turns(scripted.Turn{ToolCalls: calls("pay", "{}")}).priced(0, 1000).tools(toolFunc("pay", well)).gate("pay")
				}
				r := asksTwice(t, child)
				r.cfg.Dispatch = agent.ParallelAll
				run := r.start(t.Context())
				run = tt.when(r, run)
				if _, err := run.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				events := r.whole(run.ID)
				end := events[len(events)-1].Data.(event.RunCompleted).Outcome
				if end.Reason != event.ReasonCancelled {
					t.Errorf("%+v", end)
				}
				ids := r.children(run.ID)
				if len(ids) == 0 || count(events, "child.finished") != len(ids) {
					t.Errorf("children %v, events %v", ids, names(events))
				}
				for _, id := range ids {
					below := r.whole(id)
					if o := below[len(below)-1].Data.(event.RunCompleted).Outcome; o.Reason != event.ReasonCancelled {
						t.Errorf("%+v", o)
					}
				}
				r.balanced(run.ID)
			})
		})
	}
}

// balanced checks that what a run holds on its account for its children is
// exactly what they used.
func (r *rig) balanced(id string) {
	r.t.Helper()
	held, above, below := map[string]int{}, map[string]float64{}, map[string]float64{}
	for _, e := range r.journal(id) {
		switch d := e.Data.(type) {
		case event.BudgetReserved:
			held[d.Run+"/"+d.ID]++
		case event.BudgetCommitted:
			held[d.Run+"/"+d.ID]--
			above[d.Run] += d.USD
		}
	}
	for _, child := range r.children(id) {
		for _, e := range r.journal(child) {
			if d, ok := e.Data.(event.BudgetCommitted); ok {
				below[child] += d.USD
			}
		}
		if !near(above[child], below[child]) {
			r.t.Errorf("child %s used %v, and its parent's account says %v", child, below[child], above[child])
		}
	}
	for reservation, n := range held {
		if n != 0 {
			r.t.Errorf("reservation %s is open", reservation)
		}
	}
}

func TestAnInterruptionParksTheTreeAndAResumeWakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := &slowly{takes: time.Minute, output: 10}
		child := newRig(t).model(model).priced(0, 1000)
		r := asksTwice(t, child)
		r.cfg.Limits.USDPerRun = 100
		run := r.start(t.Context())
		time.Sleep(10 * time.Second)
		run.Interrupt()
		parkedAs(t, run, event.ParkInterrupted)
		events := r.journal(run.ID)
		if count(events, "child.parked") != 2 || events[len(events)-1].Type() != "run.parked" {
			t.Errorf("%v", names(events))
		}
		for _, id := range r.children(run.ID) {
			m, err := r.Inspect(t.Context(), id)
			if err != nil || m.State().Phase != machine.Parked {
				t.Errorf("%+v, %v", m, err)
			}
		}
		if o := outcome(t, r.other().resume(run.ID)); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		if model.calls != 4 || model.atOnce != 2 {
			t.Errorf("%d calls, %d at once", model.calls, model.atOnce)
		}
		r.whole(run.ID)
		r.balanced(run.ID)
	})
}

func TestAChildEndsWithItsParentsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).model(&slowly{takes: time.Hour}).priced(0, 1)
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}).priced(0, 1).offers("ask", child)
		r.cfg.Limits.MaxWallSeconds = 60
		run := r.start(t.Context())
		if o := outcome(t, run); o.Reason != "budget:max_wall_time_seconds" {
			t.Errorf("%+v", o)
		}
		if got := results(r.whole(run.ID)); got[0].ErrorType != event.ErrorTimeout {
			t.Errorf("%+v", got)
		}
		below := r.whole(r.children(run.ID)[0])
		if o := below[len(below)-1].Data.(event.RunCompleted).Outcome; o.Reason != event.ReasonCancelled {
			t.Errorf("%+v", o)
		}
		if !strings.Contains(r.journalText(r.children(run.ID)[0]), "has no time left") {
			t.Error("the child's journal does not say why it ended")
		}
		r.balanced(run.ID)
	})
}

// A wait before another attempt may be a minute long. What the call will take is
// asked for when it is over, so that siblings go on meanwhile.
func TestAChildHoldsNothingWhileItWaitsForItsNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		failed, answers := false, 0
		answered := func() int {
			mu.Lock()
			defer mu.Unlock()
			return answers
		}
		child := newRig(t).tools(toolFunc("look", well)).model(modelFunc(func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
			mu.Lock()
			first := !failed
			failed = true
			mu.Unlock()
			if first {
				time.Sleep(time.Second) // its sibling asks meanwhile
				return nil, &llm.Error{Class: llm.ClassThrottled, Status: 429, Message: "later", RetryAfter: time.Minute, HasRetryAfter: true}
			}
			time.Sleep(time.Second / 10)
			mu.Lock()
			defer mu.Unlock()
			answers++
			r := said("found")
			if len(req.Messages) == 1 {
				r = &llm.Response{Finish: llm.FinishTool, Parts: llm.Parts{llm.ToolCall{ProviderID: "p", Name: "look", Args: []byte("{}")}}}
			}
			r.Usage = llm.Usage{Input: 1, Output: 10}
			return r, nil
		})).priced(0, 1000)
		child.cfg.MaxTokens = 2000
		r := asksTwice(t, child)
		r.cfg.Dispatch = agent.ParallelAll
		r.env.Tools = concurrent(t, r.env.Tools)
		r.cfg.MaxTokens, r.cfg.Limits.USDPerRun = 100, 2.5 // room for one call at a time
		began := time.Now()
		run := r.start(t.Context())
		time.Sleep(2 * time.Second)
		ids := r.children(run.ID)
		throttled := ids[0]
		if count(r.journal(throttled), "model.retrying") == 0 {
			throttled = ids[1]
		}
		if mine := r.journal(throttled); answered() != 2 || count(mine, "model.requested") != 1 {
			t.Errorf("its sibling has %d of two answers while it waits: %v", answered(), names(mine))
		}
		if row, err := r.store.Run(t.Context(), throttled); err != nil || row.State != journal.Waiting || row.Detail != journal.WaitRetry {
			t.Errorf("it is %s %s (%v)", row.State, row.Detail, err)
		}
		if o := outcome(t, run); o.FinalOutput != "done" || answered() != 4 || time.Since(began) < time.Minute {
			t.Errorf("%d answers after %s: %+v", answered(), time.Since(began), o)
		}
		r.balanced(run.ID)
	})
}

// concurrent declares every tool of a set fit to run beside others.
func concurrent(t *testing.T, set *tool.Set) *tool.Set {
	t.Helper()
	var all []tool.Tool
	for _, def := range set.Defs() {
		one, _ := set.Lookup(def.Name)
		one.Concurrent = true
		all = append(all, one)
	}
	set, err := tool.NewSet(all...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A pause of one child does not hold its sibling up: not what it had set aside,
// and not its answer. The parent parks when nothing else is left to do.
func TestAPausedChildParksItsParentAfterItsSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := siblings(t)
		run := r.start(t.Context())
		time.Sleep(10 * time.Second)
		ids := r.children(run.ID)
		waiting := ids[0]
		if count(r.journal(waiting), "model.requested") > 0 {
			waiting = ids[1]
		}
		r.send(journal.Command{Run: waiting, Kind: journal.Pause})
		time.Sleep(time.Second)
		if count(r.journal(run.ID), "child.parked") != 1 {
			t.Error("a child that waited for room is not parked at once")
		}
		parkedAs(t, run, event.ParkPaused)
		events := r.journal(run.ID)
		if count(events, "child.parked") != 1 || count(events, "child.finished") != 1 {
			t.Errorf("%v", names(events))
		}
		if o := outcome(t, r.other().resume(run.ID)); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		r.balanced(run.ID)
	})
}
