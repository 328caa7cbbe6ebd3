package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Pending is a question that waits for a decision, with the run that asks it.
type Pending struct {
	Run string
	event.Question
	// Above holds the runs from the root of the tree down to the one whose questions
	// are listed, and Path the runs from there to the one that asks, empty if it is
	// that one.
	Above []string
	Path  []Step
}

// MarshalJSON gives the question as surfaces show it.
func (p Pending) MarshalJSON() ([]byte, error) {
	path := slices.Clone(p.Above)
	for _, step := range p.Path {
		path = append(path, step.Run)
	}
	return json.Marshal(struct {
		ID        string             `json:"id"`
		Kind      event.QuestionKind `json:"kind"`
		Run       string             `json:"run"`
		Path      []string           `json:"path"`
		Step      string             `json:"step,omitempty"`
		Reason    string             `json:"reason"`
		Digest    string             `json:"digest"`
		ExpiresAt *time.Time         `json:"expiresAt,omitempty"`
		What      any                `json:"what"`
	}{p.ID, p.Kind, p.Run, path, p.Step, cmp.Or(p.Reason, p.Rule), p.Digest, p.ExpiresAt, p.What})
}

// Call is a call that waits for a decision, with the run that made it and the way to
// that from the run whose calls are listed.
type Call struct {
	Run string `json:"run"`
	event.ToolPendingApproval
	Path []Step `json:"path,omitempty"`
}

// Calls are the calls among questions.
func Calls(pending []Pending) []Call {
	calls := []Call{}
	for _, p := range pending {
		if call, is := p.Call(); is {
			calls = append(calls, Call{Run: p.Run, ToolPendingApproval: call, Path: p.Path})
		}
	}
	return calls
}

// Call is what is asked about a call, and whether the question is about one.
func (p Pending) Call() (event.ToolPendingApproval, bool) {
	call, is := p.Asked.(event.ToolPendingApproval)
	return call, is
}

// Pending returns the questions that wait for a decision: those of a run, then
// those of the runs below it. A decision on any of them may be sent to the run. A
// run below it that cannot be read is left out, so that the others can be decided.
func (d *Controller) Pending(ctx context.Context, run string) ([]Pending, error) {
	all, err := d.PendingIn(ctx, run)
	if err != nil {
		return nil, err
	}
	below, err := d.Below(ctx, run)
	if err != nil {
		return nil, err
	}
	for _, r := range below {
		if !slices.Contains([]journal.State{journal.Running, journal.Waiting, journal.Parked}, r.State) {
			continue
		}
		more, err := d.PendingIn(ctx, r.ID)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		for i := range more {
			more[i].Path = r.Path
		}
		all = append(all, more...)
	}
	return d.placed(ctx, run, all)
}

// Asked is [Controller.PendingIn], with the runs above the one that asks.
func (d *Controller) Asked(ctx context.Context, run string) ([]Pending, error) {
	all, err := d.PendingIn(ctx, run)
	if err != nil {
		return nil, err
	}
	return d.placed(ctx, run, all)
}

// placed adds to questions, where there are any, the runs from the root of the tree down
// to a run.
func (d *Controller) placed(ctx context.Context, run string, all []Pending) ([]Pending, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var way []string
	for id := run; id != ""; {
		r, err := d.store.Run(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("control: run %s, above run %s: %w", id, run, err)
		}
		way, id = append(way, id), r.Parent
	}
	slices.Reverse(way)
	for i := range all {
		all[i].Above = way
	}
	return all, nil
}

// PendingIn returns the questions of the run itself that wait for a decision,
// without the runs above it. Those about calls belong to their cycle, so only the
// last cycle is read. A nil error therefore does not mean that the rest of the run
// can be read.
func (d *Controller) PendingIn(ctx context.Context, run string) ([]Pending, error) {
	r, err := d.store.Run(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("control: run %s: %w", run, err)
	}
	q := newQuestions()
	for rec, err := range d.backwards(ctx, r, 8) {
		t := event.Type(rec.Type)
		if err != nil {
			return nil, err
		} else if q.first(t) {
			break
		} else if !q.reads(t) {
			continue
		}
		e, err := event.Decode(rec.Body)
		if err != nil {
			return nil, fmt.Errorf("control: run %s, event %d: %w", run, rec.Seq, err)
		}
		if q.before(e); t == event.TypeModelResponse {
			break
		}
	}
	slices.SortStableFunc(q.open, func(a, b event.Question) int { return q.place[a.ID] - q.place[b.ID] })
	pending := make([]Pending, len(q.open))
	for i, asked := range q.open {
		pending[i] = Pending{Run: run, Question: asked}
	}
	return pending, nil
}

// questions holds the questions of a run that have no decision. It reads the
// run's events backwards, while the machine folds them forwards; the simulator
// compares the two.
type questions struct {
	open []event.Question
	// closed holds the ids of earlier questions that are void or answered.
	closed  map[string]bool
	answers map[string][]event.Resolution
	// told reports whether a message has arrived since.
	told bool
	// place holds the position of each call in its answer.
	place map[string]int
	// readings are the policy editions under which the run was resumed. A question
	// under another one is judged again.
	readings []string
}

func newQuestions() questions {
	return questions{closed: map[string]bool{}, answers: map[string][]event.Resolution{}}
}

// reads reports whether events of a type matter for the open questions.
func (*questions) reads(t event.Type) bool {
	return t.Asks() || t.Resolves() || slices.Contains([]event.Type{
		event.TypeModelResponse, event.TypeRunResumed, event.TypePolicyDecision, event.TypeToolStarted, event.TypeToolResult, event.TypeInputReceived,
	}, t)
}

// first reports whether no open question can be older than an event of a type.
func (*questions) first(t event.Type) bool {
	return t == event.TypeCycleStart || t == event.TypeRunForked || t == event.TypeRunTerminatedBy
}

// before adds the event before those that were added.
func (q *questions) before(e *event.Event) {
	switch d := e.Data.(type) {
	case event.ModelResponse:
		q.place = make(map[string]int, len(d.ToolCalls))
		for i, c := range d.ToolCalls {
			q.place[c.CallID] = i
		}
	case event.InputReceived:
		q.told = true
	case event.RunResumed:
		q.readings = append(q.readings, d.Policy)
	case event.Resolving:
		made := d.Resolution()
		q.answers[made.ID] = append(q.answers[made.ID], made)
	case event.Asking:
		asked := d.Question()
		asked.Step = cmp.Or(asked.Step, e.Step)
		if !q.closed[asked.ID] && !slices.ContainsFunc(q.answers[asked.ID], asked.Counts) && !q.voids(asked) && (!asked.Message || !q.told) {
			q.open = slices.Insert(q.open, 0, asked)
		}
		q.closed[asked.ID] = true
	case event.Voiding:
		q.closed[d.Voids()] = true
	}
}

// voids reports whether the run was resumed under another policy edition since
// it asked.
func (q *questions) voids(asked event.Question) bool {
	by, _, judged := strings.Cut(asked.Policy, "/")
	return judged && slices.ContainsFunc(q.readings, func(reading string) bool { return reading != "" && reading != by })
}
