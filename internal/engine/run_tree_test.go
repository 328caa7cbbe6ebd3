package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// reader shows a tree as a client does, and fails where that would mislead.
type reader struct {
	t      *testing.T
	events []event.Event
	// shown is what each run has said since its last durable event, heard all that
	// it has said.
	shown, heard map[string]string
}

func newReader(t *testing.T) *reader {
	return &reader{t: t, shown: map[string]string{}, heard: map[string]string{}}
}

func (r *reader) take(e event.Event) {
	switch d := e.Data.(type) {
	case event.Text:
		if e.Seq != 0 || e.Pos != 0 || e.Run == "" {
			r.t.Errorf("a delta is %+v", e)
		}
		r.shown[e.Run] += d.Text
		r.heard[e.Run] += d.Text
		return
	case event.ToolCallDelta:
		return
	case event.TextReset:
		r.shown[e.Run] = ""
		return
	case event.ModelResponse:
		if said := r.shown[e.Run]; !strings.HasPrefix(llm.Parts(d.Parts).Text(), said) {
			r.t.Errorf("what run %s is shown as saying has a hole: %.40q", e.Run, said)
		}
	default:
		if r.shown[e.Run] != "" {
			r.t.Errorf("%s of run %s stands behind what it had said", e.Type(), e.Run)
		}
	}
	r.shown[e.Run] = ""
	r.events = append(r.events, e)
}

// fits holds what was read against the journal: all of it in the order of pos, and
// the root's end last.
func (r *reader) fits(store journal.Store, root string, last event.Type) {
	r.t.Helper()
	records, err := store.Tree(context.Background(), root, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	var want, got []string
	for _, rec := range records {
		want = append(want, rec.Run+" "+rec.Type)
	}
	pos := int64(0)
	for _, e := range r.events {
		if e.Pos <= pos {
			r.t.Errorf("pos %d stands behind %d", e.Pos, pos)
		}
		pos = e.Pos
		got = append(got, e.Run+" "+string(e.Type()))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("-journal +subscriber:\n%s", diff)
	}
	if end := r.events[len(r.events)-1]; end.Run != root || end.Type() != last {
		r.t.Errorf("the last event is %s of run %s", end.Type(), end.Run)
	}
}

// listen ranges over a run's tree until it ends; each is called with every event.
func (r *reader) listen(run *engine.Run, each func(event.Event)) {
	for e, err := range run.Tree(context.Background(), true) {
		if err != nil {
			r.t.Error(err)
			return
		}
		r.take(e)
		each(e)
	}
}

// threeDeep is a parent of two agents at once, of which one asks a third; all
// speak word by word, once they are let.
func threeDeep(t *testing.T, speaks <-chan struct{}) *rig {
	leaf := newRig(t).model(saysSlowly("the leaf says this", speaks))
	middle := newRig(t, leaf.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "the middle has heard"}).offers("ask", leaf)
	aside := newRig(t, leaf.store).model(saysSlowly("the other one says that", speaks))
	r := newRig(t, leaf.store).turns(scripted.Turn{ToolCalls: calls("one", task, "two", task)}, scripted.Turn{Text: "all is said"}).
		offers("one", middle).offers("two", aside)
	r.cfg.Dispatch = agent.ParallelAll
	return r
}

func saysSlowly(text string, let <-chan struct{}) llm.Model {
	return modelFunc(func(ctx context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
		<-let
		for word := range strings.SplitAfterSeq(text, " ") {
			time.Sleep(time.Millisecond)
			emit(llm.Delta{Kind: llm.DeltaText, Text: word})
		}
		return said(text), nil
	})
}

func TestTreeStreamsAllEventsInOrderOfPos(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		speaks := make(chan struct{})
		r := threeDeep(t, speaks)
		run := r.start(t.Context())
		first, late := newReader(t), newReader(t)
		done := make(chan struct{}, 2)
		go func() { first.listen(run, func(event.Event) {}); done <- struct{}{} }()
		synctest.Wait()
		go func() { late.listen(run, func(event.Event) {}); done <- struct{}{} }()
		synctest.Wait()
		close(speaks)
		<-done
		<-done
		for _, reader := range []*reader{first, late} {
			reader.fits(r.store, run.ID, event.TypeRunCompleted)
			var heard []string
			for _, text := range reader.heard {
				heard = append(heard, text)
			}
			slices.Sort(heard)
			if want := []string{"all is said", "the leaf says this", "the middle has heard", "the other one says that"}; !slices.Equal(heard, want) {
				t.Errorf("heard %q", heard)
			}
		}
		// A subscription to the run alone gets no events of runs below.
		for _, e := range drain(t, run, true) {
			if e.Run != run.ID {
				t.Errorf("%s of run %s", e.Type(), e.Run)
			}
		}
	})
}

// The deltas of the runs below go to those who ask for a tree, and not to those
// who listen to the root alone.
func TestRunStreamExcludesRunsBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		speaks := make(chan struct{})
		r := threeDeep(t, speaks)
		run := r.start(t.Context())
		done := make(chan struct{})
		go func() { newReader(t).listen(run, func(event.Event) {}); close(done) }()
		alone := make(chan []event.Event)
		go func() { alone <- drain(t, run, true) }()
		synctest.Wait()
		close(speaks)
		for _, e := range <-alone {
			if e.Run != run.ID {
				t.Errorf("%s of run %s", e.Type(), e.Run)
			}
		}
		<-done
	})
}

// A stalled reader delays no run, misses no durable event, and gets a note of what it
// lost.
func TestAStalledReaderOfATreeHoldsNoRunUp(t *testing.T) {
	for name, at := range map[string]func(event.Event) bool{
		"in the middle of what a run says": func(e event.Event) bool { return e.Seq == 0 },
		"before anything is said":          func(e event.Event) bool { return e.Type() == event.TypeChildStarted },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var text strings.Builder
				for i := range 100_000 {
					fmt.Fprintf(&text, "%d ", i)
				}
				speaks, heard, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
				child := newRig(t).model(modelFunc(func(_ context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
					<-speaks
					for word := range strings.SplitAfterSeq(text.String(), " ") {
						if emit(llm.Delta{Kind: llm.DeltaText, Text: word}); word == "0 " {
							synctest.Wait()
						}
					}
					return said(text.String()), nil
				}))
				r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
				run, reader, stalled := r.start(t.Context()), newReader(t), false
				go func() {
					defer close(heard)
					reader.listen(run, func(e event.Event) {
						if at(e) && !stalled {
							stalled = true
							<-goOn
						}
					})
				}()
				synctest.Wait()
				close(speaks)
				outcome(t, run)
				close(goOn)
				<-heard
				reader.fits(r.store, run.ID, event.TypeRunCompleted)
				if id := r.children(run.ID)[0]; reader.heard[id] == text.String() {
					t.Error("a subscriber that stalled for 100,000 deltas was given them all: they were kept in memory")
				}
			})
		})
	}
}

// Events of a child that another process writes arrive while the run continues here.
func TestTreeStreamIncludesOtherProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := besideASibling(t, pays(t))
		run, id := r.startsUntilParked(t)
		reader, ended := newReader(t), make(chan struct{})
		var last atomic.Pointer[event.Event]
		go func() { defer close(ended); reader.listen(run, func(e event.Event) { last.Store(&e) }) }()
		synctest.Wait()
		r.other().send(journal.Command{Run: id, Kind: journal.Approve, CallID: id + "-1-1", By: "ann"})
		time.Sleep(time.Second) // what others commit is read from the journal
		if e := last.Load(); e.Run != id || e.Type() != event.TypeToolApprovalResolved {
			t.Errorf("the last that was heard is %s of run %s", e.Type(), e.Run)
		}
		outcome(t, run)
		<-ended
		reader.fits(r.store, run.ID, event.TypeRunCompleted)
	})
}

// The stream of a tree that parks ends with the root's last event, also after a resume,
// and if a run below is decided before the reader has come so far.
func TestTheLastOfATreeThatParkedIsTheRootsWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		child := pays(t)
		r := newRig(t, child.store).turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "done"}).offers("ask", child)
		run := r.start(t.Context())
		parkedAs(t, run, event.ParkApproval)
		before := newReader(t)
		before.listen(run, func(event.Event) {})
		before.fits(r.store, run.ID, event.TypeRunParked)
		id := r.children(run.ID)[0]
		r.other().send(journal.Command{Run: id, Kind: journal.Approve, CallID: id + "-1-1", By: "ann"})
		late := newReader(t)
		late.listen(run, func(event.Event) {})
		if diff := cmp.Diff(names(before.events), names(late.events)); diff != "" {
			t.Errorf("-before the decision +after it:\n%s", diff)
		}
		again := r.resume(run.ID)
		whole := newReader(t)
		whole.listen(again, func(event.Event) {})
		whole.fits(r.store, run.ID, event.TypeRunCompleted)
	})
}

// The first event of every run has its place in the tree, as readers get it and as it is
// stored. A fork shares the first event of its origin, and its children are placed below
// the fork.
func TestTheFirstEventHasThePlaceInTheTree(t *testing.T) {
	type place struct {
		Root, Parent string
		Depth        int
	}
	places := func(events []event.Event) map[string]place {
		got := map[string]place{}
		for _, e := range events {
			if d, ok := e.Data.(event.RunStarted); ok {
				got[e.Run] = place{d.Root, d.Parent, d.Depth}
			}
		}
		return got
	}
	synctest.Test(t, func(t *testing.T) {
		speaks := make(chan struct{})
		close(speaks)
		r := threeDeep(t, speaks)
		run, reader := r.start(t.Context()), newReader(t)
		reader.listen(run, func(event.Event) {})
		below := r.children(run.ID)
		leaf := append(r.children(below[0]), r.children(below[1])...)[0]
		middle := r.journal(leaf)[0].Parent
		want := map[string]place{leaf: {run.ID, middle, 3}, below[0]: {run.ID, run.ID, 2}, below[1]: {run.ID, run.ID, 2}, run.ID: {run.ID, "", 1}}
		var stored []event.Event
		for run := range want {
			stored = append(stored, r.journal(run)...)
		}
		if diff := cmp.Diff(want, places(stored)); diff != "" {
			t.Errorf("stored: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(want, places(reader.events)); diff != "" {
			t.Errorf("published: -want +got:\n%s", diff)
		}

		r.turns(scripted.Turn{ToolCalls: calls("two", task)}, scripted.Turn{Text: "again"})
		fork, _ := r.fork(run.ID, 1, event.RunForked{})
		reader = newReader(t)
		reader.listen(r.resume(fork), func(event.Event) {})
		want = map[string]place{run.ID: {run.ID, "", 1}, r.children(fork)[0]: {fork, fork, 2}}
		if diff := cmp.Diff(want, places(reader.events)); diff != "" {
			t.Errorf("of a fork: -want +got:\n%s", diff)
		}
	})
}

// A fork is the root of a tree of its own, behind the events that it shares.
func TestTheTreeOfAForkBeginsWithWhatItShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, run := grown(t)
		started := slices.Index(names(r.journal(run)), "child.started")
		r.turns(scripted.Turn{ToolCalls: calls("ask", task)}, scripted.Turn{Text: "again"})
		id, _ := r.fork(run, int64(started), event.RunForked{})
		reader := newReader(t)
		reader.listen(r.resume(id), func(event.Event) {})
		own, err := r.store.Tree(t.Context(), id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		got, journalled := names(reader.events), names(r.journal(id))
		if forked := slices.Index(got, "run.forked"); forked < 1 || !slices.Equal(got[:forked], journalled[:forked]) || len(got) != forked+len(own) {
			t.Errorf("the fork is heard as %v", got)
		}
		if count(reader.events, "run.started") != 2 || got[len(got)-1] != "run.completed" {
			t.Errorf("%v", got)
		}
	})
}

func TestTheContextEndsTheListeningToATree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		speaks := make(chan struct{})
		run := threeDeep(t, speaks).start(t.Context())
		ctx, stop := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			var last error
			for _, err := range run.Tree(ctx, true) {
				last = err
			}
			failed <- last
		}()
		synctest.Wait()
		stop()
		mustBe(t, <-failed, context.Canceled)
		close(speaks)
		for range run.Tree(t.Context(), true) {
			break
		}
		outcome(t, run)
	})
}
