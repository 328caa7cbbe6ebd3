package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// reviewed is a machine that has a person review its one draft, or that starts
// another one which does.
type reviewed struct {
	tree.Run
	cfg reviewedConfig
}

type reviewedConfig struct {
	Starts   []string
	Within   time.Duration
	OnExpiry event.OnExpiry
}

func (r *reviewed) Apply(e *event.Event) error {
	if d, ok := e.Data.(event.RunStarted); ok {
		if err := json.Unmarshal(d.Config, &r.cfg); err != nil {
			return err
		}
	}
	return r.Run.Apply(e)
}

func (r *reviewed) Next() []machine.Action { return r.OrPark(r.due()) }

func (r *reviewed) due() []machine.Action {
	due, more := r.Due()
	if !more {
		return due
	}
	if len(r.cfg.Starts) == 0 {
		return r.review(due)
	}
	output, ended := "", 0
	for _, name := range r.cfg.Starts {
		due = append(due, r.Start(machine.StartChild{ID: name, Kind: "Reviewed", Name: name})...)
		if o := r.Finished(name); o != nil {
			output, ended = output+o.FinalOutput, ended+1
		}
	}
	if ended < len(r.cfg.Starts) {
		return due
	}
	return r.End(event.RunTerminatedBy{Reason: event.ReasonFinalAnswer, Output: output})
}

func (r *reviewed) review(due []machine.Action) []machine.Action {
	asks := event.ReviewRequested{LoopID: "refine", Step: "write", Number: 1, Output: "a draft", Digest: "d1", Reason: "is it good?", OnExpiry: r.cfg.OnExpiry}
	if r.cfg.Within > 0 {
		asks.ExpiresAt = new(r.Now.Add(r.cfg.Within))
	}
	due = append(due, r.Ask(asks)...)
	switch said := r.Answer("refine"); {
	case said == nil:
		return due
	case said.Kind == event.ApprovalApproved:
		return r.End(event.RunTerminatedBy{Reason: event.ReasonFinalAnswer, Output: "approved by " + said.Approver})
	default:
		return r.End(event.RunTerminatedBy{Reason: event.ReasonRejected, Output: string(said.Kind) + ": " + said.Reason})
	}
}

// controller is an engine whose runs are reviewed, with what the runs of each name are
// configured with.
type controller struct {
	*testing.T
	*engine.Engine
	*control.Controller
	store journal.Store
	named map[string]reviewedConfig
	ask   func(context.Context, event.Question) (event.Resolution, error)
}

func newController(t *testing.T, store journal.Store, named map[string]reviewedConfig) *controller {
	t.Helper()
	e := engine.New(store, machine.Table{"reviewed/1": func() machine.Machine { return &reviewed{} }}.Make, engine.Options{})
	t.Cleanup(func() { _ = e.Close() })
	return &controller{T: t, Engine: e, Controller: control.New(store, e), store: store, named: named}
}

func (d *controller) started(name string) event.RunStarted {
	config, err := json.Marshal(d.named[name])
	if err != nil {
		d.Fatal(err)
	}
	return event.RunStarted{Vocabulary: event.Version, Machine: "reviewed/1", Kind: "Reviewed", Name: name, Config: config}
}

func (d *controller) env() perform.Env {
	env := perform.Env{Ask: d.ask, Children: map[string]perform.Child{}}
	for name := range d.named {
		env.Children[name] = perform.Child{
			Begin: func(json.RawMessage) (event.RunStarted, perform.Env, error) {
				return d.started(name), d.env(), nil
			},
			Resume: func(string, event.RunStarted) (perform.Env, error) { return d.env(), nil },
		}
	}
	return env
}

func (d *controller) start(name string) *engine.Run {
	d.Helper()
	run, err := d.Start(d.Context(), d.started(name), d.env())
	if err != nil {
		d.Fatal(err)
	}
	return run
}

func (d *controller) resume(run string) *engine.Run {
	d.Helper()
	r, err := d.Resume(d.Context(), run, func(event.RunStarted) (perform.Env, error) { return d.env(), nil })
	if err != nil {
		d.Fatal(err)
	}
	return r
}

func (d *controller) row(run string) journal.Run {
	d.Helper()
	row, err := d.store.Run(d.Context(), run)
	if err != nil {
		d.Fatal(err)
	}
	return row
}

// say sends a decision to a run.
func (d *controller) say(run string, kind journal.CommandKind, id string) error {
	_, err := d.Controller.Send(d.Context(), d.row(run), journal.Command{Kind: kind, CallID: id, Text: "so it is", By: "ann", Principal: event.Principal{Name: "ann", Role: "editor"}})
	return err
}

// tree are the runs of a tree, each before those that it started.
func (d *controller) tree(root string) []string {
	d.Helper()
	below, err := d.Below(d.Context(), root)
	if err != nil {
		d.Fatal(err)
	}
	ids := []string{root}
	for _, r := range below {
		ids = append(ids, r.ID)
	}
	return ids
}

var deep = map[string]reviewedConfig{"root": {Starts: []string{"middle"}}, "middle": {Starts: []string{"leaf"}}, "leaf": {}}

// What a run of any kind asks parks all runs above it, is listed by each of them
// with the path to it, and takes its decision from any of them, however often the
// process dies.
func TestAReviewIsListedAndDecidedThroughEachRunAboveIt(t *testing.T) {
	for to := range 3 {
		for dies := range 25 {
			t.Run(fmt.Sprint("through run ", to, " after ", dies, " commits"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &watched{Store: memory.New(nil)}
					dead := errors.New("the process dies")
					mortal := true
					store.onAppend = func(journal.Batch) error {
						if mortal && store.count() > dies {
							return dead
						}
						return nil
					}
					d := newController(t, store, deep)
					run := d.start("root")
					standing := func() machine.State {
						state, err := run.Wait(t.Context())
						if err != nil {
							mustBe(t, err, dead)
							mortal = false
							time.Sleep(time.Minute) // leases end
							run = d.resume(run.ID)
							state, err = run.Wait(t.Context())
						}
						if err != nil {
							t.Fatal(err)
						}
						return state
					}
					if state := standing(); state.Parked == nil || state.Parked.Reason != event.ParkApproval {
						t.Fatalf("it stands as %+v", state)
					}
					ids := d.tree(run.ID)
					for i, id := range ids {
						listed, err := d.Pending(t.Context(), id)
						if err != nil || len(listed) != 1 || listed[0].Run != ids[2] || len(listed[0].Path) != 2-i {
							t.Fatalf("run %d lists %+v, %v", i, listed, err)
						}
						want := fmt.Sprintf(`{"id":"refine","kind":"review","run":%q,"path":[%q,%q,%q],"step":"write","reason":"is it good?","digest":"d1","seq":2,"since":%q,"what":{"iteration":1,"output":"a draft"}}`,
							ids[2], ids[0], ids[1], ids[2], listed[0].Since.Format(time.RFC3339))
						if got, err := json.Marshal(listed[0]); err != nil || string(got) != want {
							t.Errorf("run %d shows %s, %v", i, got, err)
						}
					}
					again := mortal
					mortal = false
					if err := d.say(ids[to], journal.Approve, "refine"); err != nil {
						t.Fatal(err)
					}
					if listed, err := d.Pending(t.Context(), run.ID); err != nil || len(listed) > 0 {
						t.Errorf("these still wait: %+v, %v", listed, err)
					}
					if s, err := d.RunStatus(t.Context(), d.row(run.ID)); err != nil || !s.Answered {
						t.Errorf("it is listed as %+v, %v", s, err)
					}
					var decided *engine.DecidedError
					if err := d.say(ids[to], journal.Reject, "refine"); !errors.As(err, &decided) || decided.Error() != fmt.Sprintf("review refine is already resolved: approved by ann at %s", decided.Decision.Resolution().At.Format(time.RFC3339)) {
						t.Errorf("a second decision gets %v", err)
					}
					mortal = again
					run = d.resume(run.ID)
					if state := standing(); state.Outcome == nil || state.Outcome.FinalOutput != "approved by ann" {
						t.Errorf("it ends as %+v", state.Outcome)
					}
					for _, id := range ids {
						if _, err := journal.Verify(t.Context(), store, id, ""); err != nil {
							t.Error(err)
						}
					}
				})
			})
		}
	}
}

// Siblings go on meanwhile, and a question that several of them ask is decided with
// the run that is meant.
func TestADecisionThatMayBeAboutSeveralQuestionsNamesTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newController(t, memory.New(nil), map[string]reviewedConfig{"root": {Starts: []string{"a", "b"}}, "a": {}, "b": {}})
		run := d.start("root")
		if _, err := run.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids := d.tree(run.ID)
		var several *engine.AmbiguousError
		if err := d.say(run.ID, journal.Approve, "refine"); !errors.As(err, &several) || !errors.Is(err, engine.ErrNotPending) || len(several.Candidates) != 2 {
			t.Fatalf("a decision on either gets %v", err)
		}
		for _, id := range ids[1:] {
			if err := d.say(id, journal.Approve, "refine"); err != nil {
				t.Fatal(err)
			}
		}
		if state, err := d.resume(run.ID).Wait(t.Context()); err != nil || state.Outcome == nil || state.Outcome.FinalOutput != "approved by annapproved by ann" {
			t.Errorf("it ends as %+v, %v", state.Outcome, err)
		}
	})
}

// A review expires like the question about a call.
func TestAReviewExpiresAsACallDoes(t *testing.T) {
	for name, tt := range map[string]struct {
		onExpiry event.OnExpiry
		late     bool
		want     string
	}{
		"nobody decides":     {event.ExpiryRejects, false, "expired: nobody decided in time"},
		"somebody, too late": {event.ExpiryRejects, true, "expired: the decision of ann came too late"},
		"it stops the run":   {event.ExpiryStops, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newController(t, memory.New(nil), map[string]reviewedConfig{"root": {Within: time.Hour, OnExpiry: tt.onExpiry}})
				run := d.start("root")
				if _, err := run.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Hour)
				if s, err := d.RunStatus(t.Context(), d.row(run.ID)); err != nil || !s.Expired {
					t.Errorf("it is listed as %+v, %v", s, err)
				}
				if tt.late {
					if err := d.say(run.ID, journal.Approve, "refine"); !errors.Is(err, engine.ErrNotPending) {
						t.Errorf("a late decision gets %v", err)
					}
				}
				state, err := d.resume(run.ID).Wait(t.Context())
				if err != nil || state.Outcome == nil || state.Outcome.Reason != event.ReasonRejected || state.Outcome.FinalOutput != tt.want {
					t.Errorf("it ends as %+v, %v", state.Outcome, err)
				}
			})
		})
	}
}

// An asker in this process gets every question; an answer of the wrong kind does not
// count.
func TestReviewIsAskedInTheProcess(t *testing.T) {
	for answer, parks := range map[event.ApprovalKind]bool{event.ApprovalApproved: false, event.ApprovalEdited: true} {
		t.Run(string(answer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newController(t, memory.New(nil), deep)
				var asked []event.QuestionKind
				d.ask = func(_ context.Context, q event.Question) (event.Resolution, error) {
					asked = append(asked, q.Kind)
					return event.Resolution{Kind: answer, Approver: "ann", Args: json.RawMessage(`{}`)}, nil
				}
				run := d.start("root")
				state, err := run.Wait(t.Context())
				if err != nil || (state.Parked != nil) != parks || !slices.Equal(asked, []event.QuestionKind{event.QuestionReview}) {
					t.Errorf("asked about %q, it stands as %+v, %v", asked, state, err)
				}
			})
		})
	}
}

// A cancel takes back what is asked.
func TestACancelTakesAReviewBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newController(t, memory.New(nil), deep)
		run := d.start("root")
		if _, err := run.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids := d.tree(run.ID)
		if err := d.Engine.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Cancel, By: "ann", Text: "enough"}); err != nil {
			t.Fatal(err)
		}
		made, err := d.Decisions(t.Context(), ids[2], "refine")
		if err != nil || len(made) != 1 || made[0].Resolution().Kind != event.ApprovalCancelled {
			t.Errorf("it was decided as %+v, %v", made, err)
		}
		if row := d.row(run.ID); row.State != journal.Ended {
			t.Errorf("the run is %+v", row.Progress)
		}
	})
}
