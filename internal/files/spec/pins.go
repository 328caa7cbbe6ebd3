package spec

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/event"
)

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
