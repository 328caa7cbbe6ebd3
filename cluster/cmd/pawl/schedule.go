package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/pawlrun/pawl/cluster/internal/place"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/cli"
	"github.com/pawlrun/pawl/journal"
)

func scheduleCommand(e cli.Environment) *cobra.Command {
	var at string
	c := &cobra.Command{
		Use:   "schedule",
		Short: "Start runs at certain times, by Temporal",
		Args:  cobra.NoArgs,
	}
	c.PersistentFlags().StringVar(&at, "temporal", "", "HOST:PORT of the Temporal server")
	with := func(ctx context.Context, use func(client.Client, journal.Store) error) error {
		if at == "" {
			return cli.Usage(errors.New("--temporal is missing; give HOST:PORT of the Temporal server"))
		}
		t, err := client.DialContext(ctx, temporalOptions(at, slog.New(slog.DiscardHandler)))
		if err != nil {
			return err
		}
		defer t.Close()
		store, err := e.Open(ctx, e.Journal(), cli.Use{Create: true})
		if err != nil {
			return err
		}
		defer func() { _ = store.Close() }()
		err = use(t, store)
		for _, wrong := range []error{place.ErrSchedule, place.ErrScheduleExists, place.ErrScheduleNotFound} {
			if errors.Is(err, wrong) {
				return cli.Usage(err)
			}
		}
		return err
	}
	c.AddCommand(createSchedule(e, with), listSchedules(e, with), deleteSchedule(e, with))
	return c
}

// connected calls a function with a connection to Temporal, and with the journal.
type connected func(context.Context, func(client.Client, journal.Store) error) error

func createSchedule(e cli.Environment, with connected) *cobra.Command {
	var s place.Schedule
	var template func([]string) (event.RunStarted, error)
	c := &cobra.Command{
		Use:   "create FILE [INPUT]",
		Short: "Create a schedule of runs of a file",
		Long: `Creates a schedule. Each run starts with the file as it is now: a file that is changed needs a new schedule. The times are
UTC, or those of --zone. A run that is due while the last one still goes on, or waits for a person, is skipped
(--overlap); one that was due while Temporal was down is started up to ten minutes late. The runs work in the workspace of
their worker, and the first event of each names the schedule.`,
		Example: `  pawl --journal postgres://pawl@db/pawl schedule create report.yaml --cron "0 6 * * *" --zone Europe/Berlin --temporal temporal:7233`,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			started, err := template(args)
			if err != nil {
				return err
			}
			if s.Name == "" {
				s.Name = started.Name
			}
			return with(c.Context(), func(t client.Client, store journal.Store) error {
				if err := place.CreateSchedule(c.Context(), t, store, s, started); err != nil {
					return err
				}
				return e.Printf("schedule %s\n", s.Name)
			})
		},
	}
	template = e.Template(c)
	c.Flags().StringVar(&s.Cron, "cron", "", "when: minute, hour, day of the month, month, day of the week")
	c.Flags().StringVar(&s.Zone, "zone", "", "time zone of --cron, such as Europe/Berlin (default UTC)")
	c.Flags().StringVar(&s.Name, "name", "", "name of the schedule (default: that of the file)")
	c.Flags().StringVar(&s.Overlap, "overlap", "skip", "when a run is due while the last one goes on: skip it, buffer one, or allow several")
	_ = c.MarkFlagRequired("cron")
	return c
}

func listSchedules(e cli.Environment, with connected) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the schedules",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return with(c.Context(), func(t client.Client, store journal.Store) error {
				all, err := place.Schedules(c.Context(), t, store)
				switch {
				case err != nil:
					return err
				case asJSON:
					return e.Print(all)
				case len(all) == 0:
					return e.Printf("there are no schedules; 'pawl schedule create' makes one\n")
				}
				for _, s := range all {
					if err := e.Printf("%-20s  %-16s  next %s  last %s\n", s.Name, s.Cron, shown(s.Next), shown(s.Last)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return c
}

func shown(t time.Time) string {
	if t.IsZero() {
		return strings.Repeat("-", len(time.DateTime))
	}
	return t.Local().Format(time.DateTime)
}

func deleteSchedule(e cli.Environment, with connected) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a schedule; a run that it has started goes on",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return with(c.Context(), func(t client.Client, store journal.Store) error {
				if err := place.DeleteSchedule(c.Context(), t, store, args[0]); err != nil {
					return err
				}
				return e.Printf("schedule %s is deleted\n", args[0])
			})
		},
	}
}
