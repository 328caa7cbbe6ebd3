package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// pays is a child that parks until its payment is decided.
func pays(t *testing.T, stores ...journal.Store) *rig {
	pay := toolFunc("pay", well)
	pay.Concurrent = true
	return newRig(t, stores...).turns(scripted.Turn{ToolCalls: calls("pay", "{}")}, scripted.Turn{Text: "paid"}).tools(pay).gate("pay")
}

// besideASibling is a parent of a child that parks and of one that works for
// half an hour.
func besideASibling(t *testing.T, child *rig) *rig {
	r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task, "think", task)}, scripted.Turn{Text: "done"}).
		offers("ask", child).offers("think", newRig(t, child.store).model(takes(30*time.Minute)))
	r.cfg.Dispatch = agent.ParallelAll
	return r
}

// startsUntilParked starts such a parent and waits until its first child has
// parked, while the other works.
func (r *rig) startsUntilParked(t *testing.T) (run *engine.Run, child string) {
	t.Helper()
	run = r.start(t.Context())
	time.Sleep(time.Minute)
	child = r.children(run.ID)[0]
	if row, err := r.store.Run(t.Context(), child); err != nil || row.State != journal.Parked {
		t.Fatalf("the child is %+v, %v", row.Progress, err)
	}
	return run, child
}

// A parked child resumes once it is decided, although its parent runs on, and whichever
// process receives the decision.
func TestADecisionWakesAParkedChildWhileItsSiblingGoesOn(t *testing.T) {
	for name, within := range map[string]time.Duration{"in the parent's process": 0, "in another one": 5 * time.Second} {
		for decision, kind := range map[string]journal.CommandKind{"approved": journal.Approve, "rejected": journal.Reject} {
			t.Run(name+"/"+decision, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := besideASibling(t, pays(t))
					run, id := r.startsUntilParked(t)
					controller := r
					if within > 0 {
						controller = r.other()
					}
					controller.send(journal.Command{Run: id, Kind: kind, CallID: id + "-1-1", By: "ann", Text: "because"})
					time.Sleep(within)
					synctest.Wait()
					if row, err := r.store.Run(t.Context(), id); err != nil || row.State != journal.Ended {
						t.Fatalf("the child is %+v, %v", row.Progress, err)
					}
					if o := outcome(t, run); o.FinalOutput != "done" {
						t.Errorf("%+v", o)
					}
					if n := count(r.whole(run.ID), "run.parked"); n != 0 {
						t.Errorf("the parent parked %d times", n)
					}
					if got := results(r.whole(run.ID)); got[0].Output != "paid" {
						t.Errorf("%+v", got)
					}
					r.ended(run.ID)
				})
			})
		}
	}
}

// A parked child that is cancelled has ended, and its parent is notified at once.
func TestCancelOfParkedChildSettlesItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := besideASibling(t, pays(t))
		run, id := r.startsUntilParked(t)
		r.send(journal.Command{Run: id, Kind: journal.Cancel, By: "ann"})
		synctest.Wait()
		if n := count(r.journal(run.ID), "child.finished"); n != 1 {
			t.Errorf("the parent heard of %d ends", n)
		}
		if got := results(r.journal(run.ID)); len(got) != 1 || got[0].ErrorType != event.ErrorCancelled || !strings.Contains(got[0].Output, "did not finish: cancelled") {
			t.Errorf("the model hears %+v", got)
		}
		if o := outcome(t, run); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		if n := count(r.whole(run.ID), "run.parked"); n != 0 {
			t.Errorf("the parent parked %d times", n)
		}
		r.ended(run.ID)
	})
}

// A command that does not answer the question wakes no child.
func TestAParkedChildSleepsUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := besideASibling(t, pays(t))
		run, id := r.startsUntilParked(t)
		r.send(journal.Command{Run: id, Kind: journal.Input, Text: "hurry", By: "ann"})
		r.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: "usd_per_run", Value: 50})
		parkedAs(t, run, event.ParkApproval)
		if n := count(r.journal(id), "run.resumed"); n != 0 {
			t.Errorf("the child was taken up %d times", n)
		}
	})
}

// A raise of the parent's limit takes up the child that parked at it.
func TestARaiseWakesAParkedChildWhileItsSiblingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).model(&slowly{output: 10}).priced(0, 1000)
		child.cfg.MaxTokens = 2000
		r := besideASibling(t, child).priced(0, 1000)
		r.cfg.MaxTokens, r.cfg.Limits.USDPerRun, r.cfg.Limits.MaxWallSeconds = 100, 0.5, budget.None
		r.cfg.OnBudget = map[string]agent.OnBudget{"usd_per_run": agent.BudgetAsk}
		run, id := r.startsUntilParked(t)
		r.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: "usd_per_run", Value: 50})
		synctest.Wait()
		if row, err := r.store.Run(t.Context(), id); err != nil || row.State != journal.Ended {
			t.Fatalf("the child is %+v, %v", row.Progress, err)
		}
		if o := outcome(t, run); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
	})
}

// A child that parked at a limit of its own goes on when that one is raised, and
// not for a message that it does not wait for.
func TestARaiseOfAParkedChildsOwnLimitWakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).model(&slowly{output: 10}).priced(0, 1000)
		child.cfg.MaxTokens, child.cfg.Limits.USDPerRun = 2000, 0.5
		child.cfg.OnBudget = map[string]agent.OnBudget{"usd_per_run": agent.BudgetAsk}
		r := besideASibling(t, child)
		run, id := r.startsUntilParked(t)
		r.send(journal.Command{Run: id, Kind: journal.Input, Text: "hurry", By: "ann"})
		synctest.Wait()
		if row, err := r.store.Run(t.Context(), id); err != nil || row.State != journal.Parked {
			t.Fatalf("after a message the child is %+v, %v", row.Progress, err)
		}
		r.send(journal.Command{Run: id, Kind: journal.Raise, Setting: "usd_per_run", Value: 50})
		synctest.Wait()
		if row, err := r.store.Run(t.Context(), id); err != nil || row.State != journal.Ended {
			t.Fatalf("the child is %+v, %v", row.Progress, err)
		}
		if o := outcome(t, run); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		if n := count(r.whole(run.ID), "run.parked"); n != 0 {
			t.Errorf("the parent parked %d times", n)
		}
	})
}

// The run above may hear of the raise before it hears that the child has parked.
func TestARaiseWakesAChildThatIsAboutToPark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).model(&slowly{output: 10}).priced(0, 1000)
		child.cfg.MaxTokens = 2000
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child).priced(0, 1000)
		r.cfg.MaxTokens, r.cfg.Limits.USDPerRun, r.cfg.Limits.MaxWallSeconds = 100, 0.5, budget.None
		r.cfg.OnBudget = map[string]agent.OnBudget{"usd_per_run": agent.BudgetAsk}
		r.observed(func(ctx context.Context, _ perform.ToolCall, next handOn) (tool.Result, error) {
			result, err := next(ctx)
			time.Sleep(5 * time.Minute)
			return result, err
		})
		defer r.Close()
		run, _ := r.startsUntilParked(t)
		r.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: "usd_per_run", Value: 50})
		if o := outcome(t, run); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		if n := count(r.whole(run.ID), "run.parked"); n != 0 {
			t.Errorf("the parent parked %d times", n)
		}
	})
}

// A raise counts for a child that was refused before it, and not for a sibling that was
// refused in spite of it.
func TestARaiseThatOneChildMissedWakesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missed := newRig(t).model(&slowly{output: 10}).priced(0, 1000)
		missed.cfg.MaxTokens = 2000
		work := toolFunc("work", well)
		work.Concurrent = true
		refused := newRig(t, missed.store).tools(work).
			turns(scripted.Turn{Delay: 2 * time.Minute, ToolCalls: calls("work", "{}"), Usage: &llm.Usage{Output: 400}}, scripted.Turn{Text: "done"}).priced(0, 1000)
		refused.cfg.MaxTokens = 400
		r := newRig(t, missed.store).turns(scripted.Turn{ToolCalls: calls("ask", task, "try", task)}, scripted.Turn{Text: "done"}).
			offers("ask", missed).offers("try", refused).priced(0, 1000)
		r.cfg.Dispatch, r.cfg.MaxTokens, r.cfg.Limits.USDPerRun, r.cfg.Limits.MaxWallSeconds = agent.ParallelAll, 100, 0.5, budget.None
		r.cfg.OnBudget = map[string]agent.OnBudget{"usd_per_run": agent.BudgetAsk}
		r.observed(func(ctx context.Context, c perform.ToolCall, next handOn) (tool.Result, error) {
			result, err := next(ctx)
			if c.Tool == "ask" {
				time.Sleep(5 * time.Minute)
			}
			return result, err
		})
		defer r.Close()
		run, _ := r.startsUntilParked(t)
		r.send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: "usd_per_run", Value: 0.6})
		parkedAs(t, run, event.ParkInput)
		for i, want := range []int{1, 0} {
			if n := count(r.journal(r.children(run.ID)[i]), "run.resumed"); n != want {
				t.Errorf("child %d was taken up %d times, want %d", i+1, n, want)
			}
		}
	})
}

// What keeps a child from going on may be mended: it parks with its parent,
// which says why, and loses nothing.
func TestAChildThatCannotGoOnHereParksItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := pays(t)
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		id := r.children(run.ID)[0]
		r.send(journal.Command{Run: id, Kind: journal.Approve, CallID: id + "-1-1", By: "ada"})
		whole := r.env.Children["ask"]
		keyless := whole
		keyless.Resume = func(string, event.RunStarted) (perform.Env, error) {
			return perform.Env{}, errors.New("there is no key")
		}
		r.env.Children["ask"] = keyless
		again := r.other().resume(run.ID)
		parkedAs(t, again, event.ParkInterrupted)
		if s := wait(t, again); !strings.Contains(s.Parked.Detail, "it cannot go on: there is no key") {
			t.Errorf("%+v", s.Parked)
		}
		r.env.Children["ask"] = whole
		if o := outcome(t, r.other().resume(run.ID)); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		if n := count(r.whole(id), "model.requested"); n != 2 {
			t.Errorf("the child called its model %d times", n)
		}
	})
}

// A child that cannot be made is its call's error, and the run goes on.
func TestAChildThatCannotBeMadeFailsItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(scripted.Turn{Text: "42"})
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
		offered := r.env.Children["ask"]
		begin := offered.Begin
		closed := 0
		offered.Begin = func(args json.RawMessage) (event.RunStarted, perform.Env, error) {
			started, env, err := begin(args)
			started.Config = []byte(`{"limits": "none of this version"}`)
			env.Close = func() error { closed++; return nil }
			return started, env, err
		}
		r.env.Children["ask"] = offered
		run := r.start(t.Context())
		if o := outcome(t, run); o.FinalOutput != "done" {
			t.Errorf("%+v", o)
		}
		got := results(r.whole(run.ID))
		if len(got) != 1 || got[0].ErrorType != event.ErrorUnavailable || !strings.Contains(got[0].Output, "could not be started") || closed != 1 {
			t.Errorf("%+v, closed %d times", got, closed)
		}
		r.ended(run.ID)
	})
}

// damaged is a store in which the events of one run cannot be read.
type damaged struct {
	journal.Store
	run string
}

func (s *damaged) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	records, err := s.Store.Records(ctx, run, after, limit)
	if run == s.run {
		for i := range records {
			records[i].Body = []byte(`{"type":`)
		}
	}
	return records, err
}

// A child whose journal is damaged parks its parent, and a cancel ends that all
// the same; the child's journal stays as it is.
func TestAParentOfADamagedChildCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &damaged{Store: newRig(t).store}
		child := pays(t, store).priced(1, 1)
		r := newRig(t, store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child).priced(1, 1)
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		id := r.children(run.ID)[0]
		before, err := store.Run(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		store.run = id
		again := r.other().resume(run.ID)
		parkedAs(t, again, event.ParkInterrupted)
		if s := wait(t, again); !strings.Contains(s.Parked.Detail, "it cannot go on: load run "+id) && !strings.Contains(s.Parked.Detail, "it cannot go on: engine: load run "+id) {
			t.Errorf("%+v", s.Parked)
		}
		r.send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann", Text: "enough"})
		outcome := r.whole(run.ID)
		if d, ok := outcome[len(outcome)-1].Data.(event.RunCompleted); !ok || d.Outcome.Reason != event.ReasonCancelled {
			t.Errorf("the run ended with %+v", outcome[len(outcome)-1])
		}
		if after, err := store.Run(t.Context(), id); err != nil || after.Head != before.Head {
			t.Errorf("the child's journal went on: %+v, %v", after, err)
		}
	})
}

// A reservation of a child whose process died and whose journal is unreadable counts as
// used: it may have been.
func TestWhatADamagedChildHadSetAsideCountsAsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &damaged{Store: newRig(t).store}
		mortal := &mortal{Store: store}
		child := newRig(t, mortal).model(modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
			mortal.kill()
			return said("paid for, and never journalled"), nil
		})).priced(0, 1e6)
		child.cfg.MaxTokens, child.cfg.Limits.USDPerRun = 7, 100
		r := newRig(t, mortal).turns(uses(1, 1, scripted.Turn{ToolCalls: calls("ask", task)}), scripted.Turn{Text: "done"}).offers("ask", child).priced(0, 1e6)
		r.cfg.MaxTokens, r.cfg.Limits.USDPerRun = 9, 100
		run := r.start(t.Context())
		if _, err := run.Wait(t.Context()); !errors.Is(err, errDead) {
			t.Fatalf("the run was left with %v", err)
		}
		time.Sleep(time.Minute)
		store.run = r.children(run.ID)[0]
		r.t, r.store = t, store
		newRig(t, store).send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann"})
		events := r.whole(run.ID)
		var used []event.BudgetCommitted
		for _, e := range events {
			if d, ok := e.Data.(event.BudgetCommitted); ok && d.Run == store.run {
				used = append(used, d)
			}
		}
		if len(used) != 1 || used[0].Output != 7 || !used[0].Estimated || !near(used[0].USD, 7) {
			t.Errorf("%+v", used)
		}
		if o := events[len(events)-1].Data.(event.RunCompleted).Outcome; !near(o.Cost.USD, 8) {
			t.Errorf("%+v", o)
		}
	})
}

// heldElsewhere is a parked run whose child waits for a decision, and whose
// child's lease another process has.
func heldElsewhere(t *testing.T) (r *rig, parent *engine.Run, child journal.Lease) {
	t.Helper()
	payer := pays(t)
	r = newRig(t, payer.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", payer)
	parent = r.start(t.Context())
	parkedAs(t, parent, event.ParkApproval)
	child, err := r.store.Acquire(t.Context(), r.children(parent.ID)[0], "elsewhere", "", 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return r, parent, child
}

// A cancel of an undriven run waits for the lease of its child, as long as the sender
// waits.
func TestACancelWaitsForTheLeaseOfAChild(t *testing.T) {
	for name, patience := range map[string]time.Duration{"long enough": time.Minute, "not long enough": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, run, lease := heldElsewhere(t)
				time.AfterFunc(3*time.Second, func() {
					if err := r.store.Release(context.Background(), lease); err != nil {
						t.Error(err)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				if err := r.Send(ctx, journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann"}); err != nil {
					t.Fatal(err)
				}
				row, err := r.store.Run(t.Context(), run.ID)
				switch took := time.Since(began); {
				case err != nil:
					t.Fatal(err)
				case patience < 3*time.Second && (row.State != journal.Parked || took != patience):
					t.Errorf("%s after %s", row.State, took)
				case patience > 3*time.Second && (row.State != journal.Ended || took > 3*time.Second+200*time.Millisecond):
					t.Errorf("%s after %s", row.State, took)
				}
				left, err := r.store.Inbox(t.Context(), run.ID)
				if err != nil || (len(left) > 0) != (row.State == journal.Parked) {
					t.Errorf("in the inbox: %+v, %v", left, err)
				}
				time.Sleep(5 * time.Second)
			})
		})
	}
}

// A cancel whose sender gave up before a child's lease was free stays in the inbox, and
// counts for the next process that drives the run or sends it a command.
func TestCancelOfImpatientSenderIsHandledByNextDriver(t *testing.T) {
	for name, next := range map[string]func(*rig, string){
		"a resume": func(r *rig, id string) {
			if o := outcome(r.t, r.resume(id)); o.Status != event.StatusCancelled {
				r.t.Errorf("outcome %+v", o)
			}
		},
		"a message": func(r *rig, id string) {
			err := r.Send(r.t.Context(), journal.Command{Run: id, Kind: journal.Input, Text: "go on", By: "bob"})
			mustBe(r.t, err, journal.ErrEnded)
		},
		"another cancel": func(r *rig, id string) {
			if err := r.Send(r.t.Context(), journal.Command{Run: id, Kind: journal.Cancel, By: "bob"}); err != nil {
				r.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, run, lease := heldElsewhere(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := r.Send(ctx, journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann", Text: "enough"}); err != nil {
					t.Fatal(err)
				}
				if err := r.store.Release(t.Context(), lease); err != nil {
					t.Fatal(err)
				}
				next(r, run.ID)
				asked := 0
				for _, e := range r.whole(run.ID) {
					if c, ok := e.Data.(event.CancelRequested); ok && c.By == "ann" && c.Reason == "enough" {
						asked++
					}
				}
				left, err := r.store.Inbox(t.Context(), run.ID)
				if asked != 1 || err != nil || len(left) > 0 {
					t.Errorf("the cancel was journalled %d times; in the inbox: %+v (%v)", asked, left, err)
				}
				for _, run := range []string{run.ID, lease.Run} {
					if row, err := r.store.Run(t.Context(), run); err != nil || row.State != journal.Ended {
						t.Errorf("run %s is %s (%v)", run, row.State, err)
					}
				}
			})
		})
	}
}
