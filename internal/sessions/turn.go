package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/guidance"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// Host starts the runs of sessions in this process. It is safe for concurrent use.
type Host struct {
	Store      journal.Store
	Engine     *engine.Engine
	Controller *control.Controller
	// User is the principal of all messages.
	User event.Principal
	// File reads the agent file of new sessions. Later runs keep the file of the first.
	File func() (kinds.File, error)
	// Launch holds the services of this process and the flags of new sessions.
	Launch launch.Options
	// Guide changes the file of a new session, and returns the instructions and skills of
	// its working tree in place of Launch.Tree; nil does neither.
	Guide func(ctx context.Context, id, dir string, f kinds.File) (kinds.File, guidance.Found, error)
}

// Message is a user's message to a session.
type Message struct {
	Text  string
	Media []llm.Media
	// Later lets a message wait until the current run has ended. Replaces is the command
	// of an unread message that this one replaces, 0 for none.
	Later    bool
	Replaces int64
}

// empty reports whether the message only takes another one back.
func (m Message) empty() bool { return m.Text == "" && len(m.Media) == 0 }

// Ask puts a question of a run to a person, as [perform.Env] describes it; nil parks
// the run instead.
type Ask func(ctx context.Context, q event.Question) (event.Resolution, error)

// Turn is the work on one message.
type Turn struct {
	host *Host
	// Run is the run that works. Command reports that it only runs a command of the user.
	Run     string
	Command bool
	// after is the position in the journal before the message, and seq the number of
	// the run's last event before it.
	after, seq int64
	// driven is the run if this process drives it, else nil.
	driven drive.Run
}

// options returns the options for a run whose questions ask answers.
func (h *Host) options(ask Ask) (launch.Options, func(*perform.Env)) {
	o := h.Launch
	dress := func(env *perform.Env) { env.Ask, env.AskInTurn = ask, true }
	o.Dress = dress
	return o, dress
}

// Send sends a message to a session. It starts the session's first run if there is none,
// continues a run that has ended, and otherwise sends the message to the current
// run. dir is the workspace of a new session.
func (h *Host) Send(ctx context.Context, id, dir string, m Message, ask Ask) (*Turn, error) {
	chain, err := Chain(ctx, h.Store, id)
	if errors.Is(err, journal.ErrNotFound) {
		return h.begin(ctx, id, dir, m, ask)
	}
	if err != nil {
		return nil, err
	}
	newest := chain[len(chain)-1]
	if newest.State == journal.Ended {
		if m.empty() {
			return nil, nil
		}
		return h.next(ctx, id, newest.ID, m, ask)
	}
	_, chosen, err := h.chosen(ctx, id, newest.ID)
	if err != nil {
		return nil, err
	}
	after, err := h.Store.Last(ctx)
	if err != nil {
		return nil, err
	}
	c := journal.Command{Kind: journal.Input, Run: newest.ID, Text: m.Text, Media: m.Media, Later: m.Later, Replaces: m.Replaces, Mode: string(chosen.Mode), By: h.User.Name, Principal: h.User}
	if _, err := h.Controller.Send(ctx, newest.Run, c); err != nil {
		if errors.Is(err, journal.ErrEnded) && !m.empty() {
			return h.next(ctx, id, newest.ID, m, ask)
		}
		return nil, err
	}
	return h.goOn(ctx, newest.Run, after, ask)
}

// GoOn lets a session read the messages that the ended run came too late for.
func (h *Host) GoOn(ctx context.Context, id, ended string, ask Ask) (*Turn, error) {
	return h.next(ctx, id, ended, Message{}, ask)
}

// begin starts the first run of a session.
func (h *Host) begin(ctx context.Context, id, dir string, m Message, ask Ask) (*Turn, error) {
	f, err := h.File()
	if err != nil {
		return nil, err
	}
	_, chosen, err := h.chosen(ctx, id, "")
	if err != nil {
		return nil, err
	}
	o, dress := h.options(ask)
	o.Workspace, o.Attachments, o.Model, o.Mode = dir, m.Media, cmp.Or(chosen.Model, o.Model), chosen.Mode
	if h.Guide != nil {
		if f, o.Tree, err = h.Guide(ctx, id, dir, f); err != nil {
			return nil, err
		}
	}
	started, env, err := f.Launch(m.Text, o)
	if err != nil {
		return nil, err
	}
	return h.start(ctx, id, started, env, dress)
}

// next starts a run that continues an ended one, in the mode that the ended one had last and
// with what people allowed or denied in it.
func (h *Host) next(ctx context.Context, id, run string, m Message, ask Ask) (*Turn, error) {
	_, chosen, err := h.chosen(ctx, id, run)
	if err != nil {
		return nil, err
	}
	before, err := h.settingsOf(ctx, run)
	if err != nil {
		return nil, err
	}
	o, dress := h.options(ask)
	o.Flags = launch.Flags{
		Model: chosen.Model, Mode: cmp.Or(chosen.Mode, before.mode), Granted: before.granted,
		Attachments: m.Media, Dir: o.Dir, Unread: m.empty(), Compact: chosen.Compact,
		BudgetUSD: o.BudgetUSD, NoBudget: o.NoBudget,
	}
	started, env, err := kinds.Continue(ctx, h.Store, run, m.Text, o)
	if err != nil {
		return nil, err
	}
	return h.start(ctx, engine.NewID(), started, env, dress)
}

func (h *Host) start(ctx context.Context, id string, started event.RunStarted, env perform.Env, dress func(*perform.Env)) (*Turn, error) {
	dress(&env)
	started.Principal = h.User
	// The run outlives the message's request: Interrupt parks it.
	r, err := h.Engine.StartAs(context.WithoutCancel(ctx), id, started, env)
	if err != nil {
		return nil, err
	}
	return &Turn{host: h, Run: id, driven: r}, nil
}

// goOn resumes a run unless a process drives it. The turn has the run's events after a
// position.
func (h *Host) goOn(ctx context.Context, row journal.Run, after int64, ask Ask) (*Turn, error) {
	t := &Turn{host: h, Run: row.ID, after: after, seq: row.Seq}
	if control.Alive(row, time.Now()) {
		return t, nil
	}
	o, dress := h.options(ask)
	o.Flags = launch.Flags{}
	r, err := h.Engine.Resume(context.WithoutCancel(ctx), row.ID, func(started event.RunStarted) (perform.Env, error) {
		env, err := kinds.Resume(started, o)
		if err == nil {
			dress(&env)
		}
		return env, err
	})
	if _, held := errors.AsType[*journal.HeldError](err); held {
		return t, nil // another process was faster
	}
	if err != nil {
		return nil, err
	}
	t.driven = r
	return t, nil
}

// Waiting returns the questions of a session that wait for a person, if no process drives
// its newest run: it has parked, or its process was killed.
func (h *Host) Waiting(ctx context.Context, newest journal.Run) ([]control.Pending, error) {
	if newest.State == journal.Ended || control.Alive(newest, time.Now()) {
		return nil, nil
	}
	return h.Controller.Pending(ctx, newest.ID)
}

// Ask resumes a parked run, so that its questions are asked again.
func (h *Host) Ask(ctx context.Context, newest journal.Run, ask Ask) (*Turn, error) {
	after, err := h.Store.Last(ctx)
	if err != nil {
		return nil, err
	}
	return h.goOn(ctx, newest, after, ask)
}

// Drives reports whether this process drives the run of the turn.
func (t *Turn) Drives() bool { return t.driven != nil }

// After returns the number of the run's last event before the message.
func (t *Turn) After() int64 { return t.seq }

// Interrupt parks the run of the turn, without waiting for it.
func (t *Turn) Interrupt(ctx context.Context) error {
	if t.driven != nil {
		t.driven.Interrupt()
		return nil
	}
	row, err := t.host.Store.Run(ctx, t.Run)
	if err == nil {
		_, err = t.host.Controller.Send(ctx, row, journal.Command{Kind: journal.Pause, Run: t.Run, By: t.host.User.Name, Principal: t.host.User})
	}
	return err
}

// Events yields the events of the turn with live ones among them, until the run has
// ended or parked. A failure of the engine is an error; a failed run is an event.
func (t *Turn) Events(ctx context.Context) iter.Seq2[event.Event, error] {
	all := t.elsewhere(ctx, false)
	if t.driven != nil {
		all = t.driven.Events(ctx, true)
	}
	return func(yield func(event.Event, error) bool) {
		for e, err := range all {
			if err == nil && e.Seq > 0 && e.Seq <= t.seq {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Tree is Events with those of all descendants, and from the first event of the run on.
func (t *Turn) Tree(ctx context.Context) iter.Seq2[event.Event, error] {
	if t.driven != nil {
		return t.driven.Tree(ctx, true)
	}
	return t.elsewhere(ctx, true)
}

// Before reports whether an event of the run or of a descendant is from before the turn.
func (t *Turn) Before(e *event.Event) bool { return e.Seq > 0 && e.Pos <= t.after }

// elsewhere yields the events of a run that another process drives, or of its tree.
func (t *Turn) elsewhere(ctx context.Context, tree bool) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		sub, err := t.host.Engine.Follower().Subscribe(ctx, follow.Query{Run: t.Run, Tree: tree, Deltas: true})
		if err != nil {
			yield(event.Event{}, fmt.Errorf("sessions: %w", err))
			return
		}
		defer sub.Close()
		for {
			events, err := sub.Next(ctx)
			if err != nil {
				yield(event.Event{}, fmt.Errorf("sessions: %w", err))
				return
			}
			for i := range events {
				e := events[i].Event
				if !yield(e, nil) || e.Run == t.Run && e.Seq > t.seq && stops(e.Data) {
					return
				}
			}
		}
	}
}

// stops reports whether a run does nothing after an event, unless it is resumed.
func stops(d event.Data) bool {
	switch d.(type) {
	case event.RunParked, event.RunCompleted:
		return true
	}
	return false
}
