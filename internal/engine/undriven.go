package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
)

// answers is what became of the commands to a run that nobody drives.
type answers struct {
	// seen are the commands that were looked at, refused those of them that
	// changed nothing.
	seen, refused map[int64]bool
	// secrets are taken out of them. Where some may be missing, what has room for
	// one is left to the run's next driver, which has them all.
	secrets knownSecrets
	// machine is the run's machine after them, nil when nothing changed.
	machine machine.Machine
	// atLeast is what the newest of the limits that were refused would have to be.
	atLeast float64
}

// answer settles the inbox of a run that nobody drives. A command may come
// while somebody who holds the lease is about to leave, so whoever gives the
// lease up looks once more.
func (e *Engine) answer(ctx context.Context, run string, a *answers) error {
	for {
		err := e.answerOnce(ctx, run, a)
		if _, held := errors.AsType[*journal.HeldError](err); held || errors.Is(err, journal.ErrEnded) {
			return nil
		}
		if err != nil {
			return err
		}
		if news, err := e.unseen(ctx, run, a); err != nil || !news {
			return err
		}
	}
}

// unseen says that the inbox holds a command that nobody has looked at.
func (e *Engine) unseen(ctx context.Context, run string, a *answers) (bool, error) {
	cmds, err := e.store.Inbox(ctx, run)
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("engine: run %s: %w", run, err)
	}
	return slices.ContainsFunc(cmds, func(c journal.Command) bool { return !a.seen[c.ID] }), nil
}

func (e *Engine) answerOnce(ctx context.Context, run string, a *answers) error {
	d, _, err := e.take(ctx, run, false)
	if err != nil {
		return err
	}
	defer e.unclaim(run)
	defer d.log.lease.release(ctx)
	cmds, err := d.log.store.Inbox(ctx, run)
	if err != nil {
		return d.log.failed(err)
	}
	before := d.log.seq
	if err := d.answerAll(ctx, cmds, a); err != nil {
		return err
	}
	if d.log.seq != before {
		a.machine = d.machine
	}
	return nil
}

func (d *driver) answerAll(ctx context.Context, cmds []journal.Command, a *answers) error {
	s := d.machine.State()
	parked := s.Phase == machine.Parked
	for _, c := range cmds {
		old := a.seen[c.ID]
		a.seen[c.ID] = true
		switch {
		case c.Kind == journal.Cancel:
			c, _ = d.engine.letters.Open(c)
			clean := false
			if c, clean = a.secrets.clean(c); !clean {
				c.Text = "" // it counts without its reason
			}
			d.log.consumed = append(d.log.consumed, c.ID)
			return d.endCancelled(ctx, c, !parked)
		case old || !parked:
			continue
		}
		c, readable := d.engine.letters.Open(c)
		c, clean := a.secrets.clean(c)
		if readable && !clean {
			continue
		}
		d.log.consumed = append(d.log.consumed, c.ID)
		if !readable {
			a.refused[c.ID] = true
			continue
		}
		if c.Kind == journal.Raise && c.Setting == s.Parked.Limit && !s.Parked.Enough(c.Value) {
			a.refused[c.ID], a.atLeast = true, s.Parked.AtLeast
			continue
		}
		data := d.env.translate(c, d.machine)
		a.refused[c.ID] = data == nil || expires(data)
		if data == nil {
			continue
		}
		if err := d.stage(data); err != nil {
			return err
		}
	}
	return d.commit(ctx)
}

// errNobodyDrives is why the hooks of a run that nobody drives do not run.
var errNobodyDrives = errors.New("the run was cancelled while no process drove it, so the hook did not run")

// endCancelled ends a run that nobody drives, its children first. The machine
// makes its last decisions; none of them needs another effect but hooks, which only
// who drives the run has.
func (d *driver) endCancelled(ctx context.Context, c journal.Command, recovered bool) error {
	if err := d.stage(event.RunResumed{Recovered: recovered, Owner: d.engine.opts.Owner, Policy: policy.Reading}); err != nil {
		return err
	}
	if err := d.cancel(event.CancelRequested{By: c.By, Reason: c.Text, Principal: c.Principal}); err != nil {
		return err
	}
	for d.machine.State().Phase == machine.Running {
		actions := d.machine.Next()
		if len(actions) == 0 || len(d.log.staged) > d.mostStaged() {
			return fmt.Errorf("engine: run %s does not end by its cancel", d.run.id)
		}
		for _, a := range actions {
			var err error
			switch a := a.(type) {
			case machine.Record:
				err = d.stage(a.Data)
			case machine.Resolve:
				err = d.stage(unresolved(a))
			case machine.CancelChild:
				err = d.children.endWithChild(ctx, a)
			case machine.RunHook:
				err = d.stage(hook.Result(hook.Call{Stage: a.Stage, Hook: a.Hook}, a.Observer, hook.Answer{}, errNobodyDrives))
			default:
				err = fmt.Errorf("engine: run %s asks for an effect after its cancel", d.run.id)
			}
			if err != nil {
				return err
			}
		}
	}
	return d.commit(ctx)
}
