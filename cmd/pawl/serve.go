package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/server"
)

// serveFlags say what a server serves.
type serveFlags struct {
	addr, agents, workspace string
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Start, watch and decide about runs over HTTP",
		Long: `Serves runs over HTTP, on this machine and to your user alone: programs of other users, web pages of
other sites and programs that a run has started are refused. Tokens and roles are not built yet, so a
wider address is refused, too. The address is printed on stdout, the log goes to stderr. Ctrl-C or
SIGTERM parks what is running; 'pawl runs resume', or a request to the next server, goes on.

  POST /v1/runs                      {agent | spec, input, model?, budget?, vars?}
  GET  /v1/runs                      ?state=parked&limit=50&cursor=…
  GET  /v1/runs/{id}                 how it stands, what it cost, what it waits for
  GET  /v1/runs/{id}/events          JSON pages, or with Accept: text/event-stream as they come
  GET  /v1/runs/{id}/approvals       the calls that wait for a decision
  POST /v1/runs/{id}/approve         {callId, reason?, args?}; the run goes on
  POST /v1/runs/{id}/reject          {callId, reason}; the run goes on
  POST /v1/runs/{id}/input           {text}
  POST /v1/runs/{id}/cancel          {reason?}
  POST /v1/runs/{id}/pause, /resume
  GET  /v1/agents, /v1/approvals, /healthz, /readyz`,
		Example: `  pawl serve
  pawl serve --addr 127.0.0.1:8080 --agents ./agents --workspace ./project
  curl -H 'Content-Type: application/json' 127.0.0.1:3001/v1/runs -d '{"agent": "fixer", "input": "Make the tests pass."}'
  curl -N -H 'Accept: text/event-stream' 127.0.0.1:3001/v1/runs/RUN/events
  curl -H 'Content-Type: application/json' 127.0.0.1:3001/v1/runs/RUN/approve -d '{"callId": "CALL"}'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.serve(c.Context(), f) },
	}
	c.Flags().StringVar(&f.addr, "addr", "127.0.0.1:3001", "loopback address to listen on; port 0 takes a free one")
	c.Flags().StringVar(&f.agents, "agents", ".", "directory of the agent files that can be run by name")
	c.Flags().StringVar(&f.workspace, "workspace", ".", "directory that the tools of all runs work in")
	return c
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	o, err := a.serverOptions(ctx, f)
	if err != nil {
		return err
	}
	l, err := server.Listen(ctx, f.addr)
	if errors.Is(err, server.ErrNotLoopback) || errors.Is(err, server.ErrNoPort) {
		return usagef("--addr: %s", control.Plain(err))
	}
	if err != nil {
		return fmt.Errorf("%w; name another address with --addr", err)
	}
	defer l.Close()
	session, err := a.open(ctx, toCreate)
	if err != nil {
		return err
	}
	defer session.close()
	o.Store, o.Engine, o.Desk = session.store, session.engine, session.desk
	if o.Admit, err = server.OwnUser(session.desk); err != nil {
		return err
	}
	s, err := server.New(o)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	if err := a.printf("http://%s\n", l.Addr()); err != nil {
		return err
	}
	return s.Serve(ctx, l)
}

// serverOptions are what the command line says of a server.
func (a *app) serverOptions(ctx context.Context, f serveFlags) (server.Options, error) {
	o := server.Options{User: whoAmI(), Log: slog.New(slog.NewTextHandler(a.err, nil))}
	var err error
	if o.Agents, err = directory("--agents", f.agents); err != nil {
		return o, err
	}
	l := launch.Options{Limiter: &a.limiter, Pages: &a.pages}
	if l.Workspace, err = directory("--workspace", f.workspace); err != nil {
		return o, err
	}
	if l.Journal, err = filepath.Abs(a.journalPath); err != nil {
		return o, err
	}
	if l.Config, err = a.config(); err != nil {
		return o, err
	}
	if l.Sandbox, err = a.sandbox(ctx); err != nil {
		return o, err
	}
	o.Launch = l
	return o, nil
}

// directory is the absolute path of a directory that a flag names. A journal
// holds text alone, so that a run in a directory whose name is none could not be
// resumed.
func directory(flag, path string) (string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", usagef("%s %s is not a directory", flag, path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", usagef("%s: %w", flag, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", usagef("%s: %w", flag, err)
	}
	if !utf8.ValidString(abs + real) {
		return "", usagef("%s: the name of the directory %s is not valid UTF-8, so that no journal can hold it; rename it", flag, real)
	}
	return abs, nil
}
