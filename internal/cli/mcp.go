package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/internal/mcpserver"
	"github.com/pawlrun/pawl/internal/server"
)

func (a *app) mcpCommand() *cobra.Command {
	f := serveFlags{mcp: true, noAuth: true}
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Offer the agent files of a directory as tools of MCP",
		Long: `Speaks the Model Context Protocol on stdin and stdout, and offers each agent, team, loop, workflow and goal file of a
directory as a tool of its name. Its arguments are task and the variables of its prompt. A call starts a run in the
journal and waits for it; the same call with the same io.github.pawlrun/idempotencyKey in _meta is the same run, also
after a crash. A client with tasks gets the run as a task. What a run asks is put to the user of a client that has
elicitation; for any other client the result names the command that decides. Runs can be read as the resources
pawl://runs/RUN, pawl://runs/RUN/events and pawl://runs/RUN/log.

A call that the client cancels parks its run, or with --on-cancel cancel ends it. When the client closes stdin the runs
park, and the next server of the journal continues them. The log goes to stderr.

With --http it is 'pawl serve --mcp': the same over HTTP at /mcp, with tokens and roles.`,
		Example: `  pawl mcp --agents ./agents --workspace ./project
  claude mcp add pawl -- pawl mcp --agents /home/ann/agents --workspace /home/ann/project
  pawl mcp --agents ./agents --http 127.0.0.1:3002`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.addr != "" {
				return a.serve(c.Context(), f)
			}
			for _, name := range []string{"tokens", "host", "no-auth"} {
				if c.Flags().Changed(name) {
					return usagef("--%s is for HTTP; give --http ADDR too, or leave it out", name)
				}
			}
			return a.mcp(c.Context(), f)
		},
	}
	c.Flags().StringVar(&f.agents, "agents", ".", "directory of the files that are offered")
	c.Flags().StringVar(&f.workspace, "workspace", ".", "directory that the tools of all runs work in")
	c.Flags().StringVar(&f.addr, "http", "", "address to listen on, in the place of stdin and stdout")
	c.Flags().StringVar(&f.tokens, "tokens", "", "file of the tokens that are needed over HTTP, as for 'pawl serve'")
	c.Flags().BoolVar(&f.noAuth, "no-auth", false, "need no token over HTTP, as for 'pawl serve'")
	c.MarkFlagsMutuallyExclusive("tokens", "no-auth")
	c.Flags().StringArrayVar(&f.hosts, "host", nil, "name of the server beside its address, as for 'pawl serve' (repeatable)")
	f.onShutdown = "park"
	f.onCancelFlag(c)
	c.AddCommand(a.mcpPinCommand(), a.mcpLoginCommand(), a.mcpLogoutCommand())
	return c
}

// onCancelFlag sets what happens to the run of a cancelled MCP call.
func (f *serveFlags) onCancelFlag(c *cobra.Command) {
	c.Flags().StringVar(&f.onCancel, "on-cancel", string(mcpserver.Park), "what a run does when its MCP client cancels the call: park, or cancel, which ends it")
}

// mcpServer offers what a server runs over MCP.
func (a *app) mcpServer(session *session, s *server.Server, o server.Options, onCancel string) (*mcpserver.Server, error) {
	if onCancel != string(mcpserver.Park) && onCancel != string(mcpserver.Cancel) {
		return nil, usagef("--on-cancel %q: give park or cancel", onCancel)
	}
	m := mcpserver.Options{
		Server: s, User: itsUser(), OnCancel: mcpserver.OnCancel(onCancel), Version: thisBuild(a.build.Version).Version, Command: a.invocation(),
		Exporter: session.exporter, Log: o.Log, WriteLog: func(ctx context.Context, run string, w io.Writer) error { return session.writeLog(ctx, run, 0, w) },
	}
	return mcpserver.New(m)
}

// mcp serves MCP on stdin and stdout.
func (a *app) mcp(ctx context.Context, f serveFlags) error {
	// Other output of this process must not appear between the frames.
	out := a.out
	a.out, os.Stdout = a.err, os.Stderr
	in, ok := a.in.(io.ReadCloser)
	if !ok {
		in = io.NopCloser(a.in)
	}
	session, s, o, err := a.quietServer(ctx, f)
	if err != nil {
		return err
	}
	defer session.close()
	tools, err := a.mcpServer(session, s, o, f.onCancel)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	tools.MayDecide = session.mayDecide
	ctx, stop := interruptible(ctx)
	defer stop()
	s.Continue()
	if err := tools.Serve(ctx, in, out); err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	return nil
}

// mayDecide returns an error if a run has started this process.
func (s *session) mayDecide(ctx context.Context) error {
	return s.notOfRun(ctx, "a run cannot decide about calls; a person must")
}

// writeLog writes the log of a run and its descendants for people, from the events after
// a number on.
func (s *session) writeLog(ctx context.Context, run string, after int64, w io.Writer) error {
	talk := newConversation(w, screenOf(w, os.Getenv), s.app.invocation())
	talk.after = after
	talk.next.pending = s.app.pending
	t, err := s.tail(ctx, follow.Query{Run: run})
	if err != nil {
		return err
	}
	f := family{tailer: t, session: s, show: talk}
	defer f.close()
	return errors.Join(f.drain(ctx), talk.end())
}
