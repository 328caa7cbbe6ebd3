package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/journal"
)

// eventFlags select the events of a run, and their format.
type eventFlags struct {
	follow   bool
	tree     bool
	after    int64
	afterPos int64
	json     bool
	words    string
}

func (a *app) eventsCommand() *cobra.Command {
	var f eventFlags
	c := &cobra.Command{
		Use:   "events RUN",
		Short: "Print a run's events, one a line",
		Long: `Prints the journal of a run, one event a line. With --follow it continues until the run ends or
parks, whichever process drives it. Live text is not in the journal and so not printed. With --tree the
events of all runs below it are among them, in the order of pos.`,
		Example: `  pawl runs events k7x2
  pawl runs events k7x2 --tree
  pawl runs events k7x2 --follow
  pawl runs events k7x2 --after 120`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o := output{json: f.words == "", words: f.words}
			if err := errors.Join(o.check(), f.check(c)); err != nil {
				return err
			}
			return a.withRun(c.Context(), toRead, args[0], func(s *session, r journal.Run) error {
				t, err := s.tail(c.Context(), follow.Query{Run: r.ID, Tree: f.tree, After: f.afterPos})
				if err != nil {
					return err
				}
				defer t.sub.Close()
				t.after = f.after
				v := a.view(o, nil)
				if f.follow {
					return t.watch(c.Context(), func() error { return t.drain(c.Context(), v) }, v, standsStill)
				}
				return t.print(c.Context(), v)
			})
		},
	}
	c.Flags().BoolVar(&f.follow, "follow", false, "continue until the run ends or parks")
	c.Flags().BoolVar(&f.tree, "tree", false, "also the events of all runs below it")
	c.Flags().Int64Var(&f.after, "after", 0, "only events after this seq")
	c.Flags().Int64Var(&f.afterPos, "after-pos", 0, "only events after this pos")
	c.Flags().BoolVar(&f.json, "json", false, "one event a line (always so)")
	c.Flags().StringVar(&f.words, "view", "", "print the events in the words of aldo, alfred or rondo")
	return c
}

func (f *eventFlags) check(c *cobra.Command) error {
	switch {
	case f.tree && c.Flags().Changed("after"):
		return usagef("--after counts the events of one run; with --tree give --after-pos")
	case f.tree && f.words != "":
		return usagef("--view shows one run; leave --tree out")
	}
	return nil
}

// tailer reads a run's events as they occur, whichever process drives it.
type tailer struct {
	store journal.Store
	run   string
	sub   *follow.Subscription
	// after is the number of the last event to skip, and seq that of the last event
	// read.
	after, seq int64
	now        func() time.Time
	// pawl is the beginning of the command in a next step.
	pawl string
}

func (s *session) tail(ctx context.Context, q follow.Query) (tailer, error) {
	sub, err := s.engine.Follower().Subscribe(ctx, q)
	return tailer{store: s.store, run: q.Run, sub: sub, now: time.Now, pawl: s.app.invocation()}, err
}

// print shows the available events.
func (t *tailer) print(ctx context.Context, v display) error {
	if err := t.drain(ctx, v); err != nil {
		return err
	}
	r, err := t.store.Run(ctx, t.run)
	if err != nil {
		return err
	}
	if standsStill(r) || isAbandoned(r, t.now()) {
		return end(v, r)
	}
	return nil
}

// end ends the view of a run without a driver. The last event has the outcome, but
// a reader that starts after it does not receive it again.
func end(v display, r journal.Run) error {
	if r.State == journal.Ended {
		return nil
	}
	return v.end()
}

// watch drains the run whenever events may have arrived, until it is done or no
// process drives it.
func (t *tailer) watch(ctx context.Context, drain func() error, v display, done func(journal.Run) bool) error {
	for {
		if err := drain(); err != nil {
			return err
		}
		r, err := t.store.Run(ctx, t.run)
		if err != nil {
			return err
		}
		switch {
		case r.Seq > t.seq:
			t.seq = r.Seq
			t.sub.CatchUp() // the journal may be ahead of the notifications
			continue
		case done(r):
			return end(v, r)
		case standsStill(r):
			if err := v.end(); err != nil {
				return err
			}
		case isAbandoned(r, t.now()):
			return errors.Join(v.end(), fmt.Errorf("no process drives run %s any more; continue with '%s runs resume %s'", r.ID, t.pawl, r.ID))
		}
		select {
		case <-t.sub.Wake():
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain shows the new events.
func (t *tailer) drain(ctx context.Context, v display) error {
	for {
		events, err := t.sub.Poll(ctx)
		if err != nil {
			return err
		}
		for i := range events {
			e := &events[i].Event
			if e.Run == t.run {
				t.seq = e.Seq
			}
			if e.Seq <= t.after { // only where the events are those of one run
				continue
			}
			if err := v.show(*e); err != nil {
				return err
			}
		}
		if len(events) == 0 && !t.sub.More() {
			return nil
		}
	}
}

// standsStill reports whether no more events come without a command.
func standsStill(r journal.Run) bool {
	return r.State == journal.Ended || r.State == journal.Parked || r.State == journal.Paused
}

// abandonedAfter is how long a run may be without a driver before a follower gives
// up: longer than the gap between one process and the next.
const abandonedAfter = 30 * time.Second

func isAbandoned(r journal.Run, now time.Time) bool {
	return !control.Driven(r, now) && now.Sub(r.Updated) > abandonedAfter && now.Sub(r.Expiry) > abandonedAfter
}
