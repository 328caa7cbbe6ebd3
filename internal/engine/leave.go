package engine

import (
	"context"
	"errors"

	"github.com/pawlrun/pawl/internal/machine"
)

// leave settles what is under way and gives the run up.
func (d *driver) leave(work context.Context) error {
	err := d.lock.failure
	_, store := errors.AsType[*storeError](err)
	d.life.broken = err != nil && !store
	late := d.effects.finish()
	if d.life.broken {
		err = d.endInternal(work, err, late)
	} else {
		d.result.final = d.machine.State()
	}
	d.log.lease.release(work)
	return err
}

// finish is what is done when a driver leaves, with the engine's own failure.
func (d *driver) finish(err error) {
	defer close(d.result.done) // whatever ends the goroutine here
	defer d.env.live.source.Close()
	d.result.err = err
	d.engine.unregister(d)
	ctx := context.WithoutCancel(d.life.ctx)
	_, broken := errors.AsType[*storeError](err)
	switch {
	case err == nil && d.result.final.Phase == machine.Parked:
		d.result.err = d.engine.lookOnceMore(ctx, d)
	case broken && d.log.lease.released: // the store has come back
		clear(d.inbox.seen) // what was taken up is not in the journal
		_ = d.engine.lookOnceMore(ctx, d)
	}
	left := d.result.err
	d.result.err = errors.Join(left, errEndedClosing) // what stays if closing ends the goroutine
	d.result.err = errors.Join(left, d.closeEnv())
}

// lookOnceMore answers the commands that came while a driver was leaving.
func (e *Engine) lookOnceMore(ctx context.Context, d *driver) error {
	a := answers{seen: d.inbox.seen, refused: map[int64]bool{}, secrets: d.env.knownSecrets()}
	if news, err := e.unseen(ctx, d.run.id, &a); err != nil || !news {
		return err
	}
	err := e.answer(ctx, d.run.id, &a)
	if a.machine != nil {
		d.machine, d.result.final, d.result.overtook = a.machine, a.machine.State(), true
	}
	return err
}

var errEndedClosing = errors.New("engine: what closes the run's environment ended its goroutine (runtime.Goexit)")

// closeEnv releases the run's environment once no effect uses it any more.
func (d *driver) closeEnv() error {
	if d.env.Close == nil {
		return nil
	}
	return d.effects.closing(d.env.close)
}
