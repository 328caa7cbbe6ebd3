package engine_test

import (
	"context"
	"errors"
	"strings"
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
	"github.com/pawlrun/pawl/llm/scripted"
)

// live starts a run that stands in a tool until step receives.
func live(t *testing.T, turns ...scripted.Turn) (r *rig, run *engine.Run, step chan struct{}) {
	t.Helper()
	return liveOn(t, memory.New(nil), turns...)
}

func liveOn(t *testing.T, store journal.Store, turns ...scripted.Turn) (r *rig, run *engine.Run, step chan struct{}) {
	t.Helper()
	step = make(chan struct{})
	r = newRig(t, store).tools(toolFunc("work", func(ctx context.Context) (string, error) {
		select {
		case <-step:
			return "worked", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})).turns(append([]scripted.Turn{{ToolCalls: calls("work", "{}")}}, turns...)...)
	run = r.start(t.Context())
	synctest.Wait()
	return r, run, step
}

func TestALiveRunTakesCommandsFromItsOwnAndFromAnotherEngine(t *testing.T) {
	for name, from := range map[string]func(*rig) *rig{
		"its own": func(r *rig) *rig { return r },
		"another": func(r *rig) *rig { return r.other() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, run, step := live(t, scripted.Turn{Text: "done", Expect: &scripted.Expectation{Last: []string{"and be quick"}}})
				from(r).send(journal.Command{Run: run.ID, Kind: journal.Input, Text: "and be quick", By: "ann"})
				from(r).send(journal.Command{Run: run.ID, Kind: journal.Raise, Setting: "max_cycles", Value: 77, By: "ann"})
				synctest.Wait()
				close(step)
				if o := outcome(t, run); !o.OK {
					t.Errorf("outcome %+v", o)
				}
				events := r.whole(run.ID)
				if count(events, "input.received") != 1 || !strings.Contains(r.journalText(run.ID), `"maxCycles":77`) {
					t.Errorf("events %v", names(events))
				}
				if left, err := r.store.Inbox(t.Context(), ""); err != nil || len(left) != 0 {
					t.Errorf("the inbox still holds %+v (%v)", left, err)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				r, run, _ := live(t)
				if _, err := r.store.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Cancel, By: "bob"}); err != nil {
					t.Fatal(err)
				}
				if err := from(r).Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Cancel}); err != nil {
					mustBe(t, err, journal.ErrEnded) // the first was faster
				}
				if o := outcome(t, run); o.Status != event.StatusCancelled {
					t.Errorf("outcome %+v", o)
				}
				if n := count(r.whole(run.ID), "cancel.requested"); n != 1 {
					t.Errorf("the run heard of its cancel %d times", n)
				}
			})
		})
	}
}

// opened counts the commands that were read.
type opened struct {
	journal.Store
	commands atomic.Int64
}

func (s *opened) Inbox(ctx context.Context, run string) ([]journal.Command, error) {
	found, err := s.Store.Inbox(ctx, run)
	s.commands.Add(int64(len(found)))
	return found, err
}

// A journal may hold thousands for runs that no process drives yet.
func TestADriverReadsNoCommandsButThoseToItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &opened{Store: memory.New(nil)}
		r, run, step := liveOn(t, store, scripted.Turn{Text: "done"})
		left := engine.NewID()
		err := r.Create(t.Context(), left, r.started(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			for _, to := range []string{left, run.ID} {
				if _, err := store.Send(t.Context(), journal.Command{Run: to, Kind: journal.Input, Text: "and be quick"}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		}
		close(step)
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		if n := count(r.whole(run.ID), "input.received"); n != 100 {
			t.Errorf("%d messages were taken up", n)
		}
		if n := store.commands.Load(); n > 100 {
			t.Errorf("%d commands were read, 100 of them to the run", n)
		}
	})
}

func parkedForApproval(t *testing.T) (*rig, string) {
	t.Helper()
	r := newRig(t).gate("work").tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil })).
		turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
	run := r.start(t.Context())
	parkedAs(t, run, event.ParkApproval)
	return r, run.ID
}

func TestDecisionOnParkedRunIsRecordedAtOnce(t *testing.T) {
	for _, kind := range []journal.CommandKind{journal.Approve, journal.Reject} {
		synctest.Test(t, func(t *testing.T) {
			r, id := parkedForApproval(t)
			r.other().send(journal.Command{Run: id, Kind: kind, CallID: id + "-1-1", By: "ann", Text: "because"})
			if n := count(r.journal(id), "tool.approval_resolved"); n != 1 {
				t.Errorf("%s: %d decisions are recorded", kind, n)
			}
			if row, err := r.store.Run(t.Context(), id); err != nil || row.State != journal.Parked || row.Owner != "" {
				t.Errorf("%s: the run's row is %+v (%v)", kind, row, err)
			}
			again := r.Send(t.Context(), journal.Command{Run: id, Kind: kind, CallID: id + "-1-1"})
			mustBe(t, again, engine.ErrNotPending)
			outcome(t, r.resume(id))
			if res := results(r.whole(id)); (res[0].Output == "worked") != (kind == journal.Approve) {
				t.Errorf("%s: result %+v", kind, res[0])
			}
		})
	}
}

// A run accepts decisions for its children, and for no other runs.
func TestADecisionThatNamesAnotherRunsCallHasNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, id := parkedForApproval(t)
		another := r.turns(scripted.Turn{ToolCalls: calls("work", "{}")}).start(t.Context())
		parkedAs(t, another, event.ParkApproval)
		err := r.Send(t.Context(), journal.Command{Run: id, Kind: journal.Approve, CallID: another.ID + "-1-1", By: "ann"})
		mustBe(t, err, engine.ErrNotPending)
		if made := decisions(r.journal(another.ID)); len(made) > 0 {
			t.Errorf("the other run has %+v", made)
		}
	})
}

func TestACancelEndsAParkedRunWithoutAnyEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, id := parkedForApproval(t)
		r.other().send(journal.Command{Run: id, Kind: journal.Cancel, By: "ann"})
		events := r.whole(id)
		if res := results(events); res[0].ErrorType != event.ErrorCancelled || count(events, "tool.started") != 0 {
			t.Errorf("events %v, result %+v", names(events), res)
		}
		mustBe(t, r.Send(t.Context(), journal.Command{Run: id, Kind: journal.Cancel}), journal.ErrEnded)
		_, err := r.Resume(t.Context(), id, nil)
		mustBe(t, err, journal.ErrEnded)
		mustBe(t, r.Send(t.Context(), journal.Command{Run: "nobody", Kind: journal.Cancel}), journal.ErrNotFound)
		mustBe(t, r.Send(t.Context(), journal.Command{Run: id, Kind: journal.Raise, Setting: "max_patience", Value: 1}), budget.ErrUnknownSetting)
		mustBe(t, r.Send(t.Context(), journal.Command{Run: id, Kind: journal.Raise, Setting: "max_cycles", Value: 2.5}), budget.ErrBadValue)
	})
}

// An ended run accepts no messages, whatever its models cost.
func TestACapForARunThatHasEndedIsRefusedBecauseOfThat(t *testing.T) {
	r := newRig(t).turns(scripted.Turn{Text: "done"})
	r.cfg.Targets[0].Price = nil
	run := r.start(t.Context())
	outcome(t, run)
	err := r.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Raise, Setting: "usd_per_run", Value: 5})
	if _, unpriced := errors.AsType[*budget.UnpricedError](err); !errors.Is(err, journal.ErrEnded) || unpriced {
		t.Errorf("%v", err)
	}
}

func TestARunThatWasLeftTakesItsCommandsWhenItIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &watched{Store: memory.New(nil), onAppend: failOnce("tool_result", journal.ErrFull)}
		r := newRig(t, store).tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil })).
			turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done", Expect: &scripted.Expectation{Last: []string{"by the way"}}})
		run := r.start(t.Context())
		if _, err := run.Wait(t.Context()); err == nil {
			t.Fatal("the run was not left")
		}
		before := len(r.journal(run.ID))
		r.send(journal.Command{Run: run.ID, Kind: journal.Input, Text: "by the way"})
		if n := len(r.journal(run.ID)); n != before {
			t.Errorf("%d events were added to a run that nobody has resumed", n-before)
		}
		if o := outcome(t, r.resume(run.ID)); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		r.whole(run.ID)
	})
}

// The first decision rests in the inbox of such a run, or its time is over there.
func TestLateDecisionOnUndrivenRunIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		first journal.Command
		wait  time.Duration
		want  event.ApprovalKind
	}{
		"after an approval":            {journal.Command{Kind: journal.Approve, CallID: "-1-2"}, 0, event.ApprovalApproved},
		"after an edit":                {journal.Command{Kind: journal.Approve, CallID: "-1-2", Args: []byte(`{}`)}, 0, event.ApprovalEdited},
		"after a rejection":            {journal.Command{Kind: journal.Reject, CallID: "-1-2"}, 0, event.ApprovalRejected},
		"after its time":               {journal.Command{}, time.Hour, event.ApprovalExpired},
		"as the first, late":           {journal.Command{}, 59 * time.Minute, ""},
		"after a message":              {journal.Command{Kind: journal.Input, Text: "hurry"}, 0, ""},
		"after one about another call": {journal.Command{Kind: journal.Reject, CallID: "-1-3"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				worked := func(context.Context) (string, error) { return "worked", nil }
				store := &watched{Store: memory.New(nil), onAppend: failOnce("tool_result", journal.ErrFull)}
				r := newRig(t, store).gate("work").tools(toolFunc("work", worked), toolFunc("free", worked)).
					turns(scripted.Turn{ToolCalls: calls("free", "{}", "work", "{}", "work", "{}")}, scripted.Turn{Text: "done"})
				r.cfg.Approve, r.cfg.Approvals.Seconds = agent.ApproveWait, 3600
				run := r.start(t.Context())
				if _, err := run.Wait(t.Context()); err == nil {
					t.Fatal("the run was not left")
				}
				send := func(c journal.Command) error {
					c.Run, c.By = run.ID, "ann"
					if c.CallID != "" {
						c.CallID = run.ID + c.CallID
					}
					return r.Send(t.Context(), c)
				}
				if c.first.Kind != "" {
					if err := send(c.first); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(c.wait)
				var late *engine.DecidedError
				if err := send(journal.Command{Kind: journal.Approve, CallID: "-1-2"}); errors.As(err, &late) != (c.want != "") || late != nil && late.Decision.Resolution().Kind != c.want {
					t.Errorf("whoever comes second hears %v", err)
				}
			})
		})
	}
}

func TestACancelEndsARunThatWasLeftInMidFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &watched{Store: memory.New(nil), onAppend: failOnce("tool_result", journal.ErrFull)}
		r := newRig(t, store).tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil })).
			turns(scripted.Turn{ToolCalls: calls("work", "{}", "work", "{}")})
		run := r.start(t.Context())
		_, _ = run.Wait(t.Context())
		r.send(journal.Command{Run: run.ID, Kind: journal.Cancel})
		res := results(r.whole(run.ID))
		if res[0].ErrorType != event.ErrorInDoubt || res[1].ErrorType != event.ErrorCancelled {
			t.Errorf("results %+v", res)
		}
	})
}

func TestACommandThatComesWhileTheDriverLeavesIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &watched{Store: memory.New(nil)}
		r := newRig(t, store).gate("work").tools(toolFunc("work", nil)).turns(scripted.Turn{ToolCalls: calls("work", "{}")})
		store.onAppend = func(b journal.Batch) error {
			if holds(b, "run.parked") {
				if err := r.Send(context.Background(), journal.Command{Run: b.Lease.Run, Kind: journal.Cancel}); err != nil {
					t.Error(err)
				}
			}
			return nil
		}
		run := r.start(t.Context())
		if o := outcome(t, run); o.Status != event.StatusCancelled {
			t.Errorf("outcome %+v", o)
		}
		events := drain(t, run, false)
		if last := events[len(events)-1].Type(); last != "run.completed" {
			t.Errorf("subscribers see %s last", last)
		}
		r.whole(run.ID)
	})
}

func TestAPauseFromBeforeAResumeDoesNotStopIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &watched{Store: memory.New(nil), onAppend: failOnce("tool_result", journal.ErrFull)}
		r := newRig(t, store).tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil })).
			turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		_, _ = run.Wait(t.Context())
		r.send(journal.Command{Run: run.ID, Kind: journal.Pause})
		if o := outcome(t, r.resume(run.ID)); !o.OK {
			t.Errorf("outcome %+v", o)
		}
	})
}
