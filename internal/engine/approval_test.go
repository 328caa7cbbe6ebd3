package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// asker is a person who answers when the test allows it.
type asker = func(context.Context, event.Question) (event.Resolution, error)

// silent is asked and never answers.
func silent(ctx context.Context, _ event.Question) (event.Resolution, error) {
	<-ctx.Done()
	return event.Resolution{}, ctx.Err()
}

// gatedRig is a run with one call that needs an approval, and counts how often
// it runs.
func gatedRig(t *testing.T) (*rig, *atomic.Int32) {
	var ran atomic.Int32
	r := newRig(t).gate("work").
		tools(toolFunc("work", func(context.Context) (string, error) { ran.Add(1); return "worked", nil })).
		turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
	return r, &ran
}

func decisions(events []event.Event) []event.ToolApprovalResolved {
	var out []event.ToolApprovalResolved
	for _, e := range events {
		if d, ok := e.Data.(event.ToolApprovalResolved); ok {
			out = append(out, d)
		}
	}
	return out
}

// A run waits for a month in the journal, without a process.
//
// rows: HAR-66, HAR-79
func TestARunParkedTodayIsResumedNextMonthByTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ran := gatedRig(t)
		r.cfg.Limits.MaxWallSeconds = 60
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		time.Sleep(31 * 24 * time.Hour)
		other := r.other()
		other.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "ann", Text: "back from leave"})
		time.Sleep(24 * time.Hour)
		if o := outcome(t, other.resume(run.ID)); !o.OK || ran.Load() != 1 {
			t.Errorf("%d calls ran; outcome %+v", ran.Load(), o)
		}
		d := decisions(r.whole(run.ID))
		if len(d) != 1 || d[0].Approver != "ann" || d[0].Reason != "back from leave" || d[0].At.IsZero() {
			t.Errorf("decisions %+v", d)
		}
	})
}

// A person's time is not the run's: neither the wall time nor the time without
// progress counts it.
func TestThinkingAboutAnApprovalCostsNoTime(t *testing.T) {
	for name, answer := range map[string]func(r *rig){
		"at a terminal": func(r *rig) {
			r.asker(func(context.Context, event.Question) (event.Resolution, error) {
				time.Sleep(10 * time.Hour)
				return event.Resolution{Kind: event.ApprovalApproved, Approver: "ann"}, nil
			})
		},
		"from elsewhere, while the run waits": func(r *rig) {
			r.cfg.Approve, r.cfg.Approvals.Seconds = agent.ApproveWait, 86_400
			time.AfterFunc(10*time.Hour, func() {
				rows, _ := r.store.Runs(context.Background(), journal.Filter{})
				id := rows[0].ID
				_ = r.Send(context.Background(), journal.Command{Run: id, Kind: journal.Approve, CallID: id + "-1-1", By: "ann"})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, ran := gatedRig(t)
				r.cfg.Limits.MaxWallSeconds, r.cfg.Limits.MaxIdleSeconds = 60, 30
				answer(r)
				began := time.Now()
				if o := outcome(t, r.start(t.Context())); !o.OK || ran.Load() != 1 {
					t.Errorf("outcome %+v", o)
				}
				if took := time.Since(began); took < 10*time.Hour {
					t.Errorf("the answer took %s", took)
				}
			})
		})
	}
}

func TestADecisionAfterTheExpiryIsNone(t *testing.T) {
	for name, kind := range map[string]journal.CommandKind{"an approval": journal.Approve, "a rejection": journal.Reject} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, ran := gatedRig(t)
				r.cfg.Approvals.Seconds = 3600
				run := r.start(t.Context())
				parkedAs(t, run, event.ParkApproval)
				time.Sleep(time.Hour)
				err := r.Send(t.Context(), journal.Command{Run: run.ID, Kind: kind, CallID: run.ID + "-1-1", By: "ann"})
				var late *engine.DecidedError
				if !errors.As(err, &late) || late.Decision.Resolution().Kind != event.ApprovalExpired || !errors.Is(err, engine.ErrNotPending) {
					t.Errorf("whoever comes too late hears %v", err)
				}
				if o := outcome(t, r.resume(run.ID)); !o.OK || ran.Load() != 0 {
					t.Errorf("%d calls ran; outcome %+v", ran.Load(), o)
				}
				if res := results(r.whole(run.ID)); res[0].ErrorType != event.ErrorExpired {
					t.Errorf("result %+v", res[0])
				}
			})
		})
	}
}

// An approval that was given in time counts, however late the run is taken up.
func TestADecisionCountsByTheTimeAtWhichItWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ran := gatedRig(t)
		r.cfg.Approvals.Seconds = 3600
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		time.Sleep(59 * time.Minute)
		r.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "ann"})
		time.Sleep(240 * time.Hour)
		if o := outcome(t, r.resume(run.ID)); !o.OK || ran.Load() != 1 {
			t.Errorf("%d calls ran; outcome %+v", ran.Load(), o)
		}
	})
}

func TestRunParksWithoutAsker(t *testing.T) {
	boom := func(context.Context, event.Question) (event.Resolution, error) { panic("boom") }
	broken := func(context.Context, event.Question) (event.Resolution, error) {
		return event.Resolution{}, errors.New("no terminal")
	}
	for _, c := range []struct {
		name   string
		mode   agent.ApproveMode
		ask    asker
		parks  bool
		result event.ErrorType
		after  time.Duration
	}{
		{"ask parks", agent.ApproveAsk, nil, true, "", 0},
		{"ask parks when it breaks", agent.ApproveAsk, broken, true, "", 0},
		{"park parks, though somebody is there", agent.ApprovePark, silent, true, "", 0},
		{"callback rejects", agent.ApproveCallback, nil, false, event.ErrorRejected, 0},
		{"callback rejects when it breaks", agent.ApproveCallback, broken, false, event.ErrorRejected, 0},
		{"callback rejects when it panics", agent.ApproveCallback, boom, false, event.ErrorRejected, 0},
		{"wait waits until the time is over", agent.ApproveWait, nil, false, event.ErrorExpired, time.Hour},
		{"wait waits, though who was asked is broken", agent.ApproveWait, boom, false, event.ErrorExpired, time.Hour},
		{"wait waits for somebody who is silent", agent.ApproveWait, silent, false, event.ErrorExpired, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, ran := gatedRig(t)
				r.cfg.Approve = c.mode
				r.env.Ask = c.ask
				began := time.Now()
				run := r.start(t.Context())
				if c.parks {
					parkedAs(t, run, event.ParkApproval)
				} else if o := outcome(t, run); !o.OK {
					t.Errorf("outcome %+v", o)
				} else if res := results(r.whole(run.ID)); res[0].ErrorType != c.result {
					t.Errorf("result %+v", res[0])
				}
				if ran.Load() != 0 || time.Since(began) != c.after {
					t.Errorf("%d calls ran; it took %s", ran.Load(), time.Since(began))
				}
			})
		})
	}
}

// Seven calls ask at once, and two people answer all of them in their own order: each
// call has one decision, and the second answer gets an error.
func TestSevenCallsAskAtOnceAndTwoSurfacesAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 7
		var ran atomic.Int32
		var asked []scripted.Call
		for range n {
			asked = append(asked, call("work", "{}"))
		}
		r := newRig(t).gate("work").
			tools(toolFunc("work", func(context.Context) (string, error) { ran.Add(1); return "worked", nil })).
			turns(scripted.Turn{ToolCalls: asked}, scripted.Turn{Text: "done"})
		r.cfg.Approve = agent.ApproveWait
		run := r.start(t.Context())
		synctest.Wait()
		if s, err := r.Inspect(t.Context(), run.ID); err != nil || len(s.State().Pending) != n {
			t.Fatalf("%d calls wait for a decision (%v)", len(s.State().Pending), err)
		}
		var people sync.WaitGroup
		var second atomic.Int32
		luck := rand.New(rand.NewPCG(1, 2))
		for i, kind := range []journal.CommandKind{journal.Approve, journal.Reject} {
			order, by := luck.Perm(n), fmt.Sprint("person ", i)
			people.Go(func() {
				for _, i := range order {
					time.Sleep(time.Second)
					c := journal.Command{Run: run.ID, Kind: kind, CallID: fmt.Sprintf("%s-1-%d", run.ID, i+1), By: by, Text: "as I see it"}
					var decided *engine.DecidedError
					switch err := r.Send(t.Context(), c); {
					case errors.As(err, &decided):
						second.Add(1)
						if decided.Decision.Resolution().Approver == by {
							t.Errorf("%s is told of their own decision: %v", by, err)
						}
					case errors.Is(err, journal.ErrEnded):
						second.Add(1)
					case err != nil:
						t.Error(err)
					}
				}
			})
		}
		people.Wait()
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		approved := 0
		each := map[string]int{}
		for _, d := range decisions(r.whole(run.ID)) {
			each[d.CallID]++
			if d.Kind == event.ApprovalApproved {
				approved++
			}
		}
		if len(each) != n || int(ran.Load()) != approved {
			t.Errorf("%d calls decided, %d approved, %d ran", len(each), approved, ran.Load())
		}
		for id, times := range each {
			if times != 1 {
				t.Errorf("%s was decided %d times", id, times)
			}
		}
		if second.Load() == 0 {
			t.Error("nobody came second")
		}
	})
}

func TestCallIsEditedFromAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, got := argsRig(t)
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		slip := r.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "ann", Args: json.RawMessage(`{`)})
		if slip == nil || !strings.Contains(slip.Error(), "are no JSON") {
			t.Errorf("of arguments that are no JSON: %v", slip)
		}
		r.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "ann", Args: json.RawMessage(`{"to":"b"}`)})
		if err := r.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "bob"}); !errors.Is(err, engine.ErrNotPending) {
			t.Errorf("a second answer: %v", err)
		}
		if o := outcome(t, r.resume(run.ID)); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		if *got != `{"to":"b"}` {
			t.Errorf("the tool ran with %s", *got)
		}
	})
}

func TestAskerEditsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, got := argsRig(t)
		r.asker(func(context.Context, event.Question) (event.Resolution, error) {
			return event.Resolution{Kind: event.ApprovalEdited, Approver: "ann", Args: json.RawMessage(`{"to":"b"}`)}, nil
		})
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK || *got != `{"to":"b"}` {
			t.Errorf("the tool ran with %s; outcome %+v", *got, o)
		}
		var resolved []event.ToolCall
		for _, e := range r.whole(run.ID) {
			if d, ok := e.Data.(event.ToolCall); ok {
				resolved = append(resolved, d)
			}
		}
		if len(resolved) != 2 || resolved[0].Digest == resolved[1].Digest || resolved[1].EditedBy != "ann" {
			t.Errorf("tool calls %+v", resolved)
		}
	})
}

// After an invalid answer the call asks again, in the process that resumes the run.
func TestAnEditThatIsNoJSONDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, got := argsRig(t)
		r.asker(func(context.Context, event.Question) (event.Resolution, error) {
			return event.Resolution{Kind: event.ApprovalEdited, Approver: "ann", Args: json.RawMessage(`{"to":`)}, nil
		})
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		if s := wait(t, run); *got != "" || !strings.Contains(s.Parked.Detail, "are no JSON") || len(decisions(r.journal(run.ID))) > 0 {
			t.Errorf("the tool ran with %q; parked with %+v", *got, s.Parked)
		}
	})
}

// argsRig is a run whose gated tool tells the arguments that it ran with.
func argsRig(t *testing.T) (*rig, *string) {
	got := new(string)
	r := newRig(t).gate("send").tools(argsTool("send", func(args string) { *got = args })).
		turns(scripted.Turn{ToolCalls: calls("send", `{"to":"a"}`)}, scripted.Turn{Text: "done"})
	return r, got
}

// A run that parked under another reading of the rules asks again in the process that
// resumes it with this one.
func TestARunThatParkedBeforeAnUpgradeIsAskedAboutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ran := gatedRig(t)
		started, err := agent.Start(r.cfg.WithDefaults(), llm.UserText("do it"))
		if err != nil {
			t.Fatal(err)
		}
		started.Policy = "0/of another version"
		run, err := r.Start(t.Context(), started, r.env)
		if err != nil {
			t.Fatal(err)
		}
		approve := journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "ann"}
		parkedAs(t, run, event.ParkApproval)
		r.send(approve)
		run = r.resume(run.ID)
		parkedAs(t, run, event.ParkApproval)
		if ran.Load() != 0 {
			t.Fatal("what was approved under another policy has run")
		}
		r.send(approve)
		if o := outcome(t, r.resume(run.ID)); !o.OK || ran.Load() != 1 {
			t.Errorf("%d calls ran; outcome %+v", ran.Load(), o)
		}
		asked := map[string]bool{}
		for _, e := range r.whole(run.ID) {
			if p, ok := e.Data.(event.ToolPendingApproval); ok {
				asked[p.Policy] = true
			}
		}
		if want := policy.Reading + "/of another version"; len(asked) != 2 || !asked[started.Policy] || !asked[want] {
			t.Errorf("asked under %v", asked)
		}
	})
}
