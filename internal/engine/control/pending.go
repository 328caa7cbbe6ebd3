package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
)

// Pending is a question that waits for a decision, with the run that asks it.
type Pending struct {
	Run string
	drive.Open
	// Above holds the runs from the root of the tree down to the one whose questions
	// are listed, and Path the runs from there to the one that asks, empty if it is
	// that one.
	Above []string
	Path  []Step
}

// MarshalJSON encodes the question in the form that surfaces show.
func (p Pending) MarshalJSON() ([]byte, error) {
	path := slices.Clone(p.Above)
	for _, step := range p.Path {
		path = append(path, step.Run)
	}
	call, _ := p.Call()
	return json.Marshal(struct {
		ID        string             `json:"id"`
		Kind      event.QuestionKind `json:"kind"`
		Run       string             `json:"run"`
		Path      []string           `json:"path"`
		Step      string             `json:"step,omitempty"`
		Reason    string             `json:"reason"`
		Rule      string             `json:"rule,omitempty"`
		Risk      event.Risk         `json:"risk,omitempty"`
		Offer     *event.Permission  `json:"offer,omitempty"`
		Digest    string             `json:"digest"`
		Seq       int64              `json:"seq,omitempty"`
		Since     time.Time          `json:"since,omitzero"`
		ExpiresAt *time.Time         `json:"expiresAt,omitempty"`
		What      any                `json:"what"`
	}{p.ID, p.Kind, p.Run, path, p.Step, cmp.Or(p.Reason, p.Rule), p.Rule, call.Risk, p.Offer, p.Digest, p.Seq, p.Since, p.ExpiresAt, p.What})
}

// Call is a call that waits for a decision, with the run that made it and the way to
// that from the run whose calls are listed.
type Call struct {
	Run string `json:"run"`
	event.ToolPendingApproval
	Path []Step `json:"path,omitempty"`
}

// Calls returns the calls among questions.
func Calls(pending []Pending) []Call {
	calls := []Call{}
	for _, p := range pending {
		if call, is := p.Call(); is {
			calls = append(calls, Call{Run: p.Run, ToolPendingApproval: call, Path: p.Path})
		}
	}
	return calls
}

// Call returns the call that a question is about, and whether it is about one.
func (p Pending) Call() (event.ToolPendingApproval, bool) {
	call, is := p.Asking.(event.ToolPendingApproval)
	return call, is
}

// Pending returns the questions that wait for a decision: those of a run, then those of
// its descendants. A decision on any of them may be sent to the run. It omits a
// descendant that cannot be read, so that the others can be decided.
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

// PendingWithAncestors is [Controller.PendingIn] with the ancestors of the run.
func (d *Controller) PendingWithAncestors(ctx context.Context, run string) ([]Pending, error) {
	all, err := d.PendingIn(ctx, run)
	if err != nil {
		return nil, err
	}
	return d.placed(ctx, run, all)
}

// placed adds the ancestors of a run to questions, if there are any.
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

// PendingIn returns the run's own questions that wait for a decision, without its
// ancestors. It reads only the events that ask them.
func (d *Controller) PendingIn(ctx context.Context, run string) ([]Pending, error) {
	r, err := d.store.Run(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("control: run %s: %w", run, err)
	}
	asked, err := d.past.Questions(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	pending := make([]Pending, len(asked))
	for i, q := range asked {
		pending[i] = Pending{Run: run, Open: q}
	}
	return pending, nil
}

// Step and Below are the types of package drive.
type (
	Step  = drive.Step
	Below = drive.Below
)

// Below returns the descendants of a run in the order of their start; a parent comes
// before its children.
func (d *Controller) Below(ctx context.Context, run string) ([]Below, error) {
	below, err := d.past.Below(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return below, nil
}

// AtLimit returns the limit of its own at which a run is parked and that has not
// changed since, nil if there is none.
func (d *Controller) AtLimit(ctx context.Context, r journal.Run) (*event.RunParked, error) {
	w, err := d.past.Waits(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	if p := w.Parked; p != nil && p.Limit != "" {
		if _, changed := w.Raised[p.Limit]; !changed {
			return p, nil
		}
	}
	return nil, nil
}
