package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/programlog"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/mcp"
	"github.com/pawlrun/pawl/tool/shell"
)

// ErrServer is returned for a run that needs an MCP server which is not there.
var ErrServer = errors.New("launch: an MCP server that the run needs is not there")

// ErrPins is returned for a run whose MCP server differs from its pins.
var ErrPins = errors.New("launch: an MCP server is not what its pins say")

// served holds the MCP servers of a run that is being prepared. The servers of a new
// run are started; a resumed run has pins, and its servers are contacted when they are
// first used.
type served struct {
	began bool
	pins  []event.ToolServer
	// deferred lists the tools that requests do not name.
	deferred []string
	// log receives the error output of the servers, and the warnings that arise after
	// the run's first event.
	log *programlog.Log

	mu       sync.Mutex
	warnings []string
	pinned   bool
}

func (s *served) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.began || s.pinned:
		s.log.Line("pawl", text)
	case !slices.Contains(s.warnings, text):
		s.warnings = append(s.warnings, text)
	}
}

// pinnedWarnings returns the warnings for the run's first event. Later ones are logged.
func (s *served) pinnedWarnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pinned = true
	return s.warnings
}

// pin returns the pin of a server, nil for a server that was absent when the run began.
func (s *served) pin(name string) *event.ToolServer {
	for i := range s.pins {
		if s.pins[i].Server == name {
			return &s.pins[i]
		}
	}
	return nil
}

// servers starts all MCP servers of a file concurrently, or prepares the ones that a
// resumed run began with. Only tools that the file offers are included.
func (o Options) servers(a *spec.Agent, s shell.Options, secrets []secret.Secret) (tools []tool.Tool, closeAll func() error, err error) {
	none := func() error { return nil }
	if o.served == nil || len(a.Tools.MCP) == 0 {
		return nil, none, nil
	}
	o.served.log = programlog.New(secrets)
	open := make([]*mcp.Server, len(a.Tools.MCP))
	problems := make([]error, len(a.Tools.MCP))
	var starting sync.WaitGroup
	for i, server := range a.Tools.MCP {
		options := o.serverOptions(server, a, s, secrets)
		if o.served.began {
			if pin := o.served.pin(server.Server); pin != nil {
				open[i] = mcp.Resume(options, *pin)
			}
			continue
		}
		starting.Go(func() { open[i], problems[i] = mcp.Connect(context.Background(), options) })
	}
	starting.Wait()
	closeAll = func() error {
		var closing sync.WaitGroup
		for _, each := range open {
			if each != nil {
				closing.Go(func() { _ = each.Close() })
			}
		}
		closing.Wait()
		o.served.log.Close()
		return nil
	}
	redact := secret.NewRedactor(secrets...)
	for i, server := range a.Tools.MCP {
		switch {
		case problems[i] == nil:
		case a.Tools.Needs(server):
			return nil, none, errors.Join(fmt.Errorf("%w: %s", ErrServer, redact.RedactString(problems[i].Error())), closeAll())
		default:
			o.served.warn(redact.RedactString(problems[i].Error()) + "; its tools are absent")
		}
		if err := checkPins(a, server, open[i]); err != nil && !o.served.began {
			return nil, none, errors.Join(fmt.Errorf("%w: %s", ErrPins, redact.RedactString(err.Error())), closeAll())
		}
		if open[i] != nil {
			tools = append(tools, o.toolsOf(a, server, open[i])...)
		}
	}
	return tools, closeAll, nil
}

// logServers returns a function that opens the log of the run's servers once the run
// has an id; nil for a run without servers.
func (o Options) logServers() func(run string) {
	if o.served == nil || o.served.log == nil {
		return nil
	}
	return func(run string) {
		path := ""
		if o.ServerLog != nil {
			path = o.ServerLog(run)
		}
		o.served.log.Open(path)
	}
}

// checkPins compares a started server with its pins, if it has any.
func checkPins(a *spec.Agent, server spec.MCPServer, open *mcp.Server) error {
	file := a.PinsFile(server)
	if file == "" || open == nil {
		return nil
	}
	command := fmt.Sprintf("'pawl mcp pin %s %s'", word(a.Path()), server.Server)
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s: the pins cannot be read (%w); %s writes them", server.Server, err, command)
	}
	pins, err := spec.ParsePins(text)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", server.Server, file, err)
	}
	if different := mcp.Differences(pins, open.Pin()); len(different) > 0 {
		return fmt.Errorf("%s differs from %s:\n  %s\nIf this is wanted, %s writes the file anew",
			server.Server, file, strings.Join(different, "\n  "), command)
	}
	return nil
}

// toolsOf returns the tools of a server that a file offers.
func (o Options) toolsOf(a *spec.Agent, server spec.MCPServer, open *mcp.Server) []tool.Tool {
	if !o.served.began {
		o.served.pins = append(o.served.pins, open.Pin())
	}
	var offered []tool.Tool
	for _, t := range open.Tools() {
		if a.Tools.OffersOfServer(t.Name) {
			offered = append(offered, t)
		}
	}
	for _, name := range a.Tools.ToolsOf(server) {
		if !slices.ContainsFunc(offered, func(t tool.Tool) bool { return t.Name == name }) {
			o.served.warn("tools.allow names " + name + ", which the MCP server " + server.Server + " does not offer")
		}
	}
	return offered
}

// serverOptions converts a server of a file to the options of package mcp.
func (o Options) serverOptions(server spec.MCPServer, a *spec.Agent, s shell.Options, secrets []secret.Secret) mcp.Options {
	value := func(name string) string {
		for _, s := range secrets {
			if s.Name == name {
				return s.Value
			}
		}
		return ""
	}
	seconds := func(s *spec.Seconds) (d time.Duration) {
		if s != nil {
			d = s.Duration()
		}
		return d
	}
	m := mcp.Options{
		Server: server.Server, Shell: s, URL: server.URL, Headers: server.HeadersWith(value), TrustHints: server.TrustHints, Warn: o.served.warn,
		Login: o.loginOf(server, a, value), Unauthorized: unauthorized(server, a),
		Log:          func(line string) { o.served.log.Line(server.Server, line) },
		StartTimeout: seconds(server.StartTimeout), Timeout: seconds(server.Timeout), MaxTime: seconds(server.MaxTime),
	}
	if p := a.Tools.Permissions; o.Workspace != "" && (p == nil || p.Filesystem != string(policy.FilesystemNone)) {
		m.Roots = []string{o.Workspace}
	}
	if len(server.Command) > 0 {
		m.Command = programOf(spec.CommandTool{Command: server.Command}, a.Dir, o.Workspace).Argv()
	}
	for _, name := range slices.Sorted(maps.Keys(server.Env)) {
		m.Env = append(m.Env, name+"="+server.Env[name])
	}
	for _, name := range server.Secrets {
		m.Env = append(m.Env, name+"="+value(name))
	}
	m.Env = append(m.Env, holder.ServerVariable+"="+holder.MarkOf(server.Server))
	return m
}

// startsServers reports whether a file has MCP servers that are programs.
func startsServers(a *spec.Agent) bool {
	return slices.ContainsFunc(a.Tools.MCP, func(s spec.MCPServer) bool { return len(s.Command) > 0 })
}

// ServerReport describes an MCP server as [ConnectServers] found it.
type ServerReport struct {
	event.ToolServer
	// Problem is the reason why the server cannot be used; empty if it can.
	Problem string       `json:"problem,omitempty"`
	Offered []ToolReport `json:"offered"`
	// Refused lists the tools of the server that the file does not allow.
	Refused []string `json:"refused,omitempty"`
	// Different describes how the server differs from its pins.
	Different string `json:"different,omitempty"`
	// pins is the path of the file of its pins, and text is the current content for
	// that file.
	pins string
	text []byte
}

// Broken reports whether a run could not use the server.
func (r ServerReport) Broken() bool { return r.Problem != "" || r.Different != "" }

// ToolReport describes a tool of a server as a run would offer it.
type ToolReport struct {
	Name   string       `json:"name"`
	Effect event.Effect `json:"effect"`
	Risk   event.Risk   `json:"risk"`
	Labels event.Labels `json:"labels"`
	// Hints are the server's own hints about the tool. They have no effect unless the
	// file trusts the server.
	Hints string `json:"hints,omitempty"`
	// Tokens is the approximate number of tokens that the tool adds to each request.
	Tokens int `json:"tokens"`
}

// ConnectServers starts the MCP servers of a file, or of the agents in it, as a run
// would, and reports what each offers.
func ConnectServers(ctx context.Context, f File, o Options) (reports []ServerReport, warnings []string, err error) {
	agents, err := workers(f, o)
	for _, a := range agents {
		these, warned, wrong := o.connect(ctx, a)
		reports, warnings = append(reports, these...), append(warnings, warned...)
		if wrong != nil {
			return reports, warnings, wrong
		}
	}
	return reports, warnings, err
}

func (o Options) connect(ctx context.Context, a *spec.Agent) (reports []ServerReport, warnings []string, err error) {
	o.tree, o.Workspace, o.served = newTree(nil), absolute(o.Workspace), &served{}
	o.nested = nestedFor(a, o.Workspace, BuiltinTools())
	if o.confined, err = o.confine(a, ""); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, o.closeBox()) }()
	secrets, err := o.secretsOf(o.source, a)
	if err != nil {
		return nil, nil, err
	}
	redact := secret.NewRedactor(secrets...)
	o.served.log = programlog.New(secrets)
	for _, server := range a.Tools.MCP {
		r := ServerReport{ToolServer: event.ToolServer{Server: server.Server, URL: server.URL, Argv: server.Command}, Offered: []ToolReport{}, pins: a.PinsFile(server)}
		open, err := mcp.Connect(ctx, o.serverOptions(server, a, o.programs(a, rules(a, o)), secrets))
		if err != nil {
			r.Problem = redact.RedactString(err.Error())
			reports = append(reports, r)
			continue
		}
		tools := o.toolsOf(a, server, open)
		declare(tools, a.Tools)
		r.ToolServer = open.Pin()
		for _, t := range tools {
			r.Offered = append(r.Offered, reportOf(t, r.ToolServer))
		}
		for _, t := range r.Tools {
			if !a.Tools.OffersOfServer(server.Server + "." + t.Name) {
				r.Refused = append(r.Refused, server.Server+"."+t.Name)
			}
		}
		if err := checkPins(a, server, open); err != nil {
			r.Different = redact.RedactString(err.Error())
		}
		if r.pins != "" {
			text, err := spec.FormatPins(r.ToolServer)
			if err != nil {
				return reports, o.served.warnings, errors.Join(err, open.Close())
			}
			r.text = []byte(redact.RedactString(string(text)))
		}
		reports = append(reports, r)
		if err := open.Close(); err != nil {
			return reports, o.served.warnings, err
		}
	}
	return reports, o.served.warnings, nil
}

// PinServers starts the MCP servers of a file and writes the pins of one of them, or of
// all that have a pin file.
func PinServers(ctx context.Context, f File, o Options, only string) (written, warnings []string, err error) {
	reports, warnings, err := ConnectServers(ctx, f, o)
	if err != nil {
		return nil, warnings, err
	}
	for _, r := range reports {
		switch {
		case only != "" && r.Server != only:
			continue
		case r.Problem != "" && (only != "" || r.pins != ""):
			return written, warnings, errors.New(r.Problem)
		case r.pins == "" && only != "":
			return nil, warnings, fmt.Errorf("the server %s has no file for its pins; add 'pins: %s.pins.yaml' to it in %s", only, only, f.Path)
		case r.pins == "":
			continue
		}
		if err := os.WriteFile(r.pins, r.text, 0o644); err != nil {
			return written, warnings, err
		}
		written = append(written, fmt.Sprintf("%s: %d tools of %s", r.pins, len(r.Tools), r.Server))
	}
	if len(written) == 0 {
		return nil, warnings, fmt.Errorf("%s has no MCP server %s with a file for its pins; add 'pins: FILE' to the server", f.Path, only)
	}
	return written, warnings, nil
}

func reportOf(t tool.Tool, pin event.ToolServer) ToolReport {
	r := ToolReport{Name: t.Name, Effect: t.Effect, Risk: cmp.Or(t.Risk, event.RiskUnknown), Labels: *t.Labels}
	r.Tokens = assembly.Tokens(t)
	for _, p := range pin.Tools {
		if pin.Server+"."+p.Name == t.Name {
			r.Hints = strings.Join(mcp.Hints(p), ", ")
		}
	}
	return r
}
