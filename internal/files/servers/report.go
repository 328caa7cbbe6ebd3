package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/assembly"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/programlog"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/mcp"
)

// Report describes an MCP server as [Describe] found it.
type Report struct {
	event.ToolServer
	// Problem is the reason why the server cannot be used; empty if it can.
	Problem string       `json:"problem,omitempty"`
	Offered []ToolReport `json:"offered"`
	// Refused lists the tools of the server that the file does not allow.
	Refused []string `json:"refused,omitempty"`
	// Sampling describes which model answers the server, empty for none.
	Sampling string `json:"sampling,omitempty"`
	// Different describes how the server differs from its pins.
	Different string `json:"different,omitempty"`
	// pins is the path of the file of its pins, and text is the current content for
	// that file.
	pins string
	text []byte
}

// Broken reports whether a run could not use the server.
func (r Report) Broken() bool { return r.Problem != "" || r.Different != "" }

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

// Describe starts the MCP servers of an agent's file one after the other and reports
// the tools of each. declare applies the file's own declarations to tools.
func Describe(ctx context.Context, a *spec.Agent, h Host, declare func([]tool.Tool)) (reports []Report, warnings []string, err error) {
	s := &Servers{log: programlog.New(h.Secrets)}
	redact := secret.NewRedactor(h.Secrets...)
	for _, server := range a.Tools.MCP {
		r := Report{ToolServer: event.ToolServer{Server: server.Server, URL: server.URL, Argv: server.Command}, Offered: []ToolReport{}, pins: a.PinsFile(server)}
		open, err := mcp.Connect(ctx, s.options(server, a, h))
		if err != nil {
			r.Problem = redact.RedactString(err.Error())
			reports = append(reports, r)
			continue
		}
		tools := s.toolsOf(a, server, open)
		declare(tools)
		r.ToolServer = open.Pin()
		for _, t := range tools {
			r.Offered = append(r.Offered, reportOf(t, r.ToolServer))
		}
		for _, t := range r.Tools {
			if !a.Tools.OffersOfServer(server.Server + "." + t.Name) {
				r.Refused = append(r.Refused, server.Server+"."+t.Name)
			}
		}
		if s := h.sampling(a, server); s != nil {
			r.Sampling = fmt.Sprintf("%s, for up to USD %g in a run, after a person has allowed it", cmp.Or(s.Model, "the model of the run"), s.USD)
		}
		if err := checkPins(a, server, open); err != nil {
			r.Different = redact.RedactString(err.Error())
		}
		if r.pins != "" {
			text, err := spec.FormatPins(r.ToolServer)
			if err != nil {
				return reports, s.warnings, errors.Join(err, open.Close())
			}
			r.text = []byte(redact.RedactString(string(text)))
		}
		reports = append(reports, r)
		if err := open.Close(); err != nil {
			return reports, s.warnings, err
		}
	}
	return reports, s.warnings, nil
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

// WritePins writes the pins of one server of the file at path, or of all that have a
// pin file if only is empty.
func WritePins(reports []Report, path, only string) (written []string, err error) {
	for _, r := range reports {
		switch {
		case only != "" && r.Server != only:
			continue
		case r.Problem != "" && (only != "" || r.pins != ""):
			return written, errors.New(r.Problem)
		case r.pins == "" && only != "":
			return nil, fmt.Errorf("the server %s has no file for its pins; add 'pins: %s.pins.yaml' to it in %s", only, only, path)
		case r.pins == "":
			continue
		}
		if err := os.WriteFile(r.pins, r.text, 0o644); err != nil {
			return written, err
		}
		written = append(written, fmt.Sprintf("%s: %d tools of %s", r.pins, len(r.Tools), r.Server))
	}
	if len(written) == 0 {
		return nil, fmt.Errorf("%s has no MCP server %s with a file for its pins; add 'pins: FILE' to the server", path, only)
	}
	return written, nil
}
