package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/pawlrun/pawl/cluster/internal/place"
	"github.com/pawlrun/pawl/internal/cli"
	"github.com/pawlrun/pawl/internal/host/workplace"
	places "github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
)

// temporalOptions return the options of a connection. Temporal's own messages go to the
// log of the process.
func temporalOptions(at string, log *slog.Logger) client.Options {
	return client.Options{HostPort: at, Namespace: "default", Logger: log}
}

// dispatch connects a server to Temporal. It does not wait for Temporal: runs are queued
// in the journal while Temporal cannot be reached.
func dispatch(ctx context.Context, at string, limits cli.DispatchLimits, store journal.Store, log *slog.Logger) (places.Dispatcher, error) {
	if limits.MaxQueued < 1 {
		return nil, cli.Usage(fmt.Errorf("--max-queued %d: give 1 or more", limits.MaxQueued))
	}
	queue, err := place.QueueOf(ctx, store)
	if err != nil {
		return nil, err
	}
	c, err := client.NewLazyClient(temporalOptions(at, log))
	if err != nil {
		return nil, err
	}
	return &place.Dispatcher{Client: c, Store: store, Queue: queue, MaxQueued: limits.MaxQueued, Placing: limits.Placing, Log: log}, nil
}

// examine describes a Temporal server for 'pawl doctor'.
func examine(ctx context.Context, at string, store journal.Store) (detail, lacks string, err error) {
	queue, err := place.QueueOf(ctx, store)
	if err != nil {
		return "", "", err
	}
	o := temporalOptions(at, slog.New(slog.DiscardHandler))
	c, err := client.NewLazyClient(o)
	if err != nil {
		return "", "", err
	}
	defer c.Close()
	return place.Examine(ctx, c, o.Namespace, queue)
}

// workerCommand returns the command of a worker. lacks returns what its machine has too
// little of to take a run, "" for nothing.
func workerCommand(lacks func(dir string) string) func(cli.Environment) *cobra.Command {
	return func(e cli.Environment) *cobra.Command { return workerOn(e, lacks) }
}

func workerOn(e cli.Environment, lacks func(dir string) string) *cobra.Command {
	var o cli.DriveOptions
	var at string
	w := place.Options{}
	c := &cobra.Command{
		Use:   "worker",
		Short: "Drive the runs that Temporal places on this machine",
		Long: `Drives the runs of servers with --temporal. It asks Temporal for as many runs as it has room for (--max-runs). If it
is killed, other workers of the same host continue its runs, and those of runs that name a label, workers with that label.
Ctrl-C or SIGTERM stops it: it takes no more runs, lets those that it has go on for --drain, and parks them, which takes
10 s at most and lets calls under way end; other workers continue them likewise.`,
		Example: "  pawl worker --journal postgres://pawl@db/pawl --temporal temporal:7233 --max-runs 64",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case at == "":
				return cli.Usage(errors.New("--temporal is missing; give HOST:PORT of the Temporal server"))
			case w.MaxRuns < 2+len(o.Labels):
				return cli.Usage(fmt.Errorf("--max-runs %d: give %d or more: one for any run, one for those of this host, and one for each label", w.MaxRuns, 2+len(o.Labels)))
			case w.Drain < 0:
				return cli.Usage(fmt.Errorf("--drain %s: give 0 or more", w.Drain))
			}
			return e.Drive(c.Context(), o, func(ctx context.Context, d cli.Driver) error {
				queue, err := place.QueueOf(ctx, d.Store)
				if ctx.Err() != nil {
					return nil // it was stopped before it had begun
				}
				var t client.Client
				if err == nil {
					t, err = client.NewLazyClient(temporalOptions(at, d.Log))
				}
				if err != nil {
					return err
				}
				defer t.Close()
				w.Queue, w.Driver, w.Store, w.Log, w.Labels = queue, d.Server, d.Store, d.Log, o.Labels
				w.Host, w.Lacks = workplace.Name(os.Getenv), func() string { return lacks(o.Workspace) }
				w.Full = d.Server.SetFull
				return place.Work(ctx, t, w)
			})
		},
	}
	c.Flags().StringVar(&at, "temporal", "", "HOST:PORT of the Temporal server")
	c.Flags().IntVar(&w.MaxRuns, "max-runs", 64, "how many runs are driven at once")
	c.Flags().DurationVar(&w.Drain, "drain", 0, "how long runs go on after SIGTERM before they park")
	c.Flags().StringSliceVar(&o.Labels, "labels", nil, "what this machine has for runs that ask for it, NAME or NAME=DIR with the directory of such runs (gpu,repo=/srv/repo)")
	c.Flags().StringVar(&o.Peers, "peer-addr", "", "HOST:PORT at which servers on other machines read answers as they come (default: a free port for this machine alone)")
	c.Flags().StringVar(&o.Metrics, "metrics", "", "HOST:PORT at which GET /metrics has metrics for Prometheus, a loopback address without a file of tokens")
	c.Flags().StringVar(&o.Tokens, "tokens", "", "file of the tokens that readers of the metrics need (published tokens or tokens.yaml beside the journal, if they are there)")
	c.Flags().StringArrayVar(&o.Hosts, "host", nil, "name of the machine beside its address, as readers of the metrics send it in Host (repeatable)")
	c.Flags().StringVar(&o.Agents, "agents", ".", "directory of the agent files that runs name")
	c.Flags().StringVar(&o.Workspace, "workspace", ".", "directory that the tools of runs without one of their own work in")
	return c
}
