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
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

const sampler = "docs.sampling"

// samples is a tool whose calls ask for answers of a model, as a server does: times of
// them in each call, for usd in the run. Its result holds the answers.
func samples(times int, usd float64, effect event.Effect) tool.Tool {
	return tool.Tool{
		Name: "work", Description: "Works.", Schema: json.RawMessage(`{"type":"object"}`), Effect: effect,
		Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			if _, decided := c.Run.Allowed(sampler); !decided {
				return tool.Result{}, &tool.InputRequired{Form: event.Form{Message: "May a model answer?", Schema: json.RawMessage(`{"type":"object","properties":{}}`), Consent: sampler}}
			}
			var said []string
			for range times {
				a, err := c.Run.Sample(ctx, tool.Sampling{Agent: sampler, USD: usd, Messages: []tool.SampledMessage{{Role: "user", Text: "Why?"}}})
				if err != nil {
					a.Text = "no: " + err.Error()
				}
				said = append(said, a.Text)
			}
			return tool.Result{Output: strings.Join(said, "|")}, nil
		},
	}
}

// answersBy gives a rig's run the agent that answers: another rig is what its runs are
// made of. Its limit in money is the rest of that of the server.
func (r *rig) answersBy(of *rig) *rig {
	r.env.Children = map[string]perform.Child{sampler: {
		Begin: func(input json.RawMessage) (event.RunStarted, perform.Env, error) {
			var s tool.Sampling
			if err := json.Unmarshal(input, &s); err != nil {
				return event.RunStarted{}, perform.Env{}, err
			}
			cfg := of.cfg
			cfg.Limits.USDPerRun, cfg.Limits.MaxCycles, cfg.MaxTokens = s.USD, 1, 100
			started, err := agent.Start(cfg.WithDefaults(), llm.UserText(s.Messages[0].Text))
			return started, of.env, err
		},
	}}
	return r
}

// twoCalls are the turns of a run with two calls of work.
func twoCalls(r *rig) *rig {
	return r.turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{ToolCalls: calls("work", `{"again":true}`)}, scripted.Turn{Text: "done"})
}

// Each answer is a run below the call's, after one question: two in one call, and in a
// later call without another question. What they cost is the run's, up to the limit.
func TestAToolsSamplingsAreRunsBelowTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := uses(1000, 50, scripted.Turn{Text: "because"})
		child := newRig(t).turns(answer).priced(1, 2)
		r := twoCalls(newRig(t, child.store).tools(samples(2, 0.0034, ""))).answersBy(child)
		questions := 0
		r.asker(func(_ context.Context, q event.Question) (event.Resolution, error) {
			questions++
			return event.Resolution{Kind: event.ApprovalAnswered, Args: json.RawMessage("{}"), Approver: "ann"}, nil
		})
		run := r.start(t.Context())
		o := outcome(t, run)
		events := r.whole(run.ID)
		got := results(events)
		if !o.OK || questions != 1 || len(got) != 2 || got[0].Output != "because|because" || !strings.HasPrefix(got[1].Output, "because|no: the limit of USD 0.0034 ") {
			t.Fatalf("%d questions, outcome %+v, results %+v", questions, o, got)
		}
		if o.Usage.Input < 3000 || o.Cost.USD < 3*0.0011-1e-9 {
			t.Errorf("used %+v, cost %+v", o.Usage, o.Cost)
		}
		ids := r.children(run.ID)
		if len(ids) < 3 {
			t.Fatalf("children %v", ids)
		}
		for _, id := range ids {
			row, err := r.store.Run(t.Context(), id)
			if err != nil || row.Parent != run.ID || row.State != journal.Ended {
				t.Errorf("%+v, %v", row, err)
			}
		}
		for _, e := range events {
			if d, is := e.Data.(event.ChildStarted); is && (d.During != run.ID+"-1-1" && d.During != run.ID+"-2-1" || d.CallID != "" || d.Name != sampler) {
				t.Errorf("%+v", d)
			}
		}
		again, err := replay.Run(t.Context(), r.Past(), run.ID, func(string) (llm.Model, string, error) { return nil, "", errors.New("no wire") })
		if err != nil || len(again.Divergences) > 0 {
			t.Errorf("the replay: %+v, %v", again, err)
		}
	})
}

// A run without a person parks with the question, and goes on in another process.
func TestConsentToSamplingParksTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(scripted.Turn{Text: "because"}).priced(1, 2)
		r := twoCalls(newRig(t, child.store).tools(samples(1, 1, ""))).answersBy(child)
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		r.send(journal.Command{Run: run.ID, Kind: journal.Approve, CallID: run.ID + "-1-1", By: "ann"})
		run = r.other().resume(run.ID)
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v", o)
		}
		if got := results(r.whole(run.ID)); len(got) != 2 || got[0].Output != "because" || got[1].Output != "because" {
			t.Errorf("results %+v", got)
		}
	})
}

// After a refusal the run asks for no further consent.
func TestDeclinedSamplingIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns().priced(1, 2)
		r := twoCalls(newRig(t, child.store).tools(samples(1, 1, ""))).answersBy(child)
		questions := 0
		r.asker(func(context.Context, event.Question) (event.Resolution, error) {
			questions++
			return event.Resolution{Kind: event.ApprovalRejected, Approver: "ann"}, nil
		})
		run := r.start(t.Context())
		outcome(t, run)
		got := results(r.whole(run.ID))
		if questions != 1 || len(got) != 2 || !strings.Contains(got[1].Output, "no person has allowed") || len(r.children(run.ID)) != 0 {
			t.Errorf("%d questions, results %+v", questions, got)
		}
	})
}

// The process dies while a model answers. The next one ends that run, counts what it
// has used, and then decides about the call by its effect class.
func TestSamplingThatACrashInterrupts(t *testing.T) {
	for effect, attempts := range map[event.Effect]int{event.EffectAtMostOnce: 1, event.EffectIdempotent: 2} {
		synctest.Test(t, func(t *testing.T) {
			store := &watched{Store: memory.New(nil), onAppend: failOnce("child.finished", journal.ErrFull)}
			answer := uses(1000, 50, scripted.Turn{Text: "because"})
			child := newRig(t, store).turns(answer).priced(1, 2)
			r := newRig(t, store).tools(samples(1, 1, effect)).answersBy(child).
				turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
			r.cfg.Approve = agent.ApproveAll
			run := r.start(t.Context())
			if _, err := run.Wait(t.Context()); err == nil {
				t.Fatal("the process did not die")
			}
			other := r.other()
			o := outcome(t, other.resume(run.ID))
			got, ids := results(r.whole(run.ID)), r.children(run.ID)
			if !o.OK || len(got) != 1 || len(ids) != attempts {
				t.Fatalf("%s: outcome %+v, results %+v, children %v", effect, o, got, ids)
			}
			if (effect == event.EffectAtMostOnce) != (got[0].ErrorType == event.ErrorInDoubt) {
				t.Errorf("%s: %+v", effect, got[0])
			}
			if want := float64(attempts) * 0.0011; o.Cost.USD < want-1e-9 || o.Cost.USD > want+1e-3 {
				t.Errorf("%s: it cost %+v", effect, o.Cost)
			}
		})
	}
}

// A cancel of the run, and the end of the call, end the run that answers.
func TestSamplingEndsWithItsCall(t *testing.T) {
	for name, cancelled := range map[string]bool{"the run is cancelled": true, "the tool does not wait": false} {
		synctest.Test(t, func(t *testing.T) {
			begun, left := make(chan struct{}), make(chan struct{})
			child := newRig(t).model(modelFunc(func(ctx context.Context, _ *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
				close(begun)
				<-ctx.Done()
				close(left)
				return nil, ctx.Err()
			})).priced(1, 2)
			work := samples(1, 1, "")
			inner := work.Run
			work.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
				ctx, stop := context.WithCancel(ctx)
				defer stop()
				if !cancelled {
					go func() { <-begun; stop() }()
				}
				res, err := inner(ctx, c)
				if err == nil {
					<-left // the run that answers ends first
				}
				return res, err
			}
			r := newRig(t, child.store).tools(work).answersBy(child).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
			r.cfg.Approve = agent.ApproveAll
			began := time.Now()
			run := r.start(t.Context())
			if cancelled {
				<-begun
				r.send(journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann"})
			}
			if o := outcome(t, run); o.OK == cancelled || time.Since(began) > time.Second {
				t.Errorf("%s: outcome %+v after %s", name, o, time.Since(began))
			}
			row, err := r.store.Run(t.Context(), r.children(run.ID)[0])
			if err != nil || row.State != journal.Ended {
				t.Errorf("%s: %+v, %v", name, row, err)
			}
		})
	}
}

// The budget of the run bounds the answers, too.
func TestSamplingDrawsFromTheBudgetAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(scripted.Turn{Text: "because"}).priced(1, 2000)
		r := newRig(t, child.store).tools(samples(1, 10, "")).answersBy(child).turns(scripted.Turn{ToolCalls: calls("work", "{}")}, scripted.Turn{Text: "done"})
		r.cfg.Approve, r.cfg.Limits = agent.ApproveAll, budget.Limits{USDPerRun: 0.01}
		run := r.start(t.Context())
		outcome(t, run)
		if got := results(r.whole(run.ID)); len(got) != 1 || !strings.Contains(got[0].Output, "no: ") || strings.Contains(got[0].Output, "samplings of this server") {
			t.Errorf("results %+v", got)
		}
	})
}
