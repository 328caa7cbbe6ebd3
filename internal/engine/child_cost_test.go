package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
)

// single is a machine that starts one run, and ends with what that gave.
type single struct{ tree.Run }

func (s *single) Next() []machine.Action {
	due, more := s.Due()
	if !more {
		return due
	}
	due = append(due, s.Start(machine.StartChild{ID: "only", Kind: agent.Kind, Name: "helper", Input: json.RawMessage(task)})...)
	if end := s.Finished("only"); end != nil {
		return s.End(event.RunTerminatedBy{Reason: event.ReasonConditionMet, Output: end.FinalOutput})
	}
	return due
}

// A run of one call that another starts costs five commits where it would cost three
// alone, and four events in the journal of the run that starts it.
func TestARunStartedByAnotherCostsFiveCommits(t *testing.T) {
	store := &counted{watched: &watched{Store: memory.New(nil)}}
	e := engine.New(store, func(v string) (machine.Machine, error) {
		return machine.Table{agent.Version: func() machine.Machine { return agent.New() }, "single/1": func() machine.Machine { return &single{} }}.Make(v)
	}, engine.Options{})
	t.Cleanup(func() { _ = e.Close() })
	env := perform.Env{Children: map[string]perform.Child{"helper": {
		Begin: func(json.RawMessage) (event.RunStarted, perform.Env, error) {
			fresh := newRig(t, store).turns(scripted.Turn{Text: "the answer"}).priced(1, 1)
			return fresh.started(), fresh.env, nil
		},
	}}}
	run, err := e.Start(t.Context(), event.RunStarted{Vocabulary: event.Version, Machine: "single/1", Kind: "Toy", Config: json.RawMessage(`{}`)}, env)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The first commit is that of the parent's own beginning.
	if got := store.creates + store.count() - 1; got != 5 {
		t.Errorf("%d commits, want 5", got)
	}
	about := 0
	for _, ev := range store.events(t, run.ID) {
		if strings.HasPrefix(ev.Type, "child.") || strings.HasPrefix(ev.Type, "budget.") {
			about++
		}
	}
	if about != 4 {
		t.Errorf("%d events about the child in its parent's journal, want 4", about)
	}
	rows, err := store.Runs(t.Context(), journal.Filter{Parent: run.ID})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d children, %v", len(rows), err)
	}
	own, above := 0, 0
	for _, r := range store.events(t, rows[0].ID) {
		own += strings.Count(string(r.Body), "the answer")
	}
	for _, r := range store.events(t, run.ID) {
		if r.Type == string(event.TypeChildFinished) {
			above += strings.Count(string(r.Body), "the answer")
		}
	}
	if own != 2 || above != 1 {
		t.Errorf("its answer is stored %d times in its own journal and %d times with its settlement, want 2 and 1", own, above)
	}
}

// counted counts the runs that are made as well.
type counted struct {
	*watched
	creates int
}

func (c *counted) Create(ctx context.Context, row journal.Run, b journal.Batch) (journal.Lease, int64, error) {
	c.creates++
	return c.watched.Create(ctx, row, b)
}

func (c *counted) events(t *testing.T, run string) []journal.Record {
	t.Helper()
	records, err := c.Records(t.Context(), run, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// A step of one call adds at most five events to the journal of its workflow, and costs
// at most five commits in both journals together.
func TestAStepOfOneCallCostsAtMostFiveEventsAndFiveCommits(t *testing.T) {
	cost := func(steps ...plan.Step) (events, commits int) {
		store := &counted{watched: &watched{Store: memory.New(nil)}}
		e := engine.New(store, versions.Make, engine.Options{})
		t.Cleanup(func() { _ = e.Close() })
		run := startFlow(t, e, perform.Env{Children: map[string]perform.Child{"worker": works(t, store, "the answer")}}, steps...)
		if o := outcome(t, run); !o.OK {
			t.Fatalf("%+v", o)
		}
		return len(store.events(t, run.ID)), store.creates + store.count()
	}
	events, commits := cost(doneBy("a"))
	more, moreCommits := cost(doneBy("a"), doneBy("b", "a"), doneBy("c", "b"))
	if each := float64(more-events) / 2; each > 5 {
		t.Errorf("a step adds %v events to its workflow's journal, want at most 5", each)
	}
	if each := float64(moreCommits-commits) / 2; each > 5 {
		t.Errorf("a step costs %v commits, want at most 5", each)
	}
}
