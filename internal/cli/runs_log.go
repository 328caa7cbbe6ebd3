package cli

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/journal"
)

func (a *app) logCommand() *cobra.Command {
	var onward, asJSON bool
	c := &cobra.Command{
		Use:        "log RUN",
		SuggestFor: []string{"logs", "transcript"},
		Short:      "Read a run: what was said, called and decided, and what it cost",
		Long: `Prints a run for people: the input, the text of each cycle, the calls and the first and last lines of
their results, decisions, compressions, what ended the run, and the cost. Runs that it started are
indented below the calls that started them. 'pawl runs events' prints everything, for programs.

With --follow it waits for more, also while the run is parked, until the run ends or is interrupted.`,
		Example: `  pawl runs log k7x2
  pawl runs log k7x2 --follow
  pawl runs log k7x2 | less`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withRun(c.Context(), toRead, args[0], func(s *session, r journal.Run) error {
				talk := newConversation(a.out, screenOf(a.out, os.Getenv), a.invocation())
				talk.next.pending = a.pending
				var show shownRun = talk
				if asJSON {
					show = eventLines{&jsonView{out: a.jsonOut()}}
				}
				t, err := s.tail(c.Context(), follow.Query{Run: r.ID})
				if err != nil {
					return err
				}
				f := family{tailer: t, session: s, show: show}
				defer f.close()
				if onward {
					return f.follow(c.Context())
				}
				return errors.Join(f.drain(c.Context()), show.end(), s.undriven(c.Context(), r, asJSON))
			})
		},
	}
	c.Flags().BoolVar(&onward, "follow", false, "continue until the run ends or is interrupted")
	c.Flags().BoolVar(&asJSON, "json", false, "print one event a line, also of the runs below it")
	return c
}

// undriven returns how to continue a run whose process left without parking it.
func (s *session) undriven(ctx context.Context, r journal.Run, asJSON bool) error {
	stands, err := s.controller.RunStatus(ctx, r)
	if err != nil || !stands.Undriven || asJSON {
		return err
	}
	return s.app.printf("no process drives run %s; %s\n", r.ID, s.resumeCommand(ctx, r))
}

// shownRun is a view with a nested view for each child run.
type shownRun interface {
	display
	below() shownRun
}

// eventLines prints the events of all runs in the same way.
type eventLines struct{ *jsonView }

func (l eventLines) below() shownRun { return l }

// family reads a run and its descendants; a child's events follow the event that
// starts it.
type family struct {
	tailer
	session *session
	show    shownRun
	// open holds the children that have not ended.
	open []*family
}

// close ends the subscriptions of the run and its descendants.
func (f *family) close() {
	for _, child := range f.open {
		child.close()
	}
	if f.sub != nil {
		f.sub.Close()
	}
}

// drain shows the new events. A child may not exist yet if its parent has started
// it and done nothing since.
func (f *family) drain(ctx context.Context) error {
	if f.sub == nil {
		t, err := f.session.tail(ctx, follow.Query{Run: f.run})
		if errors.Is(err, journal.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		f.tailer = t
	}
	if err := f.tailer.drain(ctx, shower(func(e event.Event) error { return f.take(ctx, e) })); err != nil {
		return err
	}
	for _, child := range f.open {
		if err := child.drain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// take shows an event. A child is shown up to its end before its parent continues.
func (f *family) take(ctx context.Context, e event.Event) error {
	if d, ok := e.Data.(event.ChildFinished); ok {
		for _, child := range f.open {
			if child.run == d.Child {
				if err := child.drain(ctx); err != nil {
					return err
				}
			}
		}
		f.open = slices.DeleteFunc(f.open, func(child *family) bool {
			if child.run == d.Child {
				child.close()
			}
			return child.run == d.Child
		})
	}
	if err := f.show.show(e); err != nil {
		return err
	}
	if d, ok := e.Data.(event.ChildStarted); ok {
		child := &family{tailer: tailer{run: d.Child}, session: f.session, show: f.show.below()}
		f.open = append(f.open, child)
		return child.drain(ctx)
	}
	return nil
}

// follow shows the run's events, whichever process drives it, until it ends or the
// user interrupts. A parked run continues after a decision or a message.
func (f *family) follow(ctx context.Context) error {
	return f.watch(ctx, func() error { return f.drain(ctx) }, f.show, isOver)
}

func isOver(r journal.Run) bool {
	return r.State == journal.Ended || r.State == journal.Parked && r.Detail == string(event.ParkInterrupted)
}

// shower is a view that only takes events.
type shower func(event.Event) error

func (s shower) show(e event.Event) error { return s(e) }

func (s shower) end() error { return nil }
