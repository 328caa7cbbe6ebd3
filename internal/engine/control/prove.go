package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/journal"
)

// Verified is the result of a check of a run's journal.
type Verified struct {
	journal.Verified
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
	// BreaksAt is the event at which the chain breaks, 0 for none.
	BreaksAt int64 `json:"breaksAt,omitempty"`
	// Below counts the checked descendants, and Unsound those that are not OK.
	Below   int        `json:"below,omitempty"`
	Unsound []Verified `json:"unsound,omitempty"`
}

// Verify checks the hash chain of a run and of all runs below it, and the contents that
// their events refer to. A head that is given must be in the chain of the run.
func (d *Controller) Verify(ctx context.Context, run, head string) (Verified, error) {
	v, err := d.VerifyOne(ctx, run, head)
	if err != nil {
		return v, err
	}
	children, err := d.Below(ctx, run)
	if err != nil {
		return v, err
	}
	for _, child := range children {
		below, err := d.VerifyOne(ctx, child.ID, "")
		if err != nil {
			return v, err
		}
		if v.Below++; !below.OK {
			v.OK, v.Unsound = false, append(v.Unsound, below)
		}
	}
	return v, nil
}

// VerifyOne is Verify without the runs below.
func (d *Controller) VerifyOne(ctx context.Context, run, head string) (Verified, error) {
	v, err := journal.Verify(ctx, d.store, run, head)
	v.Run = run
	if corrupt, ok := errors.AsType[*journal.CorruptError](err); ok {
		return Verified{Verified: v, Problem: corrupt.Error(), BreaksAt: corrupt.Seq}, nil
	}
	if Damaged(err) {
		return Verified{Verified: v, Problem: Plain(err)}, nil
	}
	return Verified{Verified: v, OK: err == nil}, err
}

// Damaged reports whether stored data cannot be read, which does not affect other runs.
func Damaged(err error) bool {
	return errors.Is(err, journal.ErrCorrupt) || errors.Is(err, journal.ErrIO)
}

// Replayed is the result of a replay of a run and of the runs below it.
type Replayed struct {
	replay.Replayed
	Below []replay.Replayed `json:"below,omitempty"`
}

// Differs counts the divergences of all these runs.
func (r *Replayed) Differs() int {
	n := len(r.Divergences)
	for _, below := range r.Below {
		n += len(below.Divergences)
	}
	return n
}

// Replay replays a run and the runs below it from their journals.
func (d *Controller) Replay(ctx context.Context, run string, o launch.Options) (found Replayed, err error) {
	if found.Replayed, err = d.replayOne(ctx, run, o); err != nil {
		return found, err
	}
	below, err := d.Below(ctx, run)
	if err != nil {
		return found, err
	}
	for _, child := range below {
		one, err := d.replayOne(ctx, child.ID, o)
		if err != nil {
			return found, err
		}
		found.Below = append(found.Below, one)
	}
	return found, nil
}

func (d *Controller) replayOne(ctx context.Context, run string, o launch.Options) (replay.Replayed, error) {
	started, err := d.StartOf(ctx, run)
	if err != nil {
		return replay.Replayed{}, err
	}
	return replay.Run(ctx, d.past, run, launch.Wires(started, o))
}

// Request makes the model request of a cycle for a purpose again from the journal of its
// run.
func (d *Controller) Request(ctx context.Context, run string, cycle int, purpose event.Purpose, o launch.Options) (replay.Request, error) {
	started, err := d.StartOf(ctx, run)
	if err != nil {
		return replay.Request{}, err
	}
	return replay.RequestOf(ctx, d.past, run, cycle, purpose, launch.Wires(started, o))
}

// StartOf returns a run's first event with the changes of forks.
func (d *Controller) StartOf(ctx context.Context, run string) (event.RunStarted, error) {
	row, err := d.store.Run(ctx, run)
	if err != nil {
		return event.RunStarted{}, fmt.Errorf("control: %w", err)
	}
	b, err := d.past.Branch(ctx, run, row.Seq)
	if err != nil {
		return event.RunStarted{}, err
	}
	return b.Started, nil
}
