package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/flow"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
)

// startRefinement starts a loop that does again and again what the worker does.
func startRefinement(t *testing.T, e *engine.Engine, env perform.Env, l plan.Loop) *engine.Run {
	t.Helper()
	l.Single, l.Body = true, plan.Plan{Steps: []plan.Step{{Agent: &plan.Agent{Name: "worker"}}}}
	l.Carry = plan.Carry{Log: &plan.Log{Chars: 300, MaxEntries: 50}}
	started, err := flow.Start(flow.Config{Plan: plan.Plan{Name: "fix", Refine: true, Steps: []plan.Step{{ID: "loop", Loop: &l}}}}, llm.UserText("Fix it."))
	if err != nil {
		t.Fatal(err)
	}
	run, err := e.Start(t.Context(), started, env)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func workerSays(t *testing.T, store journal.Store, says string) perform.Env {
	return perform.Env{Children: map[string]perform.Child{"worker": works(t, store, says)}}
}

// An iteration adds at most five events to the journal of its loop, beside what the
// account of its child takes, and at most two commits to those of the child alone.
func TestAnIterationCostsAtMostFiveEventsAndTwoCommits(t *testing.T) {
	cost := func(iterations int) (events, commits int) {
		store := &counted{watched: &watched{Store: memory.New(nil)}}
		e := engine.New(store, versions.Make, engine.Options{})
		t.Cleanup(func() { _ = e.Close() })
		run := startRefinement(t, e, workerSays(t, store, "the answer"), plan.Loop{Max: iterations, OnLimit: plan.LimitIsOK})
		if o := outcome(t, run); !o.OK || o.Iterations != iterations {
			t.Fatalf("%+v", o)
		}
		for _, r := range store.events(t, run.ID) {
			if !strings.HasPrefix(r.Type, "budget.") {
				events++
			}
		}
		return events, store.creates + store.count()
	}
	const alone = 3 // commits of a run of one call
	events, commits := cost(2)
	more, moreCommits := cost(12)
	if each := float64(more-events) / 10; each > 5 {
		t.Errorf("an iteration adds %v events to its loop's journal, want at most 5", each)
	}
	if each := float64(moreCommits-commits)/10 - alone; each > 2 {
		t.Errorf("an iteration costs %v commits beside its child's, want at most 2", each)
	}
}

// The journal of a loop of 100 iterations holds what each said once: it is at most 1.5
// times what the loop received, and 600 bytes an event. A fold of it has every text.
func TestJournalOfLoopStoresEachAnswerOnce(t *testing.T) {
	const iterations = 100
	for name, says := range map[string]string{"short": "the answer", "long": strings.Repeat("It did this and that. ", 400)} {
		t.Run(name, func(t *testing.T) {
			store := &counted{watched: &watched{Store: memory.New(nil)}}
			e := engine.New(store, versions.Make, engine.Options{})
			t.Cleanup(func() { _ = e.Close() })
			worker := newRig(t, store).model(modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) { return said(says), nil }))
			env := perform.Env{Children: map[string]perform.Child{"worker": {
				Begin: func(json.RawMessage) (event.RunStarted, perform.Env, error) { return worker.started(), worker.env, nil },
			}}}
			run := startRefinement(t, e, env, plan.Loop{Max: iterations, OnLimit: plan.LimitIsOK})
			o := outcome(t, run)
			if o.Iterations != iterations || o.LastOutput != says {
				t.Fatalf("%+v", o)
			}
			size, records := 0, store.events(t, run.ID)
			for _, r := range records {
				size += len(r.Body)
				d, err := event.Decode(r.Body)
				if err != nil {
					t.Fatal(err)
				}
				if it, is := d.Data.(event.Iteration); is && it.Output != says {
					t.Fatalf("iteration %d says %q", it.Number, it.Output)
				}
			}
			received, each := iterations*len(says), 600*len(records)
			t.Logf("%d bytes in %d events for %d bytes received; 1.5 times that and 600 an event are %d", size, len(records), received, received*3/2+each)
			if size > received*3/2+each {
				t.Errorf("the journal has %d bytes for %d bytes received and %d events", size, received, len(records))
			}
			for read, err := range drive.Events(t.Context(), store, run.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				switch d := read.Event.Data.(type) {
				case event.ChildFinished:
					if d.Outcome.FinalOutput != says || d.Outcome.LastOutput != says {
						t.Fatalf("event %d is folded as %+v", read.Record.Seq, d.Outcome)
					}
				case event.StepFinished:
					if d.Content != says {
						t.Fatalf("event %d is folded as %+v", read.Record.Seq, d)
					}
				}
			}
		})
	}
}

// A loop that waits for a person is its journal alone: no goroutine waits with it.
func TestALoopThatWaitsForAReviewHoldsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		e := engine.New(store, versions.Make, engine.Options{})
		defer func() { _ = e.Close() }()
		synctest.Wait()
		before := inBubble()
		run := startRefinement(t, e, workerSays(t, store, "done"), plan.Loop{Max: 3, StopWhen: []plan.Stop{{Human: &plan.Human{}}}})
		if s, err := run.Wait(t.Context()); err != nil || s.Phase != machine.Parked || len(s.Pending) != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		synctest.Wait()
		if after := inBubble(); after > before {
			t.Errorf("%d goroutines before, %d while it waits", before, after)
		}
	})
}

// inBubble is how many goroutines of synctest there are: others of the process are those
// of other tests.
func inBubble() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte(", synctest bubble "))
}

// A loop of many iterations that waited is taken up in the time that its journal takes
// to be read.
func TestALoopThatWaitedIsTakenUpAtOnce(t *testing.T) {
	const iterations = 50
	store := memory.New(nil)
	e := engine.New(store, versions.Make, engine.Options{})
	t.Cleanup(func() { _ = e.Close() })
	env := workerSays(t, store, strings.Repeat("It did this and that. ", 100))
	run := startRefinement(t, e, env, plan.Loop{Max: iterations, OnLimit: plan.LimitAsks})
	if s, err := run.Wait(t.Context()); err != nil || len(s.Pending) != 1 || s.Pending[0].ID != "limit-50" {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := e.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Reject, CallID: "limit-50", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	before := processor.Time(t)
	again, err := e.Resume(t.Context(), run.ID, func(event.RunStarted) (perform.Env, error) { return env, nil })
	if err != nil {
		t.Fatal(err)
	}
	s, err := again.Wait(t.Context())
	took := processor.Time(t) - before
	t.Logf("taken up and ended in %s of processor time", took)
	if err != nil || s.Outcome == nil || s.Outcome.Iterations != iterations {
		t.Errorf("%+v, %v", s.Outcome, err)
	}
	if took > time.Second { // ten times what is wanted, as others may use this process
		t.Errorf("it takes %s of processor time", took)
	}
}

// Of two decisions about a review at once one counts, and its journal says whose.
func TestAReviewThatIsDecidedTwiceAtOnceIsDecidedOnce(t *testing.T) {
	store := memory.New(nil)
	e := engine.New(store, versions.Make, engine.Options{})
	t.Cleanup(func() { _ = e.Close() })
	run := startRefinement(t, e, workerSays(t, store, "done"), plan.Loop{Max: 3, StopWhen: []plan.Stop{{Human: &plan.Human{}}}})
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for _, kind := range []journal.CommandKind{journal.Approve, journal.Reject} {
		go func() {
			errs <- e.Send(t.Context(), journal.Command{Run: run.ID, Kind: kind, CallID: "review-1", By: "by " + string(kind)})
		}()
	}
	for range 2 {
		if err := <-errs; err != nil && !errors.Is(err, engine.ErrNotPending) {
			t.Error(err)
		}
	}
	made, err := e.Decisions(t.Context(), run.ID, "review-1")
	if err != nil || len(made) != 1 || !strings.HasPrefix(made[0].Resolution().Approver, "by ") {
		t.Errorf("%+v, %v", made, err)
	}
}
