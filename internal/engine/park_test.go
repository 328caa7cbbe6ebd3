package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

func TestAnInterruptParksAndResumeGoesOn(t *testing.T) {
	for name, interrupt := range map[string]func(*engine.Run, context.CancelCauseFunc){
		"by the run":     func(r *engine.Run, _ context.CancelCauseFunc) { r.Interrupt(); r.Interrupt() },
		"by its context": func(_ *engine.Run, end context.CancelCauseFunc) { end(engine.ErrInterrupted) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := make(chan struct{}, 1)
				r := newRig(t).tools(blocking("work", started)).
					turns(scripted.Turn{ToolCalls: calls("work", "{}", "work", "{}")}, scripted.Turn{Text: "done"})
				ctx, end := context.WithCancelCause(t.Context())
				run := r.start(ctx)
				<-started
				interrupt(run, end)
				parkedAs(t, run, event.ParkInterrupted)
				if res := results(r.journal(run.ID)); len(res) != 1 || res[0].ErrorType != event.ErrorCancelled {
					t.Errorf("results %+v", res)
				}
				again := r.resume(run.ID)
				<-started // the call that had not begun
				again.Interrupt()
				parkedAs(t, again, event.ParkInterrupted)
				if o := outcome(t, r.resume(run.ID)); !o.OK {
					t.Errorf("outcome %+v", o)
				}
				r.whole(run.ID)
			})
		})
	}
}

// late answers although its call was stopped, as an answer may that has just arrived.
type late struct {
	llm.Model
	begun chan struct{}
}

func (l late) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	select {
	case l.begun <- struct{}{}:
		<-ctx.Done()
	default:
	}
	return l.Model.Generate(context.WithoutCancel(ctx), req)
}

func TestCallsOfInterruptedAnswerKeepTheirArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		r := newRig(t).tools(argsTool("work", func(args string) { got = append(got, args) })).
			turns(scripted.Turn{ToolCalls: calls("work", `{"to":"ann"}`, "work", `{"to":"bob"}`)}, scripted.Turn{Text: "done"})
		model, _, err := r.env.Model("")
		if err != nil {
			t.Fatal(err)
		}
		begun := make(chan struct{}, 1)
		r.env.Model = func(string) (llm.Model, string, error) { return late{model, begun}, "model", nil }
		run := r.start(t.Context())
		synctest.Wait()
		run.Interrupt()
		parkedAs(t, run, event.ParkInterrupted)
		if o := outcome(t, r.resume(run.ID)); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		if slices.Sort(got); !slices.Equal(got, []string{`{"to":"ann"}`, `{"to":"bob"}`}) {
			t.Errorf("the calls ran with %q", got)
		}
		r.whole(run.ID)
	})
}

func TestCloseParksWhatIsStillDriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{}, 1)
		r := newRig(t).tools(blocking("work", started)).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		<-started
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		parkedAs(t, run, event.ParkInterrupted)
		if o := outcome(t, r.other().resume(run.ID)); !o.OK {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestAPauseParksAtTheNextBoundary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		r := newRig(t).tools(toolFunc("work", func(context.Context) (string, error) { <-step; return "worked", nil })).
			turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		for cycle := 1; cycle <= 2; cycle++ { // a resumed run hears of a pause as well
			synctest.Wait()
			r.send(journal.Command{Run: run.ID, Kind: journal.Pause, By: "ann"})
			synctest.Wait()
			step <- struct{}{}
			parkedAs(t, run, event.ParkPaused)
			if res := results(r.journal(run.ID)); len(res) != cycle || res[cycle-1].Output != "worked" {
				t.Errorf("the call was not let finish: %+v", res)
			}
			run = r.resume(run.ID)
		}
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestAPauseThatComesBeforeAResumedRunHasBegunCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &prompt{Store: memory.New(nil), heard: func() {}}
		r := newRig(t, store).turns(scripted.Turn{Text: "too late", Delay: time.Hour}, scripted.Turn{Text: "done"})
		run := r.start(t.Context())
		synctest.Wait()
		run.Interrupt()
		parkedAs(t, run, event.ParkInterrupted)
		store.heard = func() { r.send(journal.Command{Run: run.ID, Kind: journal.Pause, By: "ann"}) }
		parkedAs(t, r.resume(run.ID), event.ParkPaused)
		store.heard = func() {}
		if o := outcome(t, r.resume(run.ID)); !o.OK {
			t.Errorf("outcome %+v", o)
		}
	})
}

// prompt is a store that says when a driver begins to listen.
type prompt struct {
	journal.Store
	heard func()
}

func (p *prompt) WatchInbox(ctx context.Context, run string) <-chan struct{} {
	news := p.Store.WatchInbox(ctx, run)
	p.heard()
	return news
}

func TestAPauseThatACallAsksForHoldsFromTheEndOfItsCycle(t *testing.T) {
	for range 20 { // each might come in time by chance
		synctest.Test(t, func(t *testing.T) {
			var run *engine.Run
			begun := make(chan struct{})
			r := newRig(t)
			r.tools(toolFunc("work", func(context.Context) (string, error) {
				<-begun
				r.send(journal.Command{Run: run.ID, Kind: journal.Pause, By: "ann"})
				return "worked", nil
			})).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
			run = r.start(t.Context())
			close(begun)
			parkedAs(t, run, event.ParkPaused)
			if o := outcome(t, r.resume(run.ID)); !o.OK {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

func TestSeveralApprovalsAreAskedForAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, ran atomic.Int32
		both := make(chan struct{})
		r := newRig(t).gate("work").tools(toolFunc("work", func(context.Context) (string, error) { ran.Add(1); return "worked", nil })).
			turns(scripted.Turn{ToolCalls: calls("work", "{}", "work", "{}")}, scripted.Turn{Text: "done"}).
			asker(func(_ context.Context, p event.Question) (event.Resolution, error) {
				if asked.Add(1) == 2 {
					close(both)
				}
				<-both
				if p.ID[len(p.ID)-1] == '2' {
					return event.Resolution{Kind: event.ApprovalRejected, Approver: "ann", Reason: "no"}, nil
				}
				return event.Resolution{Kind: event.ApprovalApproved, Approver: "ann"}, nil
			})
		run := r.start(t.Context())
		outcome(t, run)
		res := results(r.whole(run.ID))
		byCall := map[byte]event.ToolResult{}
		for _, one := range res {
			byCall[one.CallID[len(one.CallID)-1]] = one
		}
		if ran.Load() != 1 || byCall['1'].Output != "worked" || byCall['2'].ErrorType != event.ErrorRejected {
			t.Errorf("%d calls ran; results %+v", ran.Load(), res)
		}
	})
}

func TestAnAskerThatCannotDecideParksTheRun(t *testing.T) {
	for name, ask := range map[string]func(context.Context, event.Question) (event.Resolution, error){
		"an error": func(context.Context, event.Question) (event.Resolution, error) {
			return event.Resolution{}, errors.New("no terminal")
		},
		"a panic": func(context.Context, event.Question) (event.Resolution, error) { panic("boom") },
		"an error that panics when it is read": func(context.Context, event.Question) (event.Resolution, error) {
			return event.Resolution{}, (*brokenError)(nil)
		},
		"no answer": func(context.Context, event.Question) (event.Resolution, error) {
			return event.Resolution{}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				r := newRig(t).gate("work").tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil })).
					turns(scripted.Turn{ToolCalls: calls("work", "{}", "work", "{}")}, scripted.Turn{Text: "done"}).
					asker(func(ctx context.Context, p event.Question) (event.Resolution, error) {
						if asked.Add(1) == 1 {
							return ask(ctx, p)
						}
						<-ctx.Done() // the other question is still open when the run parks
						return event.Resolution{}, ctx.Err()
					})
				run := r.start(t.Context())
				parkedAs(t, run, event.ParkApproval)
				if n := count(r.journal(run.ID), "run.parked"); n != 1 {
					t.Errorf("parked %d times", n)
				}
				for _, p := range wait(t, run).Pending {
					r.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: p.ID, By: "ann"})
				}
				if o := outcome(t, r.resume(run.ID)); !o.OK {
					t.Errorf("outcome %+v", o)
				}
				r.whole(run.ID)
			})
		})
	}
}

func TestTheFirstDecisionWinsWhereverItComesFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).gate("work").tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil })).
			turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"}).
			asker(func(ctx context.Context, _ event.Question) (event.Resolution, error) {
				<-ctx.Done() // an asker that answers although its question was withdrawn
				return event.Resolution{Kind: event.ApprovalRejected, Approver: "the terminal"}, nil
			})
		run := r.start(t.Context())
		synctest.Wait()
		if row, err := r.store.Run(t.Context(), run.ID); err != nil || row.State != journal.Waiting {
			t.Errorf("the run's row says %s while it waits for a decision (%v)", row.State, err)
		}
		r.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "the web page"})
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		events := r.whole(run.ID)
		if n := count(events, "tool.approval_resolved"); n != 1 || results(events)[0].Output != "worked" {
			t.Errorf("%d decisions, result %+v", n, results(events)[0])
		}
	})
}

func TestQuestionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := &waitsForApproval{expires: time.Now().Add(time.Hour)}
		r.env.Ask = func(ctx context.Context, _ event.Question) (event.Resolution, error) {
			<-ctx.Done()
			return event.Resolution{}, ctx.Err()
		}
		began := time.Now()
		run := startMachine(t, r, m)
		if o := outcome(t, run); o.Reason != event.ReasonFinalAnswer || time.Since(began) != time.Hour {
			t.Errorf("outcome %+v after %s", o, time.Since(began))
		}
		if m.decision.Kind != event.ApprovalExpired {
			t.Errorf("decision %+v", m.decision)
		}
	})
}

// asked counts the requests to a model.
type asked struct {
	llm.Model
	times *atomic.Int64
}

func (m asked) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	m.times.Add(1)
	return m.Model.Generate(ctx, req)
}

// Each round parks a run during a call, which is journalled; the run starts nothing more
// until it is resumed.
func TestParkLetsCallsEndAndStartsNoOthers(t *testing.T) {
	for name, below := range map[string]bool{"run": false, "child": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const takes = 3 * time.Second
				var times, worked atomic.Int64
				r := newRig(t).tools(toolFunc("work", func(ctx context.Context) (string, error) {
					worked.Add(1)
					select {
					case <-time.After(takes):
						return "worked", nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				})).model(asked{scripted.New("test", scripted.Turn{ToolCalls: calls("work", "{}", "work", "{}"), Delay: takes}, scripted.Turn{Text: "done", Delay: takes}), &times})
				if child := r; below {
					r = newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
				}
				run := r.start(t.Context())
				for round, want := range [][2]int64{{1, 0}, {1, 1}, {1, 2}} {
					synctest.Wait()
					began := time.Now()
					run.Park()
					parkedAs(t, run, event.ParkInterrupted)
					if took := time.Since(began); took != takes || times.Load() != want[0] || worked.Load() != want[1] {
						t.Errorf("round %d: parked after %s with %d answers and %d results, want %s, %v", round, took, times.Load(), worked.Load(), takes, want)
					}
					run = r.resume(run.ID)
				}
				if o := outcome(t, run); !o.OK || times.Load() != 2 || worked.Load() != 2 {
					t.Errorf("outcome %+v, %d answers, %d results", o, times.Load(), worked.Load())
				}
				r.whole(run.ID)
			})
		})
	}
}

// A parked run's calls that take too long are stopped by an interrupt or by the end of the
// context, and what waits for a person does not go on.
func TestWhatStopsTheCallsOfARunThatParks(t *testing.T) {
	enough := errors.New("enough")
	for name, stop := range map[string]func(*engine.Run, context.CancelCauseFunc){
		"an interrupt":        func(r *engine.Run, _ context.CancelCauseFunc) { r.Interrupt() },
		"an interrupt, twice": func(r *engine.Run, _ context.CancelCauseFunc) { r.Interrupt(); r.Interrupt() },
		"its context":         func(_ *engine.Run, end context.CancelCauseFunc) { end(engine.ErrInterrupted) },
		"a cancel":            func(_ *engine.Run, end context.CancelCauseFunc) { end(enough) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t).turns(scripted.Turn{Text: "late", Delay: time.Hour}, scripted.Turn{Text: "done"})
				ctx, end := context.WithCancelCause(t.Context())
				run := r.start(ctx)
				synctest.Wait()
				run.Park()
				time.Sleep(time.Minute)
				stop(run, end)
				began := time.Now()
				if s := wait(t, run); (s.Outcome != nil) != (name == "a cancel") || time.Since(began) > 0 {
					t.Errorf("after %s: %+v", time.Since(began), s)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t).tools(blocking("work", make(chan struct{}, 1))).turns(scripted.Turn{ToolCalls: calls("work", "{}")}).gate("work").asker(thinks(time.Hour))
		run := r.start(t.Context())
		for range 2 {
			synctest.Wait()
			began := time.Now()
			run.Park()
			parkedAs(t, run, event.ParkInterrupted)
			if took := time.Since(began); took > 0 {
				t.Errorf("the question went on for %s", took)
			}
			run = r.resume(run.ID)
		}
		run.Interrupt()
		parkedAs(t, run, event.ParkInterrupted)
	})
}

// A child that waits for a part of the budget that its sibling has reserved parks with it.
func TestParkDoesNotWaitForTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := siblings(t)
		run := r.start(t.Context())
		for calls := 1; calls <= 2; calls++ {
			time.Sleep(10 * time.Second)
			began := time.Now()
			run.Park()
			parkedAs(t, run, event.ParkInterrupted)
			if took := time.Since(began); took != 50*time.Second || model.count() != calls {
				t.Errorf("parked after %s with %d calls, want 50 s and %d", took, model.count(), calls)
			}
			run = r.resume(run.ID)
		}
		if o := outcome(t, run); !o.OK || model.count() != 2 {
			t.Errorf("outcome %+v, %d calls", o, model.count())
		}
	})
}

// A run streams while an answer arrives in it or below it: after the first part of each, and
// not when an attempt is void.
func TestRunStreamsWhileAnAnswerArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).model(modelFunc(func(_ context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
			for _, kind := range []llm.DeltaKind{llm.DeltaText, llm.DeltaReset, llm.DeltaText} {
				time.Sleep(time.Second)
				emit(llm.Delta{Kind: kind, Text: "part"})
			}
			time.Sleep(time.Second)
			return said("done"), nil
		}))
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done", Delay: time.Second}).offers("ask", child)
		run := r.start(t.Context())
		var got []bool
		for range 9 {
			time.Sleep(500 * time.Millisecond)
			got = append(got, run.Streams())
			time.Sleep(500 * time.Millisecond)
		}
		if want := []bool{false, true, false, true, false, true, false, true, false}; !slices.Equal(got, want) {
			t.Errorf("streams in each second: %v, want %v", got, want)
		}
		outcome(t, run)
	})
}
