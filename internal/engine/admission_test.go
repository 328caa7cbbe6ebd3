package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// sharedTokens is a limit on the tokens of all runs of an engine.
type sharedTokens struct {
	mu         sync.Mutex
	left, open int64
	reports    int
}

func (s *sharedTokens) Admit(_ context.Context, _ perform.ModelCall, _ llm.Usage) (perform.Paid, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left <= 0 {
		return nil, errors.New("the tokens of this day are used")
	}
	s.open++
	return func(u llm.Usage, _ llm.Cost) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		s.reports++
		s.left -= u.Input + u.Output
	}, nil
}

func TestAdmissionHoldsALimitOverAllRuns(t *testing.T) {
	store, limit := memory.New(nil), &sharedTokens{left: 15}
	r := newRig(t, store)
	r.Engine = engine.New(store, newMachine, engine.Options{Admission: limit})
	defer r.Engine.Close()
	asked := 0
	answer := &llm.Response{Parts: llm.Parts{llm.Text{Text: "done"}}, Usage: llm.Usage{Input: 8, Output: 2}}
	r.model(modelFunc(func(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
		asked++
		return answer, nil
	}))
	for i, ok := range []bool{true, true, false} {
		run := r.start(t.Context())
		o := outcome(t, run)
		if o.OK != ok {
			t.Errorf("run %d is %+v", i+1, o)
		}
		failed := failedCalls(r.whole(run.ID))
		if !ok && (len(failed) == 0 || failed[0].Class != llm.ClassQuota || !strings.Contains(failed[0].Message, "of this day") || failed[0].Usage != llm.Usage{}) {
			t.Errorf("a refused call is %+v", failed)
		}
	}
	if asked != 2 || limit.left != -5 || limit.open != 0 || limit.reports != 2 {
		t.Errorf("%d calls were made, %d tokens left, %d calls open, %d reported", asked, limit.left, limit.open, limit.reports)
	}
}

// elsewhere is a Placement that leaves some runs to another process.
type elsewhere struct {
	holder.Placement
	run string
}

func (e *elsewhere) Take(ctx context.Context, run string) (journal.Lease, error) {
	if e.run == run {
		return journal.Lease{}, &journal.HeldError{Run: run, Owner: "a worker with the label gpu"}
	}
	return e.Placement.Take(ctx, run)
}

func TestPlacementDecidesWhichProcessDrivesARun(t *testing.T) {
	store := memory.New(nil)
	r := newRig(t, store).turns(scripted.Turn{ToolCalls: calls("send", `{}`)}, scripted.Turn{Text: "done"}, scripted.Turn{ToolCalls: calls("send", `{}`)}).
		tools(toolFunc("send", func(context.Context) (string, error) { return "sent", nil })).gate("send")
	here := r.start(t.Context())
	parkedAs(t, here, event.ParkApproval)
	r.turns(scripted.Turn{ToolCalls: calls("send", `{}`)})
	there := r.start(t.Context())
	parkedAs(t, there, event.ParkApproval)

	place := &elsewhere{Placement: holder.NewLocal(store, "this process", time.Minute, time.Now), run: there.ID}
	r.Engine = engine.New(store, newMachine, engine.Options{Placement: place, Owner: "this process", LeaseTTL: time.Minute})
	defer r.Engine.Close()
	if _, err := r.Resume(t.Context(), there.ID, func(event.RunStarted) (perform.Env, error) { return r.env, nil }); !errors.As(err, new(*journal.HeldError)) {
		t.Errorf("a run of another process is resumed: %v", err)
	}
	parkedAs(t, r.resume(here.ID), event.ParkApproval)
	for run, want := range map[string]int{here.ID: 1, there.ID: 0} {
		if n := count(r.journal(run), "run.resumed"); n != want {
			t.Errorf("run %s is resumed %d times, want %d", run, n, want)
		}
	}
	row, err := store.Run(t.Context(), there.ID)
	if row.Owner, row.Expiry = "a worker", time.Now().Add(time.Minute); err != nil || !r.Drives(row) {
		t.Errorf("a valid lease drives nothing: %+v, %v", row, err)
	}
	if row.Expiry = time.Now().Add(-time.Second); r.Drives(row) {
		t.Error("a lease that is over drives a run")
	}
}
