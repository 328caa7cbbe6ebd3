package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
)

var errDead = errors.New("the process is dead")

// mortal is the journal as one process sees it. The process dies at one of its
// writes, before that is on disk or right after it, and nothing it does counts
// from then on.
type mortal struct {
	journal.Store
	mu    sync.Mutex
	at    int
	after bool
	died  bool
}

func (m *mortal) write(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.died {
		return errDead
	}
	if m.at--; m.at != 0 {
		return do()
	}
	m.died = true
	if m.after {
		_ = do()
	}
	return errDead
}

func (m *mortal) dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.died
}

func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.died = true
}

func (m *mortal) alive() error {
	if m.dead() {
		return errDead
	}
	return nil
}

func (m *mortal) Create(ctx context.Context, r journal.Run, b journal.Batch) (l journal.Lease, pos int64, err error) {
	err = m.write(func() (err error) {
		l, pos, err = m.Store.Create(ctx, r, b)
		return err
	})
	return l, pos, err
}

func (m *mortal) Append(ctx context.Context, b journal.Batch) (pos int64, err error) {
	err = m.write(func() (err error) {
		pos, err = m.Store.Append(ctx, b)
		return err
	})
	return pos, err
}

func (m *mortal) Acquire(ctx context.Context, run, owner, dead string, ttl time.Duration) (journal.Lease, error) {
	if err := m.alive(); err != nil {
		return journal.Lease{}, err
	}
	return m.Store.Acquire(ctx, run, owner, dead, ttl)
}

func (m *mortal) Release(ctx context.Context, l journal.Lease) error {
	if err := m.alive(); err != nil {
		return err
	}
	return m.Store.Release(ctx, l)
}

// family is a parent with two children at once, in a world that knows what was
// really paid for.
type family struct {
	*rig
	mu   sync.Mutex
	made int
}

func newFamily(t *testing.T) *family {
	f := &family{rig: newRig(t, memory.New(nil))}
	model := func(answer func(results int) *llm.Response) llm.Model {
		return modelFunc(func(_ context.Context, req *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.made++
			n := 0
			for _, m := range req.Messages {
				for _, p := range m.Parts {
					if _, ok := p.(llm.ToolResult); ok {
						n++
					}
				}
			}
			r := answer(n)
			r.Usage = llm.Usage{Input: 10, Output: 5}
			return r, nil
		})
	}
	asks := func(name string, args ...string) *llm.Response {
		r := &llm.Response{Finish: llm.FinishTool}
		for i, a := range args {
			r.Parts = append(r.Parts, llm.ToolCall{ProviderID: fmt.Sprint("p", i), Name: name, Args: []byte(a)})
		}
		return r
	}
	look := toolFunc("look", well)
	look.ReadOnly, look.Concurrent, look.Effect = true, true, event.EffectPure
	child := newRig(t, f.store).tools(look).model(model(func(results int) *llm.Response {
		if results == 0 {
			return asks("look", "{}")
		}
		return said("found")
	})).priced(1e3, 1e3)
	f.model(model(func(results int) *llm.Response {
		if results == 0 {
			return asks("ask", task, `{"task":"and the other"}`)
		}
		return said("done")
	})).priced(1e3, 1e3).offers("ask", child)
	f.cfg.MaxTokens, child.cfg.MaxTokens = 20, 20
	return f
}

// process is one life of the program on the family's journal: it goes as far as
// it can, and says whether the run ended.
func (f *family) process(m *mortal) bool {
	f.t.Helper()
	m.Store = f.store
	e := engine.New(m, newMachine, engine.Options{Owner: "the program"})
	defer e.Close()
	r := &rig{Engine: e, t: f.t, store: f.store, cfg: f.cfg, env: f.env}
	run, err := r.goOn()
	if errors.Is(err, journal.ErrEnded) {
		return true
	}
	if err != nil {
		if !m.dead() {
			f.t.Fatal(err)
		}
		return false
	}
	s, err := run.Wait(context.Background())
	if err != nil && !m.dead() {
		f.t.Fatal(err)
	}
	return err == nil && s.Outcome != nil
}

// goOn takes the rig's run up, or starts it.
func (r *rig) goOn() (*engine.Run, error) {
	rows, err := r.store.Runs(context.Background(), journal.Filter{})
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Parent == "" {
			return r.Resume(context.Background(), row.ID, func(event.RunStarted) (perform.Env, error) { return r.env, nil })
		}
	}
	return r.begin(context.Background())
}

// check holds the family's journals against what must be true of every tree
// that has ended.
func (f *family) check(deaths int) {
	f.t.Helper()
	rows, err := f.store.Runs(context.Background(), journal.Filter{})
	if err != nil {
		f.t.Fatal(err)
	}
	var root string
	spent, cost := map[string]float64{}, map[string]float64{}
	responses := 0
	for _, row := range rows {
		if row.Parent == "" {
			root = row.ID
		}
		events := f.whole(row.ID)
		responses += count(events, "model.response")
		cost[row.ID] = events[len(events)-1].Data.(event.RunCompleted).Outcome.Cost.USD
		for _, e := range events {
			if d, ok := e.Data.(event.BudgetCommitted); ok && d.Run == "" {
				spent[row.ID] += d.USD
			}
		}
	}
	open := map[string]int{}
	above, started, finished := map[string]float64{}, map[string]int{}, map[string]int{}
	total := 0.0
	for _, e := range f.journal(root) {
		switch d := e.Data.(type) {
		case event.ChildStarted:
			started[d.Child]++
		case event.ChildFinished:
			finished[d.Child]++
			if !d.Outcome.OK || !near(d.Outcome.Cost.USD, cost[d.Child]) {
				f.t.Errorf("%s ended as %+v and cost %v", d.Child, d.Outcome, cost[d.Child])
			}
		case event.BudgetReserved:
			open[d.Run+d.ID]++
		case event.BudgetCommitted:
			open[d.Run+d.ID]--
			above[d.Run] += d.USD
			total += d.USD
		case event.ToolResult:
			if d.Output != "found" {
				f.t.Errorf("%s gave %+v", d.CallID, d)
			}
		}
	}
	for id, n := range open {
		if n != 0 {
			f.t.Errorf("reservation %s is left open", id)
		}
	}
	if len(started) != 2 || len(rows) != 3 {
		f.t.Errorf("%d children were started, and there are %d runs", len(started), len(rows))
	}
	for id, n := range started {
		if n != 1 || finished[id] != 1 || !near(above[id], spent[id]) || !near(spent[id], cost[id]) {
			f.t.Errorf("%s: started %d, finished %d, cost %v, committed %v and above %v", id, n, finished[id], cost[id], spent[id], above[id])
		}
	}
	if !near(cost[root], total) {
		f.t.Errorf("the parent cost %v, and its journal says %v", cost[root], total)
	}
	// A death loses at most the answers that were not on disk yet: those of the
	// calls under way, of which there are two.
	if lost := f.made - responses; lost < 0 || lost > 2*deaths {
		f.t.Errorf("%d calls were made and %d answers kept, after %d deaths", f.made, responses, deaths)
	}
}

// begin starts the rig's run.
func (r *rig) begin(ctx context.Context) (*engine.Run, error) {
	return r.Start(ctx, r.started(), r.env)
}

// The process dies at every write that a tree of runs makes, before and after it
// is on disk: between the reservation of the parent and that of the child,
// between what the child used and what its parent knows of it, between the
// intent of a child and the child itself, between the child's end and its
// settlement above, and everywhere else.
func TestATreeOfRunsGoesOnAfterADeathAtAnyOfItsWrites(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			ended := false
			synctest.Test(t, func(t *testing.T) {
				f := newFamily(t)
				ended = f.process(&mortal{at: at, after: after})
				if !ended && !f.process(new(mortal)) {
					t.Fatal("the run does not end after one death")
				}
				f.check(1)
			})
			if t.Failed() {
				t.Fatalf("died at write %d, after it was on disk: %t", at, after)
			}
			if ended {
				break
			}
		}
	}
}

// The process that goes on after a death dies as well, anywhere.
func TestATreeOfRunsGoesOnAfterADeathOfWhoWentOn(t *testing.T) {
	deaths := 0
	for first := 1; first < 40; first += 2 {
		for second := 1; second < 24; second++ {
			synctest.Test(t, func(t *testing.T) {
				f := newFamily(t)
				n := 0
				for _, m := range []*mortal{{at: first, after: second%2 == 0}, {at: second, after: first%4 == 1}, {}} {
					if f.process(m) {
						break
					}
					n++
				}
				f.check(n)
				deaths += n
			})
			if t.Failed() {
				t.Fatalf("died at write %d, then at write %d", first, second)
			}
		}
	}
	if deaths < 300 {
		t.Errorf("%d deaths prove little", deaths)
	}
}
