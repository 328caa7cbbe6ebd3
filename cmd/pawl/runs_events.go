package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// eventFlags say which events of a run to print, and how.
type eventFlags struct {
	follow   bool
	after    int64
	afterPos int64
	json     bool
	words    string
}

func (a *app) eventsCommand() *cobra.Command {
	var f eventFlags
	c := &cobra.Command{
		Use:        "events RUN",
		SuggestFor: []string{"log", "logs"},
		Short:      "Print a run's events, one a line",
		Long: `Prints the journal of a run, one event a line. With --follow it goes on until the run ends or
parks, whichever process drives it; live text is only with the process that drives it.`,
		Example: `  pawl runs events k7x2
  pawl runs events k7x2 --follow
  pawl runs events k7x2 --after 120`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o := output{json: f.words == "", words: f.words}
			if err := o.check(); err != nil {
				return err
			}
			return a.withRun(c.Context(), toRead, args[0], func(s *session, r journal.Run) error {
				t := tailer{store: s.store, run: r.ID, after: f.after, afterPos: f.afterPos, now: time.Now, pawl: a.invocation()}
				if f.follow {
					return t.follow(c.Context(), a.view(o, nil))
				}
				return t.print(c.Context(), a.view(o, nil))
			})
		},
	}
	c.Flags().BoolVar(&f.follow, "follow", false, "go on until the run ends or parks")
	c.Flags().Int64Var(&f.after, "after", 0, "only events after this seq")
	c.Flags().Int64Var(&f.afterPos, "after-pos", 0, "only events after this pos")
	c.Flags().BoolVar(&f.json, "json", false, "one event a line (always so)")
	c.Flags().StringVar(&f.words, "view", "", "print the events in the words of aldo, alfred or rondo")
	return c
}

// tailer reads a run's events from the journal as they come, whoever drives
// the run.
type tailer struct {
	store    journal.Store
	run      string
	after    int64
	afterPos int64
	now      func() time.Time
	// pawl begins the command that is named as a next step.
	pawl string
}

// print gives the events that are there to the view.
func (t *tailer) print(ctx context.Context, v view) error {
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

// end ends the view of a run that has left. How it ended is in its last event,
// which a reader who asks for what came later does not hear again.
func end(v view, r journal.Run) error {
	if r.State == journal.Ended {
		return nil
	}
	return v.end()
}

// follow gives the events to the view as they come, until the run has ended or
// parked, or nobody drives it any more.
func (t *tailer) follow(ctx context.Context, v view) error {
	changed := t.store.Watch(ctx)
	for {
		if err := t.drain(ctx, v); err != nil {
			return err
		}
		r, err := t.store.Run(ctx, t.run)
		if err != nil {
			return err
		}
		switch {
		case r.Seq > t.after:
			continue
		case standsStill(r):
			return end(v, r)
		case isAbandoned(r, t.now()):
			return errors.Join(v.end(), fmt.Errorf("nobody drives run %s any more; go on with '%s runs resume %s'", r.ID, t.pawl, r.ID))
		}
		select {
		case <-changed:
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain prints what the journal holds beyond what was printed.
func (t *tailer) drain(ctx context.Context, v view) error {
	const size = 500
	for {
		records, err := t.store.Records(ctx, t.run, t.after, size)
		if err != nil {
			return err
		}
		for _, rec := range records {
			t.after = rec.Seq
			if rec.Pos <= t.afterPos {
				continue
			}
			e, err := event.Decode(rec.Body)
			if err != nil {
				return err
			}
			e.Pos = rec.Pos
			if err := v.show(*e); err != nil {
				return err
			}
		}
		if len(records) < size {
			return nil
		}
	}
}

// standsStill says that no more events come without somebody's doing.
func standsStill(r journal.Run) bool {
	return r.State == journal.Ended || r.State == journal.Parked || r.State == journal.Paused
}

// abandonedAfter is how long a run may be without a driver before a follower
// gives up: longer than the gap between one process and the next.
const abandonedAfter = 30 * time.Second

func isAbandoned(r journal.Run, now time.Time) bool {
	return !control.Driven(r, now) && now.Sub(r.Updated) > abandonedAfter && now.Sub(r.Expiry) > abandonedAfter
}
