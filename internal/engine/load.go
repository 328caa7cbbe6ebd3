package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
)

// take claims a run, acquires its lease and folds its journal. With whole it
// also loads the contents stored beside the events, which only model requests
// need.
func (e *Engine) take(ctx context.Context, run string, whole bool) (*driver, event.RunStarted, error) {
	if err := ctx.Err(); err != nil {
		return nil, event.RunStarted{}, fmt.Errorf("engine: take run %s: %w", run, context.Cause(ctx))
	}
	if err := e.claim(run); err != nil {
		return nil, event.RunStarted{}, err
	}
	asked := time.Now()
	lease, err := e.opts.Placement.Take(ctx, run)
	if err != nil {
		e.unclaim(run)
		return nil, event.RunStarted{}, fmt.Errorf("engine: take run %s: %w", run, err)
	}
	d, started, err := e.load(ctx, run, whole)
	if err == nil && d.machine.State().Phase == machine.Ended {
		err = fmt.Errorf("engine: run %s: %w", run, journal.ErrEnded)
	}
	if err == nil {
		err = e.whole(ctx, d)
	}
	if err != nil {
		err = errors.Join(err, e.store.Release(context.WithoutCancel(ctx), lease))
		e.unclaim(run)
		return nil, event.RunStarted{}, err
	}
	d.log.lease.take(lease, asked)
	return d, started, nil
}

// whole returns an error unless the last event is the one that the run's row
// names. Each event contains the hash of the one before.
func (e *Engine) whole(ctx context.Context, d *driver) error {
	row, err := e.store.Run(ctx, d.run.id)
	if err == nil && (row.Seq != d.log.seq || row.Head != d.log.head) {
		err = &drive.UnreadableError{Err: &journal.CorruptError{
			Run: d.run.id, Seq: d.log.seq, What: "its hash is not the one in the run's row", Want: row.Head, Got: d.log.head,
		}}
	}
	if err != nil {
		return fmt.Errorf("engine: load run %s: %w", d.run.id, err)
	}
	return nil
}

// load folds a run's journal into a machine.
func (e *Engine) load(ctx context.Context, run string, whole bool) (*driver, event.RunStarted, error) {
	var d *driver
	var started event.RunStarted
	fail := func(err error) (*driver, event.RunStarted, error) {
		return nil, event.RunStarted{}, fmt.Errorf("engine: load run %s: %w", run, err)
	}
	unreadable := func(err error) (*driver, event.RunStarted, error) { return fail(&drive.UnreadableError{Err: err}) }
	for read, err := range drive.Events(ctx, e.store, run, 0) {
		if err != nil {
			return fail(err)
		}
		r, ev := read.Record, read.Event
		if d == nil {
			if d, started, err = e.begin(run, ev); err != nil {
				return unreadable(err)
			}
		}
		if whole {
			if ev.Data, err = d.env.Record.Blobs.Attach(ctx, ev.Data); err != nil {
				return fail(fmt.Errorf("event %d: %w", r.Seq, err))
			}
		}
		if err := d.machine.Apply(ev); err != nil {
			return unreadable(err)
		}
		d.log.note(ev, read.Hash)
		d.env.Record.Blobs.Note(ev.Data)
		switch x := ev.Data.(type) {
		case event.RunPlaced:
			started = started.Placed(x)
		case event.RunForked:
			started = started.Forked(x)
			d.run.traced, d.run.birth = started.Trace, ev.Time
		}
	}
	if d == nil {
		return fail(journal.ErrNotFound)
	}
	d.log.cycle = d.machine.State().Cycle
	d.env.Clock.GoOnFrom(d.log.last)
	return d, started, nil
}

func isUnreadable(err error) bool { return errors.As(err, new(*drive.UnreadableError)) }

// begin makes the driver of a run from its first event, which for a fork is
// another run's.
func (e *Engine) begin(run string, first *event.Event) (*driver, event.RunStarted, error) {
	m, started, err := e.Past().Begin(first)
	if err != nil {
		return nil, started, err
	}
	parent := first.Parent
	if first.Run != run {
		parent = ""
	}
	d := e.newDriver(m, perform.Env{}, run, parent)
	d.run.begin(started)
	d.run.birth = first.Time
	return d, started, nil
}

// answers is what became of the commands to a run that is not driven.
type answers struct {
	// seen are the commands that were handled, and refused those of them that
	// changed nothing.
	seen, refused map[int64]bool
	// secrets are removed from the commands. If some may be missing, a command that
	// could contain one is left for the run's next driver, which has them all.
	secrets knownSecrets
	// machine is the run's machine after the commands, nil if nothing changed.
	machine machine.Machine
	// atLeast is a sufficient value for the newest limit that was refused.
	atLeast float64
}

// answer settles the inbox of a run that is not driven. A command may arrive
// while the lease's holder leaves, so the holder reads the inbox once more after
// it has released the lease.
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

// unseen reports whether the inbox contains a command that was not handled.
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
			c, _ = d.engine.inboxKey.Open(c)
			clean := false
			if c, clean = a.secrets.clean(c); !clean {
				c.Text = "" // a cancel is valid without its reason
			}
			d.log.consumed = append(d.log.consumed, c.ID)
			return d.endCancelled(ctx, c, !parked)
		case old || !parked:
			continue
		}
		c, readable := d.engine.inboxKey.Open(c)
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
		events := d.translate(c, d.machine)
		a.refused[c.ID] = len(events) == 0 || expires(events[0])
		for _, data := range events {
			if err := d.stage(data); err != nil {
				return err
			}
		}
	}
	return d.commit(ctx)
}

// errNotDriven is why the hooks of a run that is not driven do not run.
var errNotDriven = errors.New("the run was cancelled while no process drove it, so the hook did not run")

// endCancelled ends a run that is not driven, its children first. The machine
// makes its last decisions. The only effects they may need are hooks, which only
// the run's own program has.
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
				err = d.stage(perform.Unresolved(a))
			case machine.CancelChild:
				err = d.children.endWithChild(ctx, a)
			case machine.RunHook:
				err = d.stage(hook.Result(hook.Call{Stage: a.Stage, Hook: a.Hook}, a.Observer, hook.Answer{}, errNotDriven))
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

// ErrReplay is returned for a run whose calls were answered from the record of
// another run. If it continued, its tools would act.
var ErrReplay = errors.New("engine: the run is a replay, which cannot be resumed after its process has ended")

// Resume continues a run that is not driven: it parked, or its process is gone.
// build makes the run's environment from its first event. Cancelling ctx cancels
// the run, as with [Engine.Start].
//
// A child continues when its root is resumed, and is refused with a
// *[ChildError]; a replay is refused with [ErrReplay].
func (e *Engine) Resume(ctx context.Context, run string, build func(event.RunStarted) (perform.Env, error)) (*Run, error) {
	return driven(e.resume(ctx, run, build, nil))
}

func (e *Engine) resume(ctx context.Context, run string, build func(event.RunStarted) (perform.Env, error), above *children) (*Run, error) {
	d, started, err := e.takePatiently(ctx, run)
	if err != nil {
		return nil, err
	}
	giveUp := func(err error) (*Run, error) {
		d.log.lease.release(ctx)
		e.unclaim(run)
		return nil, err
	}
	if d.run.parent != "" && above == nil {
		return giveUp(&ChildError{Run: run, Parent: d.run.parent, Root: d.run.root})
	}
	if started.Replays != "" {
		return giveUp(fmt.Errorf("%w; replay run %s again", ErrReplay, started.Replays))
	}
	env, err := build(started)
	if err != nil {
		return giveUp(err)
	}
	d.env.Equip(env)
	d.attach(above)
	d.env.Inputs = nil
	resumed := event.RunResumed{Recovered: d.machine.State().Parked == nil, Owner: e.opts.Owner, Policy: policy.Reading, Secrets: e.otherSecrets(ctx, d), Served: e.opts.Served}
	sent, err := e.store.Inbox(ctx, run)
	if err != nil {
		err = fmt.Errorf("engine: resume run %s: %w", run, err)
	} else {
		d.inbox.overrule(sent)
		resumed.Unread = e.unreadable(sent)
		err = d.stage(resumed)
	}
	if err != nil {
		return giveUp(errors.Join(err, d.env.Release()))
	}
	return e.ready(ctx, d), nil
}
