package spec

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// MCPServer is an MCP server whose tools the model may call, as SERVER.TOOL.
type MCPServer struct {
	Server string `yaml:"server,omitempty"`
	// Command is the program of a server that the run starts, like that of a
	// [CommandTool]. URL is the address of any other, and Headers are added to each
	// request; ${secret:NAME} in one is replaced.
	Command []string          `yaml:"command,omitempty"`
	URL     string            `yaml:"url,omitempty"`
	Headers map[string]string `yaml:"headers,omitempty"`
	// OAuth is the login at such a server, nil for none.
	OAuth *OAuth `yaml:"oauth,omitempty"`
	// Env contains variables of the program, Secrets names of tools.secrets that it
	// gets as variables.
	Env     map[string]string `yaml:"env,omitempty"`
	Secrets []string          `yaml:"secrets,omitempty"`
	// Allow are patterns for the server's names of the tools that are offered, in
	// addition to those that tools.allow names.
	Allow []string `yaml:"allow,omitempty"`
	// Required refuses a run without the server; nil means true if the file names one
	// of its tools without a pattern.
	Required *bool `yaml:"required,omitempty"`
	// StartTimeout bounds the start, Timeout the time without an answer or progress of
	// a call, MaxTime a whole call.
	StartTimeout *Seconds `yaml:"start_timeout,omitempty"`
	Timeout      *Seconds `yaml:"timeout,omitempty"`
	MaxTime      *Seconds `yaml:"max_time,omitempty"`
	// Pins is a file, relative to the agent file, with the definitions that the server
	// must have when a run starts.
	Pins string `yaml:"pins,omitempty"`
	// TrustHints applies readOnlyHint and destructiveHint.
	TrustHints bool `yaml:"trust_hints,omitempty"`
	// Deferred sets whether requests omit the server's tools until a search finds them;
	// empty means auto.
	Deferred string `yaml:"deferred,omitempty" oneof:"auto always never"`
	// Sampling lets a model answer the server, nil if it cannot.
	Sampling *Sampling `yaml:"sampling,omitempty"`
	// shared reports that the server comes from tools.mcp_file.
	shared bool
}

// Defers reports whether requests may omit a tool, and whether they always do.
func (t *Tools) Defers(name string) (may, always bool) {
	for _, s := range t.MCP {
		if s.has(name) {
			return s.Deferred != "never", s.Deferred == "always"
		}
	}
	return false, false
}

// PinsFile returns the path of a server's pins, empty for a server without.
func (a *Agent) PinsFile(s MCPServer) string {
	if s.Pins == "" {
		return ""
	}
	return PathIn(a.Dir, s.Pins)
}

// ofServer reports whether a name, or a pattern, concerns tools of one of the servers.
func (t *Tools) ofServer(name string) bool {
	return slices.ContainsFunc(t.MCP, func(s MCPServer) bool { return s.has(name) })
}

func (s MCPServer) has(name string) bool {
	rest, ok := strings.CutPrefix(name, s.Server+".")
	return ok && rest != "" && s.Server != ""
}

// ServerAllows returns the patterns of the tools that servers allow.
func (t *Tools) ServerAllows() []string {
	var all []string
	for _, s := range t.MCP {
		for _, pattern := range s.Allow {
			all = append(all, s.Server+"."+pattern)
		}
	}
	return all
}

// OffersOfServer reports whether the file offers a tool of a server. Such a tool is
// offered only if the file allows it.
func (t *Tools) OffersOfServer(name string) bool {
	matches := func(pattern string) bool { return policy.MatchTool(pattern, name) }
	return t.ofServer(name) && (slices.ContainsFunc(t.Allow, matches) || slices.ContainsFunc(t.ServerAllows(), matches))
}

// ToolsOf returns the tools of a server that the file names without a pattern.
func (t *Tools) ToolsOf(s MCPServer) []string {
	var names []string
	for _, name := range slices.Concat(t.Allow, t.ServerAllows()) {
		if s.has(name) && !strings.Contains(name, "*") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Needs reports whether a run without the server is refused.
func (t *Tools) Needs(s MCPServer) bool {
	if s.Required != nil {
		return *s.Required
	}
	return len(t.ToolsOf(s)) > 0
}

// Named returns the file's setting for a tool by its name, or else by the longest
// pattern that matches.
func Named[V any](by map[string]V, name string) (v V, ok bool) {
	if v, ok = by[name]; ok {
		return v, true
	}
	best := ""
	for _, pattern := range slices.Sorted(maps.Keys(by)) {
		if len(pattern) > len(best) && policy.MatchTool(pattern, name) {
			best = pattern
		}
	}
	v, ok = by[best]
	return v, ok && best != ""
}

// serverName matches the valid names of servers.
var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// validateServers checks the servers. o.Tools are the tools without those of the file.
func (a *Agent) validateServers(r *decode.Report, o Options) {
	t := &a.Tools
	a.readServers(r)
	for i := range t.MCP {
		s, path := &t.MCP[i], fmt.Sprintf("tools.mcp[%d]", i)
		s.validateName(r, path+".server", t, i, o)
		s.validatePlace(r, path, a, o)
		s.validateOAuth(r, path+".oauth", t.Secrets)
		s.validateSampling(r, path+".sampling", a, o)
		for _, limit := range []struct {
			key   string
			value *Seconds
		}{{"start_timeout", s.StartTimeout}, {"timeout", s.Timeout}, {"max_time", s.MaxTime}} {
			if limit.value != nil {
				seconds := float64(*limit.value)
				decode.Within(r, path+"."+limit.key, &seconds, 0.001, 86_400)
			}
		}
		for j, name := range s.Secrets {
			at := fmt.Sprintf("%s.secrets[%d]", path, j)
			if declared, ok := t.Secrets[name]; !ok {
				r.At(at, "a name of tools.secrets", "%q is not one", name)
			} else if len(declared.Hosts) > 0 {
				r.At(at, "a secret without hosts", "the hosts of %s would not hold, because a program may send it anywhere", name)
			}
		}
		if len(t.ToolsOf(*s)) == 0 && len(s.Allow) == 0 && !slices.ContainsFunc(t.Allow, s.has) {
			r.Warn(path, "no tool of the server is offered, because neither its allow nor tools.allow names one")
		}
	}
}

func (s *MCPServer) validateName(r *decode.Report, path string, t *Tools, i int, o Options) {
	if s.Server == "" {
		decode.Missing(r, path, "the name with which the names of its tools begin")
		return
	}
	if !serverName.MatchString(s.Server) {
		r.At(path, "at most 40 letters, digits, _ and -", "%q is not a name of a server", s.Server)
		return
	}
	if slices.ContainsFunc(t.MCP[:i], func(other MCPServer) bool { return other.Server == s.Server }) {
		r.At(path, "each name once", "%q is given twice", s.Server)
	}
	for _, name := range slices.Concat(o.Tools, t.offered()) {
		if s.has(name) {
			r.At(path, "a name with which no other tool begins", "%q would collide with the tool %s", s.Server, name)
			return
		}
	}
}

// validatePlace checks the address or the program of the server.
func (s *MCPServer) validatePlace(r *decode.Report, path string, a *Agent, o Options) {
	switch {
	case len(s.Command) == 0 && s.URL == "":
		decode.Missing(r, path+".command", "the program of the server, or url with its address")
	case len(s.Command) > 0 && s.URL != "":
		r.At(path+".url", "command or url, one of the two", "both are given")
	case s.URL != "":
		if u, err := url.Parse(s.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			r.At(path+".url", "an address that begins with https:// or http://", "%q is not one", s.URL)
		}
		if len(s.Env) > 0 || len(s.Secrets) > 0 {
			r.At(path+".url", "headers with ${secret:NAME}", "a server that is not started has no environment")
		}
	case o.CheckProgram != nil:
		err := o.CheckProgram(a.Dir, s.Command)
		if err != nil && !a.Tools.Needs(*s) {
			r.Warn(path+".command", "%v; a run would not have the tools of the server", err)
		} else if err != nil {
			r.At(path+".command", "a program that can be run; ./FILE is relative to the agent file, other paths to the workspace", "%v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !secret.ValidName(name) {
			r.At(decode.Join(path+".env", name), "letters, digits and _", "%q is not a name of a variable", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		for _, used := range secretsIn(s.Headers[name]) {
			if declared, ok := a.Tools.Secrets[used]; !ok {
				r.At(decode.Join(path+".headers", name), "a name of tools.secrets", "%q is not one", used)
			} else if u, err := url.Parse(s.URL); err == nil && len(declared.Hosts) > 0 && !slices.Contains(declared.Hosts, u.Hostname()) {
				r.At(decode.Join(path+".headers", name), "a secret that may go to "+u.Hostname(), "%s may not", used)
			}
		}
	}
}

var secretReference = regexp.MustCompile(`\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}`)

// secretsIn returns the names of the secrets in a header.
func secretsIn(text string) []string {
	var names []string
	for _, found := range secretReference.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// HeadersWith returns the headers of the server with its secrets.
func (s MCPServer) HeadersWith(value func(name string) string) map[string]string {
	filled := map[string]string{}
	for name, text := range s.Headers {
		filled[name] = secretReference.ReplaceAllStringFunc(text, func(ref string) string {
			return value(secretReference.FindStringSubmatch(ref)[1])
		})
	}
	return filled
}

// serverHasSecret reports whether one of the servers has a secret.
func (t *Tools) serverHasSecret(name string) bool {
	return slices.ContainsFunc(t.MCP, func(s MCPServer) bool {
		for _, text := range s.Headers {
			if slices.Contains(secretsIn(text), name) {
				return true
			}
		}
		return slices.Contains(s.Secrets, name) || s.OAuth.Secret() == name
	})
}

// Sampling lets an MCP server ask for the answers of a model.
type Sampling struct {
	// ModelRole selects one of the models of the roles; empty is the agent's own.
	ModelRole string `yaml:"model_role,omitempty" oneof:"architect editor subagent"`
	// USD is the limit on what all answers to the server may cost in a run.
	USD *float64 `yaml:"usd,omitempty"`
}

// validateSampling checks what a model may answer.
func (s *MCPServer) validateSampling(r *decode.Report, path string, a *Agent, o Options) {
	p := s.Sampling
	if p == nil {
		return
	}
	if p.USD == nil {
		decode.Missing(r, path+".usd", "the limit on what the answers may cost in a run, in US dollars")
	}
	decode.Money(r, path+".usd", p.USD)
	m, known := a.ModelPolicy.Roles.of(p.ModelRole)
	if known && m == (Model{}) && o.Roles[p.ModelRole] == "" {
		r.At(path+".model_role", "a role with a model in model_policy.roles", "%q has no model there", p.ModelRole)
	}
	if name := cmp.Or(m.Model, o.Roles[p.ModelRole]); name != "" && o.Model == "" && o.Unpriced != nil && o.Unpriced(a.Dir, name) {
		r.Warn(path+".usd", "no price is known for %s, so it answers nothing under this limit; set its price in the config file", name)
	}
}

// Sampler returns the agent that answers a server: it has a model, and no tools. role
// returns the model of a role that the file does not name.
func (a *Agent) Sampler(s MCPServer, role func(string) string) *Agent {
	of := a.withoutTools("", "A program that the owner of this run uses asks for your answer. What it asks, and its own instructions for you, are the text below: "+
		"answer that, and write nothing but the answer. You have no tools.")
	of.Identity.Name, of.File, of.Tools.Secrets = SamplerName(s.Server), SourceOf(a.File).Of(SamplerName(s.Server)).String(), a.Tools.Secrets
	if m, known := of.ModelPolicy.Roles.of(s.Sampling.ModelRole); known {
		if m == (Model{}) {
			m.Model = role(s.Sampling.ModelRole)
		}
		of.ModelPolicy.Primary, of.ModelPolicy.Fallbacks = m, nil
		of.ModelPolicy.Roles, of.ModelPolicy.Role, of.Role = Roles{}, "", ""
	}
	one := 1
	of.MaxCycles = &one
	return of
}

// SamplerName returns the name of the agent that answers a server.
func SamplerName(server string) string { return server + ".sampling" }
