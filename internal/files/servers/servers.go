// Package servers starts the MCP servers that an agent's file names: it compares them
// with their pins, logs in at them, and gives a run their tools.
package servers

import (
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
	"github.com/pawlrun/pawl/hook/command"
	"github.com/pawlrun/pawl/internal/engine/holder"
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

// Host is the place where the servers of a run start.
type Host struct {
	Workspace string
	// Shell has the options with which programs run.
	Shell   shell.Options
	Secrets []secret.Secret
	// Learn receives the tokens of logins; it may be nil.
	Learn func(token string)
	// Answers returns the name of the model that answers a server's requests.
	Answers func(a *spec.Agent, server spec.MCPServer) string
}

// Servers holds the MCP servers of a run that is being prepared. The servers of a new
// run are started; a resumed run has pins, and its servers are contacted when they are
// first used.
type Servers struct {
	began bool
	pins  []event.ToolServer
	// log receives the error output of the servers, and the warnings that arise after
	// the run's first event.
	log *programlog.Log

	mu       sync.Mutex
	warnings []string
	pinned   bool
}

// Resumed returns the servers that a resumed run began with.
func Resumed(pins []event.ToolServer) *Servers { return &Servers{began: true, pins: pins} }

// Pins returns what the run's first event says about its servers.
func (s *Servers) Pins() []event.ToolServer { return s.pins }

func (s *Servers) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.began || s.pinned:
		s.log.Line("pawl", text)
	case !slices.Contains(s.warnings, text):
		s.warnings = append(s.warnings, text)
	}
}

// Warnings returns the warnings for the run's first event. Later ones are logged.
func (s *Servers) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pinned = true
	return s.warnings
}

// pin returns the pin of a server, nil for a server that was absent when the run began.
func (s *Servers) pin(name string) *event.ToolServer {
	for i := range s.pins {
		if s.pins[i].Server == name {
			return &s.pins[i]
		}
	}
	return nil
}

// Open starts all MCP servers of a file concurrently, or prepares the ones that a
// resumed run began with. Only tools that the file offers are returned. A nil s opens
// none.
func (s *Servers) Open(a *spec.Agent, h Host) (tools []tool.Tool, closeAll func() error, err error) {
	none := func() error { return nil }
	if s == nil || len(a.Tools.MCP) == 0 {
		return nil, none, nil
	}
	s.log = programlog.New(h.Secrets)
	open := make([]*mcp.Server, len(a.Tools.MCP))
	problems := make([]error, len(a.Tools.MCP))
	var starting sync.WaitGroup
	for i, server := range a.Tools.MCP {
		options := s.options(server, a, h)
		if s.began {
			if pin := s.pin(server.Server); pin != nil {
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
		s.log.Close()
		return nil
	}
	redact := secret.NewRedactor(h.Secrets...)
	for i, server := range a.Tools.MCP {
		switch {
		case problems[i] == nil:
		case a.Tools.Needs(server):
			return nil, none, errors.Join(fmt.Errorf("%w: %s", ErrServer, redact.RedactString(problems[i].Error())), closeAll())
		default:
			s.warn(redact.RedactString(problems[i].Error()) + "; its tools are absent")
		}
		if err := checkPins(a, server, open[i]); err != nil && !s.began {
			return nil, none, errors.Join(fmt.Errorf("%w: %s", ErrPins, redact.RedactString(err.Error())), closeAll())
		}
		if open[i] != nil {
			tools = append(tools, s.toolsOf(a, server, open[i])...)
		}
	}
	return tools, closeAll, nil
}

// Log returns a function that opens the log of the run's servers once the run has an
// id; nil for a run without servers. path returns the file of a run's log; it may be
// nil.
func (s *Servers) Log(path func(run string) string) func(run string) {
	if s == nil || s.log == nil {
		return nil
	}
	return func(run string) {
		file := ""
		if path != nil {
			file = path(run)
		}
		s.log.Open(file)
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
func (s *Servers) toolsOf(a *spec.Agent, server spec.MCPServer, open *mcp.Server) []tool.Tool {
	if !s.began {
		s.pins = append(s.pins, open.Pin())
	}
	var offered []tool.Tool
	for _, t := range open.Tools() {
		if a.Tools.OffersOfServer(t.Name) {
			offered = append(offered, t)
		}
	}
	for _, name := range a.Tools.ToolsOf(server) {
		if !slices.ContainsFunc(offered, func(t tool.Tool) bool { return t.Name == name }) {
			s.warn("tools.allow names " + name + ", which the MCP server " + server.Server + " does not offer")
		}
	}
	return offered
}

// options converts a server of a file to the options of package mcp.
func (s *Servers) options(server spec.MCPServer, a *spec.Agent, h Host) mcp.Options {
	value := func(name string) string {
		for _, s := range h.Secrets {
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
		Server: server.Server, Shell: h.Shell, URL: server.URL, Headers: server.HeadersWith(value), TrustHints: server.TrustHints, Warn: s.warn,
		Sampling: h.sampling(a, server), Login: loginOf(server, a, value, h.Learn), Unauthorized: unauthorized(server, a),
		Log:          func(line string) { s.log.Line(server.Server, line) },
		StartTimeout: seconds(server.StartTimeout), Timeout: seconds(server.Timeout), MaxTime: seconds(server.MaxTime),
	}
	if p := a.Tools.Permissions; h.Workspace != "" && (p == nil || p.Filesystem != string(policy.FilesystemNone)) {
		m.Roots = []string{h.Workspace}
	}
	if len(server.Command) > 0 {
		m.Command = command.Command{Words: server.Command, FileDir: spec.Absolute(a.Dir), Workspace: spec.Absolute(h.Workspace)}.Argv()
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

// Programs reports whether a file has MCP servers that are programs.
func Programs(a *spec.Agent) bool {
	return slices.ContainsFunc(a.Tools.MCP, func(s spec.MCPServer) bool { return len(s.Command) > 0 })
}
