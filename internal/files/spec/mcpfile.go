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
