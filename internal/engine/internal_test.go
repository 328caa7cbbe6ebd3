package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// waitsForApproval is a machine with one open approval, which ends when that
// is decided.
type waitsForApproval struct {
	expires  time.Time
	decision *event.ToolApprovalResolved
	outcome  *event.Outcome
}

func (m *waitsForApproval) pending() event.Question {
	return event.ToolPendingApproval{CallID: "c", Tool: "t", Digest: "d", ExpiresAt: &m.expires}.Question()
}

func (m *waitsForApproval) Apply(e *event.Event) error {
	switch d := e.Data.(type) {
	case event.ToolApprovalResolved:
		m.decision = &d
	case event.RunCompleted:
		m.outcome = &d.Outcome
	}
	return nil
}

func (m *waitsForApproval) Next() []machine.Action {
	switch {
	case m.outcome != nil:
		return nil
	case m.decision == nil:
		return []machine.Action{machine.Ask{Questions: m.State().Pending}}
	}
	return []machine.Action{machine.Record{Data: event.RunCompleted{Outcome: event.Outcome{Reason: event.ReasonFinalAnswer}}}}
}

func (m *waitsForApproval) State() machine.State {
	s := machine.State{Phase: machine.Running, Outcome: m.outcome}
	if m.outcome != nil {
		s.Phase = machine.Ended
	}
	if m.decision == nil {
		p := m.pending()
		s.Pending = []*event.Question{&p}
	}
	return s
}

// startMachine starts a run of a machine of the test's.
func startMachine(t *testing.T, r *rig, m machine.Machine) *engine.Run {
	t.Helper()
	e := engine.New(r.store, func(string) (machine.Machine, error) { return m, nil }, engine.Options{})
	t.Cleanup(func() { _ = e.Close() })
	run, err := e.Start(t.Context(), event.RunStarted{Machine: "test", Config: []byte("{}")}, r.env)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// broken is the agent machine with a defect.
type broken struct {
	*agent.Machine
	apply func(*event.Event) error
	next  func() []machine.Action
}

func (b *broken) Apply(e *event.Event) error {
	if b.apply != nil {
		if err := b.apply(e); err != nil {
			return err
		}
	}
	return b.Machine.Apply(e)
}

func (b *broken) Next() []machine.Action {
	if b.next != nil {
		if a := b.next(); a != nil {
			return a
		}
	}
	return b.Machine.Next()
}

// What no budget has admitted is not called, whatever machine asks for it.
func TestAModelIsNotCalledWithoutAnAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Bool
		r := newRig(t).model(modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
			called.Store(true)
			return &llm.Response{Parts: llm.Parts{llm.Text{Text: "done"}}}, nil
		}))
		b := &broken{Machine: agent.New()}
		b.next = func() []machine.Action {
			actions := slices.Clone(b.Machine.Next())
			for i, a := range actions {
				if c, ok := a.(machine.CallModel); ok {
					c.Admission = budget.Admission{}
					actions[i] = c
				}
			}
			return actions
		}
		e := engine.New(r.store, func(string) (machine.Machine, error) { return b, nil }, engine.Options{})
		defer e.Close()
		r.Engine = e
		run := r.start(t.Context())
		s, err := run.Wait(t.Context())
		if called.Load() || err == nil || s.Outcome == nil || s.Outcome.Reason != event.ReasonInternal {
			t.Errorf("called %t, state %+v, error %v", called.Load(), s.Outcome, err)
		}
		if n := count(r.whole(run.ID), "model.requested"); n != 0 {
			t.Errorf("%d intents", n)
		}
	})
}

func TestABrokenMachineEndsTheRunAsInternalWithEveryCallSettled(t *testing.T) {
	refuse := func(kind event.Type, how func() error) func(*event.Event) error {
		return func(e *event.Event) error {
			if e.Type() == kind {
				return how()
			}
			return nil
		}
	}
	boom := func() error { panic("boom") }
	for name, b := range map[string]*broken{
		"Apply panics over a result":   {apply: refuse("tool_result", boom)},
		"Apply refuses a result":       {apply: refuse("tool_result", func() error { return errors.New("misfit") })},
		"Apply panics over an answer":  {apply: refuse("model.response", boom)},
		"Apply panics over the intent": {apply: refuse("tool.started", boom)},
		"Next never stops deciding": {next: func() []machine.Action {
			return []machine.Action{machine.Record{Data: event.PauseRequested{}}}
		}},
		"Next asks for what cannot be done": {next: func() []machine.Action { return []machine.Action{nil} }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b.Machine = agent.New()
				r := newRig(t).tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil })).
					turns(scripted.Turn{ToolCalls: calls("work", "{}", "work", "{}")}, scripted.Turn{Text: "done"})
				e := engine.New(r.store, func(string) (machine.Machine, error) { return b, nil }, engine.Options{})
				defer e.Close()
				r.Engine = e
				run := r.start(t.Context())
				s, err := run.Wait(t.Context())
				if err == nil || s.Outcome == nil || s.Outcome.Reason != event.ReasonInternal {
					t.Fatalf("state %+v, error %v", s, err)
				}
				var last event.Type
				var failed error
				for ev, err := range run.Events(t.Context(), false) {
					if err != nil {
						failed = err
						continue
					}
					last = ev.Type()
				}
				if last != "run.completed" || failed == nil {
					t.Errorf("the last event is %s, the error %v", last, failed)
				}
				r.whole(run.ID)
				if row, err := r.store.Run(t.Context(), run.ID); err != nil || row.State != "ended" || row.Owner != "" {
					t.Errorf("the run's row is %+v (%v)", row, err)
				}
			})
		})
	}
}

// Whatever it comes from: a reader of JSON takes 10,000 levels.
func TestUnreadableEventEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broken{Machine: agent.New()}
		recorded := false
		b.next = func() []machine.Action {
			if recorded || b.State().Cycle == 0 {
				return nil
			}
			recorded = true
			const levels = 9_999
			return []machine.Action{machine.Record{Data: event.HookResult{
				Hook: "h", Stage: event.HookBeforeTool, Decision: event.HookRewrite,
				Args: []byte(strings.Repeat("[", levels) + strings.Repeat("]", levels)),
			}}}
		}
		r := newRig(t).turns(scripted.Turn{Text: "done"})
		e := engine.New(r.store, func(string) (machine.Machine, error) { return b, nil }, engine.Options{})
		defer e.Close()
		r.Engine = e
		run := r.start(t.Context())
		s, err := run.Wait(t.Context())
		if err == nil || !strings.Contains(err.Error(), "hook.result is nested deeper than") ||
			s.Outcome == nil || s.Outcome.Reason != event.ReasonInternal {
			t.Errorf("outcome %+v, error %v", s.Outcome, err)
		}
		if n := count(r.whole(run.ID), "hook.result"); n != 0 {
			t.Errorf("%d of the events are there", n)
		}
	})
}

// What was under way when a run broke, and ended all the same, was paid for: it is
// the call's result.
func TestWhatEndsWhileARunBreaksIsItsCallsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).turns(scripted.Turn{Text: "found"})
		look := toolFunc("look", func(context.Context) (string, error) { time.Sleep(time.Second); return "seen", nil })
		slow := toolFunc("slow", func(context.Context) (string, error) { time.Sleep(2 * time.Second); return "worked", nil })
		look.Concurrent, slow.Concurrent = true, true
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task, "slow", "{}", "look", "{}")}).tools(look, slow).offers("ask", child)
		r.cfg.Dispatch = agent.ParallelAll
		b := &broken{Machine: agent.New()}
		b.apply = func(e *event.Event) error {
			if d, ok := e.Data.(event.ToolResult); ok && d.Tool == "look" {
				return errors.New("a defect")
			}
			return nil
		}
		var machines atomic.Int32 // the parent's comes first
		e := engine.New(r.store, func(string) (machine.Machine, error) {
			if machines.Add(1) == 1 {
				return b, nil
			}
			return agent.New(), nil
		}, engine.Options{Observers: []perform.Observer{{Tool: func(ctx context.Context, c perform.ToolCall, next handOn) (tool.Result, error) {
			result, err := next(ctx)
			if c.Tool == "ask" {
				time.Sleep(2 * time.Second) // the child has ended, and its call has not
			}
			return result, err
		}}}})
		defer e.Close()
		r.Engine = e
		run := r.start(t.Context())
		if s, err := run.Wait(t.Context()); err == nil || s.Outcome == nil || s.Outcome.Reason != event.ReasonInternal {
			t.Fatalf("%+v, %v", s.Outcome, err)
		}
		got := map[string]string{}
		for _, res := range results(r.whole(run.ID)) {
			got[res.Tool] = res.Output
		}
		if got["ask"] != "found" || got["slow"] != "worked" {
			t.Errorf("%q", got)
		}
		r.ended(run.ID)
	})
}

// A parent that breaks leaves nothing set aside for its children, and its
// outcome says what they used.
func TestAParentThatBreaksSettlesWhatItsChildrenDrew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := newRig(t).model(&slowly{takes: time.Minute, output: 10}).priced(0, 1000)
		child.cfg.MaxTokens = 20
		look := toolFunc("look", func(context.Context) (string, error) {
			time.Sleep(10 * time.Second)
			return "seen", nil
		})
		look.Concurrent = true
		r := newRig(t, child.store).turns(
			uses(1, 1, scripted.Turn{ToolCalls: calls("ask", task, "ask", task, "look", "{}")}), scripted.Turn{Text: "never"},
		).priced(0, 1000).tools(look).offers("ask", child)
		r.cfg.MaxTokens, r.cfg.Dispatch = 100, agent.ParallelAll
		b := &broken{Machine: agent.New()}
		b.apply = func(e *event.Event) error {
			if d, ok := e.Data.(event.ToolResult); ok && d.Tool == "look" {
				return errors.New("a defect")
			}
			return nil
		}
		var machines atomic.Int32 // the parent's comes first; its children ask for theirs at once
		e := engine.New(r.store, func(string) (machine.Machine, error) {
			if machines.Add(1) == 1 {
				return b, nil
			}
			return agent.New(), nil
		}, engine.Options{})
		defer e.Close()
		r.Engine = e
		run := r.start(t.Context())
		s, err := run.Wait(t.Context())
		if err == nil || s.Outcome == nil || s.Outcome.Reason != event.ReasonInternal {
			t.Fatalf("%+v, %v", s.Outcome, err)
		}
		used := s.Outcome.Cost.USD
		open := map[string]bool{}
		for _, e := range r.whole(run.ID) {
			switch d := e.Data.(type) {
			case event.BudgetReserved:
				open[d.Run+"/"+d.ID] = true
			case event.BudgetCommitted:
				delete(open, d.Run+"/"+d.ID)
			case event.ChildFinished:
				used -= d.Outcome.Cost.USD
			}
		}
		// The parent's own call cost a tenth of a cent.
		if len(open) > 0 || !near(used, 0.001) || s.Outcome.Cost.USD < 0.02 {
			t.Errorf("still set aside: %v; the tree cost %+v, and %v of it nobody", open, s.Outcome.Cost, used)
		}
		r.ended(run.ID)
	})
}
