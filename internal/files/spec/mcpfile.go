package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/decode"
)

// maxMCPFile bounds a file of MCP servers.
const maxMCPFile = 1 << 20

// clientServers are the MCP servers in the file that MCP clients share, .mcp.json.
type clientServers struct {
	Servers map[string]clientServer `json:"mcpServers"`
}

type clientServer struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// readServers adds the servers of tools.mcp_file to those of the file.
func (a *Agent) readServers(r *decode.Report) {
	const at = "tools.mcp_file"
	t := &a.Tools
	// The agent may have been validated before.
	t.MCP = slices.DeleteFunc(t.MCP, func(s MCPServer) bool { return s.shared })
	if t.MCPFile == "" {
		return
	}
	text, err := decode.ReadUpTo(PathIn(a.Dir, t.MCPFile), maxMCPFile)
	if err != nil {
		r.At(at, "a file like .mcp.json, relative to the agent file", "%v", err)
		return
	}
	var file clientServers
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(&file); err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is something behind the object")
		}
	}
	if err != nil {
		r.At(at, "a file with {mcpServers: {NAME: {command, args, env} or {type, url, headers}}}", "%s: %v", t.MCPFile, err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s, err := file.Servers[name].server(name, t.Secrets)
		if err != nil {
			r.At(at, "a server that Pawl can use", "the server %s of %s: %v", name, t.MCPFile, err)
			continue
		}
		t.MCP = append(t.MCP, s)
	}
}

// server converts a server of a shared file to one of an agent file. Variables in its
// texts must be secrets of the agent file.
func (c clientServer) server(name string, secrets Secrets) (MCPServer, error) {
	s := MCPServer{Server: name, URL: c.URL, shared: true}
	switch c.Type {
	case "", "stdio", "http", "streamable-http":
	default:
		return s, fmt.Errorf("its type is %q, which is not spoken; it can be stdio or http", c.Type)
	}
	if c.Command != "" {
		s.Command = append([]string{c.Command}, c.Args...)
	}
	for _, word := range append(slices.Clone(s.Command), c.URL) {
		if found := envReference.FindString(word); found != "" {
			return s, fmt.Errorf("%s in %q is not expanded", found, word)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Env)) {
		switch value := c.Env[key]; {
		case value == "${"+key+"}" && secrets.has(key):
			s.Secrets = append(s.Secrets, key)
		case envReference.MatchString(value):
			return s, fmt.Errorf("the variable %s is %s, which is not expanded; as {%s: \"${%s}\"} with a secret %s in tools.secrets it is", key, value, key, key, key)
		default:
			s.Env = with(s.Env, key, value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.Headers)) {
		var err error
		value := envReference.ReplaceAllStringFunc(c.Headers[key], func(ref string) string {
			secret := envReference.FindStringSubmatch(ref)[1]
			if !secrets.has(secret) {
				err = fmt.Errorf("the header %s has %s, which is not expanded; a secret %s in tools.secrets is", key, ref, secret)
			}
			return "${secret:" + secret + "}"
		})
		if err != nil {
			return s, err
		}
		s.Headers = with(s.Headers, key, value)
	}
	return s, nil
}

// envReference matches a reference to a variable of the environment.
var envReference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}`)

func (s Secrets) has(name string) bool {
	_, ok := s[name]
	return ok
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// pinnedServer is a server in a file of pins. It does not contain settings of the agent
// file, so that the pins are the same on every machine.
type pinnedServer struct {
	Server   string       `yaml:"server"`
	Name     string       `yaml:"name,omitempty"`
	Version  string       `yaml:"version,omitempty"`
	Protocol string       `yaml:"protocol,omitempty"`
	Tools    []pinnedTool `yaml:"tools"`
}

// pinnedTool has its definition as JSON text.
type pinnedTool struct {
	Name       string `yaml:"name"`
	Digest     string `yaml:"digest"`
	Definition string `yaml:"definition"`
}

// FormatPins returns the pins of a server as a file.
func FormatPins(s event.ToolServer) ([]byte, error) {
	p := pinnedServer{Server: s.Server, Name: s.Name, Version: s.Version, Protocol: s.Protocol, Tools: []pinnedTool{}}
	for _, t := range s.Tools {
		var text bytes.Buffer
		if err := json.Indent(&text, t.Definition, "", "  "); err != nil {
			return nil, fmt.Errorf("the definition of %s: %w", t.Name, err)
		}
		p.Tools = append(p.Tools, pinnedTool{Name: t.Name, Digest: t.Digest, Definition: text.String() + "\n"})
	}
	text, err := yaml.Marshal(p)
	return append([]byte("# What the MCP server was when 'pawl mcp pin' wrote this. A run that finds it different does not start.\n"), text...), err
}

// ParsePins parses a file of pins.
func ParsePins(text []byte) (event.ToolServer, error) {
	var p pinnedServer
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&p); err != nil {
		return event.ToolServer{}, err
	}
	s := event.ToolServer{Server: p.Server, Name: p.Name, Version: p.Version, Protocol: p.Protocol}
	for _, t := range p.Tools {
		var definition bytes.Buffer
		if err := json.Compact(&definition, []byte(t.Definition)); err != nil {
			return s, fmt.Errorf("the definition of %s: %w", t.Name, err)
		}
		s.Tools = append(s.Tools, event.ServerTool{Name: t.Name, Digest: t.Digest, Definition: definition.Bytes()})
	}
	return s, nil
}
