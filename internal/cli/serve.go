package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/host/workplace"
	"github.com/pawlrun/pawl/internal/mcpserver"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/internal/signals"
)

// serveFlags configure a server.
type serveFlags struct {
	addr, agents, workspace, tokens string
	hosts                           []string
	certificate, key, onShutdown    string
	open, noAuth                    bool
	// mcp speaks MCP beside the paths of the server; a call that is cancelled leaves its
	// run as onCancel says.
	mcp               bool
	onCancel          string
	onOwnerDisconnect string
	peerURL           string
	maxBudget         float64
	labels            []string
	// temporal is the address of what places the runs, and maxQueued how many may be queued.
	temporal  string
	maxQueued int
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve runs over HTTP",
		Long: `Serves runs over HTTP. It makes a token for this start, serves this machine alone, and prints the address of
the page with the token behind #, which no browser sends; 'pawl token show' prints the token for other clients.
With a file of tokens ('pawl token create') it serves who sends one, in its role, and may listen on any address;
it, or a proxy in front of it, must speak TLS then, and --host gives it the proxy's name. With --no-auth every
program and every user of this machine is an admin. The address is printed on stdout, the log goes to stderr. Ctrl-C
or SIGTERM parks the running runs, which the next server of the journal continues, or ends them (--on-shutdown
teardown); it takes 10 s at most, and a second one ends the server at once. What a server left that was killed is
continued as well, also by another server of the journal. Paused runs, runs that wait for a decision and runs of
'pawl run' are not continued.

  GET  /                             a page that shows runs, and on which questions are decided
  POST /v1/runs                      {agent | workflow | spec, input?, model?, budget?, vars?, workspace?}; NAME@VERSION names a version;
                                     workspace {host}, {label} or {repo, ref} names the machine of a shared journal
  GET  /v1/runs                      ?state=parked&limit=50&cursor=…
  GET  /v1/runs/{id}                 its state and cost, and what it waits for
  GET  /v1/runs/{id}/events          JSON pages, or with Accept: text/event-stream as they come
  GET  /v1/runs/{id}/tree            the run and the runs below it
  GET  /v1/runs/{id}/questions       what it asks people; ?tree=true with the runs below it
  POST /v1/runs/{id}/approve         {callId, reason?, args?}; the run continues
  POST /v1/runs/{id}/reject          {callId, reason}; the run continues
  POST /v1/runs/{id}/input           {text}
  POST /v1/runs/{id}/budget          {setting, value}; a run that parked at the limit continues
  POST /v1/runs/{id}/cancel          {reason?}
  POST /v1/runs/{id}/pause, /resume
  POST /v1/runs/{id}/fork            {seq, message?, model?, prompt?, contextWindow?, limits?, results?, run?}
  GET  /v1/runs/{id}/effects         ?seq=N: what a fork at event N would not undo; …/forks: the runs that share events
  POST /v1/runs/{id}/continue        {text, budget?}: a new run with the conversation of an ended one
  POST /v1/runs/{id}/retry           {step?, run?}: an ended workflow again from what failed, or from a step
  GET  /v1/agents, /v1/workflows, /v1/questions, /v1/approvals, /healthz, /readyz
  GET  /v1/audit                     who was refused what, and who changed what
  GET  /metrics                      what runs and requests did, for Prometheus
  GET  /openapi.json                 all of this in OpenAPI 3.1, with the role of each operation
  POST /api/agents/{id}/loop/start   {message}; also stop, approve {loopId, approved}, pause, resume; GET …/loop/status
       /socket.io/                   Socket.IO: loop:start, loop:stop, loop:approve, and what loops do as it comes`,
		Example: `  pawl serve --open
  pawl serve --addr 127.0.0.1:8080 --agents ./agents --workspace ./project
  AUTH="Authorization: Bearer $(pawl token show)"
  curl -H "$AUTH" -H 'Content-Type: application/json' 127.0.0.1:3001/v1/runs -d '{"agent": "fixer", "input": "Make the tests pass."}'
  curl -H "$AUTH" -N -H 'Accept: text/event-stream' 127.0.0.1:3001/v1/runs/RUN/events
  curl -H "$AUTH" -H 'Content-Type: application/json' 127.0.0.1:3001/v1/runs/RUN/approve -d '{"callId": "CALL"}'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.serve(c.Context(), f) },
	}
	c.Flags().StringVar(&f.addr, "addr", "127.0.0.1:3001", "address to listen on, a loopback address without a file of tokens; port 0 takes a free one")
	c.Flags().StringVar(&f.tokens, "tokens", "", "file of the tokens that are needed (tokens.yaml beside the journal, if it is there; else one is made for this start)")
	c.Flags().BoolVar(&f.noAuth, "no-auth", false, "need no token: every program and user of this machine is an admin, also the commands of runs")
	c.MarkFlagsMutuallyExclusive("tokens", "no-auth")
	c.Flags().Float64Var(&f.maxBudget, "max-budget", 0, "USD that an editor may set as the limit of a run whose file says less, when it starts, is forked or is raised (default: what the file says)")
	c.Flags().StringArrayVar(&f.hosts, "host", nil, "name of the server beside its address, as clients send it in Host (repeatable)")
	c.Flags().StringVar(&f.peerURL, "peer-url", "", "URL at which the other servers of a shared journal reach this one, for readers there of answers as they come (default: the address that it listens on)")
	c.Flags().StringVar(&f.agents, "agents", ".", "directory of the agent files that can be run by name")
	c.Flags().StringVar(&f.certificate, "tls-cert", "", "file of the certificate, with those that sign it, to speak HTTPS (needs --tls-key)")
	c.Flags().StringVar(&f.key, "tls-key", "", "file of the certificate's key")
	c.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	c.Flags().StringVar(&f.onShutdown, "on-shutdown", "park", "what the runs do when the server stops: park, or teardown, which cancels them")
	c.Flags().StringVar(&f.onOwnerDisconnect, "on-owner-disconnect", "", "what a run does when the last socket and stream of who started it has been closed for RONDOFLOW_TEARDOWN_GRACE_MS (60000):\ndetach, park or teardown, which cancels it (default detach; for loops started over Socket.IO teardown, unless RONDOFLOW_TEARDOWN_ON_DISCONNECT=0)")
	c.Flags().BoolVar(&f.mcp, "mcp", false, "offer the agent files as tools of MCP at /mcp too; 'pawl mcp --help' describes them")
	f.onCancelFlag(c)
	c.Flags().StringSliceVar(&f.labels, "labels", nil, "what this machine has for runs that ask for it, NAME or NAME=DIR with the directory of such runs (gpu,repo=/srv/repo)")
	c.Flags().BoolVar(&f.open, "open", false, "open the page in the browser")
	c.Flags().StringVar(&f.workspace, "workspace", ".", "directory that the tools of all runs work in")
	c.Flags().StringVar(&f.temporal, "temporal", "", "HOST:PORT of a Temporal server that places the runs on workers ('pawl worker'); this server then drives none")
	c.Flags().IntVar(&f.maxQueued, "max-queued", 10_000, "with --temporal, how many runs may be queued before starts are answered with 429")
	for _, name := range []string{"temporal", "max-queued"} {
		c.Flags().Lookup(name).Hidden = a.build.Dispatch == nil
	}
	return c
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	o, err := a.serverOptions(ctx, f)
	if err != nil {
		return err
	}
	if err := a.mirror(ctx, f, &o); err != nil {
		return err
	}
	l, err := server.Listen(ctx, f.addr, o.Tokens != "")
	if errors.Is(err, server.ErrNotLoopback) || errors.Is(err, server.ErrNoPort) {
		return usagef("--addr: %s", control.Plain(err))
	}
	if err != nil {
		return fmt.Errorf("%w; name another address with --addr", err)
	}
	defer l.Close()
	scheme := "http"
	if o.TLS {
		pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
		if err != nil {
			return usagef("--tls-cert, --tls-key: %w", err)
		}
		scheme, l = "https", tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	}
	a.metrics = signals.NewMetrics()
	o.Metrics = a.metrics
	session, err := a.open(ctx, toServe)
	if err != nil {
		return err
	}
	leave := session.close
	defer func() { leave() }()
	o.Store, o.Engine, o.Controller, o.Budgets = session.store, session.engine, session.controller, session.budgets
	if err := a.dispatch(ctx, f, session.tokens, &o); err != nil {
		return err
	}
	if o.Tokens != "" {
		session.tokens.Path = o.Tokens
	}
	if o.Tokens == "" && !o.NoAuth {
		o.Token = tokens.New()
		release, err := a.keepToken(tokens.Started{Addr: l.Addr().String(), Token: o.Token, TLS: o.TLS})
		if err != nil {
			return err
		}
		defer release()
	}
	s, err := server.New(o)
	if err != nil {
		return err
	}
	if f.mcp {
		tools, err := a.mcpServer(session, s, o, f.onCancel)
		if err != nil {
			return errors.Join(err, s.Close())
		}
		s.Mount(mcpserver.Path, tools.Handler())
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	forget, err := a.announce(ctx, o, scheme, l.Addr(), f)
	if err != nil {
		return err
	}
	defer forget()
	if err = s.Serve(ctx, l); errors.Is(err, server.ErrLeft) {
		leave = func() {} // it would wait for the runs
	}
	return err
}

// announce prints the address of the server, and opens its page on request.
func (a *app) announce(ctx context.Context, o server.Options, scheme string, at net.Addr, f serveFlags) (forget func(), err error) {
	address, page := fmt.Sprintf("%s://%s", scheme, at), pageOf(scheme, at)
	if o.Token != "" {
		page += "#" + o.Token
		address = page
	}
	if o.NoAuth {
		fmt.Fprintf(a.err, "warning: --no-auth: every program and every user of this machine that reaches %s is an admin, also the commands of runs\n", at)
	}
	if err := a.printf("%s\n", address); err != nil {
		return nil, err
	}
	if f.mcp {
		fmt.Fprintf(a.err, "clients of MCP connect to %s://%s%s\n", scheme, at, mcpserver.Path)
	}
	if o.Token != "" {
		fmt.Fprintf(a.err, "other clients send the token: curl -H \"Authorization: Bearer $(%s token show)\" %s://%s/v1/runs\n", a.invocation(), scheme, at)
	}
	forget = func() {}
	switch {
	case !f.open:
	case o.Token != "":
		if forget, err = a.openPage(ctx, page); err != nil {
			forget = func() {}
		}
	default:
		err = openInBrowser(ctx, page)
	}
	if err != nil {
		fmt.Fprintln(a.err, "warning:", err)
	}
	return forget, nil
}

// serverOptions returns the options of the command line.
func (a *app) serverOptions(ctx context.Context, f serveFlags) (server.Options, error) {
	if err := a.checkTemporal(f); err != nil {
		return server.Options{}, err
	}
	o := server.Options{User: whoAmI(), Log: slog.New(slog.NewTextHandler(a.err, nil)), Tokens: f.tokens, NoAuth: f.noAuth, Hosts: f.hosts, TLS: f.certificate != ""}
	if _, err := os.Stat(a.tokensFile()); f.tokens == "" && !f.noAuth && err == nil {
		o.Tokens = a.tokensFile()
	}
	if o.Teardown = f.onShutdown == "teardown"; !o.Teardown && f.onShutdown != "park" {
		return o, usagef("--on-shutdown %q: give park or teardown", f.onShutdown)
	}
	if o.MaxBudget = f.maxBudget; !(o.MaxBudget >= 0) || math.IsInf(o.MaxBudget, 0) {
		return o, usagef("--max-budget %g: give an amount in USD", f.maxBudget)
	}
	o.PeerURL = f.peerURL
	var err error
	if o.OwnerGone, err = ownerGone(f.onOwnerDisconnect, os.Getenv); err != nil {
		return o, err
	}
	if o.Agents, err = directory("--agents", f.agents); err != nil {
		return o, err
	}
	if o.Launch.Workspace, err = directory("--workspace", f.workspace); err != nil {
		return o, err
	}
	for _, label := range f.labels {
		if err := workplace.CheckLabel(label); err != nil {
			return o, usagef("--labels: %w", err)
		}
	}
	o.Launch.Host, _, err = a.host(ctx)
	o.Launch.Here.Labels, o.Launch.Here.Workspace = f.labels, o.Launch.Workspace
	if err == nil && o.Launch.Journal != "" {
		o.Launch.Journal, err = filepath.Abs(a.journalPath)
		o.Space = func() (uint64, error) { return freeSpace(filepath.Dir(o.Launch.Journal)) }
	}
	return o, err
}

// freeSpace returns the bytes that this user can still write to the disk of a
// directory.
func freeSpace(dir string) (uint64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("free space: %w", &fs.PathError{Op: "statfs", Path: dir, Err: err})
	}
	return disk.Bavail * uint64(disk.Bsize), nil
}

// ownerGone returns the setting for runs of disconnected owners, from the flag and
// RondoFlow's two variables. The flag applies to all runs, the variables to loops
// started over Socket.IO.
func ownerGone(flag string, env func(string) string) (gone server.OwnerGone, err error) {
	const teardown, grace = "RONDOFLOW_TEARDOWN_ON_DISCONNECT", "RONDOFLOW_TEARDOWN_GRACE_MS"
	switch flag {
	case "":
		if env(teardown) != "0" {
			gone.Sockets = event.OwnerGoneTeardown
		}
	case "detach":
	case string(event.OwnerGonePark), string(event.OwnerGoneTeardown):
		gone.Sockets, gone.HTTP = event.OwnerGone(flag), event.OwnerGone(flag)
	default:
		return gone, usagef("--on-owner-disconnect %q: give detach, park or teardown", flag)
	}
	gone.Grace = time.Minute
	if given := env(grace); given != "" {
		ms, err := strconv.ParseUint(given, 10, 31)
		if err != nil {
			return gone, usagef("%s=%q: give milliseconds, from 0 to %d", grace, given, math.MaxInt32)
		}
		gone.Grace = time.Duration(ms) * time.Millisecond
	}
	return gone, nil
}

// directory returns the absolute path of a flag's directory. A journal holds only
// valid text, so a run in a directory with an invalid name could not resume.
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
		return "", usagef("%s: the name of the directory %s is not valid UTF-8, so it cannot be in a journal; rename it", flag, real)
	}
	return abs, nil
}
