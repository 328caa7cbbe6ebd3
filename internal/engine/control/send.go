// Package control acts on a run from outside its driver: with decisions about
// calls, messages, pauses and cancels. It reports the result, whichever process
// drives the run.
package control

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/journal"
)

// Controller sends commands to the runs of one journal. It is safe for concurrent
// use.
type Controller struct {
	store  journal.Store
	engine *engine.Engine
	past   drive.Past
}

// New returns a Controller for a journal and the engine that drives its runs here.
func New(store journal.Store, e *engine.Engine) *Controller {
	return &Controller{store: store, engine: e, past: drive.Past{Store: store, Machines: versions.Make}}
}

// Delivery is the result of sending a command.
type Delivery struct {
	// ID is the command's number in the inbox.
	ID  int64  `json:"-"`
	Run string `json:"run"`
	// Command is the verb of the command.
	Command string `json:"command"`
	CallID  string `json:"callId,omitempty"`
	// Live reports whether a process drove the run when the command was sent. Taken
	// reports whether the command is in the journal and takes effect.
	Live  bool          `json:"live"`
	Taken bool          `json:"taken"`
	State journal.State `json:"state"`
	// Unsaid is why a cancel was sent without its reason, if it was.
	Unsaid string `json:"unsaid,omitempty"`
}

// takeUp is how long a command waits for the run's driver, which looks for one
// within 100 ms.
const takeUp = 2 * time.Second

// Send sends a command to a run, in the name of c.Principal, and waits a moment
// for the run's driver to receive it. The error is an [*access.DeniedError] if
// the principal may not command the run. It wraps [journal.ErrEnded] for a run
// that has ended, [engine.ErrNotPending] for a decision that no call waits for,
// also if another decision came first, and [holder.ErrUnread] if the run's
// driver changed before it could read a sealed command. It is an
// [*engine.SecretsError] for text that may contain a secret, and an
// [*engine.RaiseError] for a limit at which the run would park again.
func (d *Controller) Send(ctx context.Context, r journal.Run, c journal.Command) (Delivery, error) {
	if err := access.Authorise(c.Principal, access.Editor); err != nil {
		return Delivery{}, err
	}
	named, sent := r.ID, time.Now()
	r, err := d.addressee(ctx, r, c)
	if err != nil {
		return Delivery{}, err
	}
	c.Run = r.ID
	live := Alive(r, sent)
	var known engine.Knowledge
	if engine.MayHoldSecret(c) {
		if known, err = d.knows(ctx, r.ID); err != nil {
			return Delivery{}, err
		}
	}
	receipt, err := d.engine.Deliver(ctx, c, known)
	if err != nil {
		return Delivery{}, err
	}
	c.ID = receipt.ID
	taken, err := d.taken(ctx, r.ID)
	if err != nil {
		return Delivery{}, err
	}
	if taken {
		if err := d.Overtaken(ctx, c, sent); err != nil {
			return Delivery{}, err
		}
		if err := d.refused(ctx, c, r.Seq); err != nil {
			return Delivery{}, err
		}
	}
	now, err := d.store.Run(ctx, r.ID)
	if err == nil && receipt.Sealed && taken && now.Owner != "" && now.Owner != r.Owner {
		return Delivery{}, holder.ErrUnread // the new driver has dropped the command unread
	}
	if err == nil && taken && now.State == journal.Ended {
		if taken, err := d.engine.HasTaken(ctx, c, r.Seq); err != nil || !taken {
			return Delivery{}, cmp.Or(err, fmt.Errorf("control: send %s: run %s: %w", c.Kind, r.ID, journal.ErrEnded))
		}
	}
	if err == nil && named != r.ID {
		now, err = d.store.Run(ctx, named)
	}
	delivery := Delivery{ID: c.ID, Run: named, Command: Verb(c.Kind), CallID: c.CallID, Live: live, Taken: taken, State: now.State}
	if receipt.Unsaid != nil {
		delivery.Unsaid = receipt.Unsaid.Error()
	}
	return delivery, err
}

// refused returns the [*engine.RaiseError] for a raise without effect, and nil
// for any other command. seq is the number of the run's last event before the
// command.
func (d *Controller) refused(ctx context.Context, c journal.Command, seq int64) error {
	if c.Kind != journal.Raise {
		return nil
	}
	if taken, err := d.engine.HasTaken(ctx, c, seq); taken || err != nil {
		return err
	}
	s, err := d.engine.State(ctx, c.Run)
	if err != nil {
		return fmt.Errorf("control: send %s: %w", c.Kind, err)
	}
	if p := s.Parked; p != nil && p.Limit == c.Setting && !p.Enough(c.Value) {
		return &engine.RaiseError{Run: c.Run, Setting: c.Setting, AtLeast: p.AtLeast}
	}
	return nil // the run continued or ended meanwhile
}

// addressee returns the row of the run that receives a command: a decision goes to the
// run that asks.
func (d *Controller) addressee(ctx context.Context, r journal.Run, c journal.Command) (journal.Run, error) {
	c.Run = r.ID
	to, err := d.engine.Addressee(ctx, c)
	if err != nil || to == r.ID {
		return r, err
	}
	return d.store.Run(ctx, to)
}

// knows returns the secrets that a run's file names, with the values that are
// available here. Only its program knows those of a run without a file. If the
// file cannot be read, for example because another version wrote it, the names
// in the run's journal decide what can be sent.
func (d *Controller) knows(ctx context.Context, run string) (engine.Knowledge, error) {
	started, err := d.started(ctx, run)
	if err != nil || started.Spec == "" {
		return engine.Knowledge{}, err
	}
	secrets, missing, err := kinds.Redactor(started)
	if err != nil {
		return engine.Knowledge{}, nil
	}
	return engine.Knowledge{Secrets: secrets, Names: append(append([]string{}, secrets.Names()...), missing...)}, nil
}

// started returns the run's first event.
func (d *Controller) started(ctx context.Context, run string) (event.RunStarted, error) {
	return drive.At[event.RunStarted](ctx, d.store, run, 0)
}

// Redact removes the secrets of a run from texts for the journal of another run
// that starts from it. The error is a *[engine.SecretsError] for a text that
// may contain a secret whose value is not available here.
func (d *Controller) Redact(ctx context.Context, run string, texts ...*string) error {
	known, err := d.knows(ctx, run)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if *text, err = d.engine.Redact(ctx, run, known, *text); err != nil {
			return err
		}
	}
	return nil
}

// taken waits until the run's inbox is empty, and reports whether it became so.
func (d *Controller) taken(ctx context.Context, run string) (bool, error) {
	timeout, cancel := context.WithTimeout(ctx, takeUp)
	defer cancel()
	changed := d.store.Watch(timeout)
	for {
		left, err := d.store.Inbox(ctx, run)
		if err != nil || len(left) == 0 {
			return err == nil, err
		}
		select {
		case <-changed:
		case <-timeout.Done():
			return false, ctx.Err()
		}
	}
}

// Verb returns the name of a kind of command, as people write and read it.
func Verb(k journal.CommandKind) string {
	if k == journal.Raise {
		return "budget"
	}
	return string(k)
}
