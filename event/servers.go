package event

import "encoding/json"

// ToolServer is an MCP server of a run as it was when the run began.
type ToolServer struct {
	// Server is the owner's name for it, which begins the names of its tools. Name,
	// Version and Protocol are from the server.
	Server   string `json:"server"`
	Name     string `json:"name,omitempty"`
	Version  string `json:"version,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	// Argv is the program of a server that the run starts, URL the address of any
	// other.
	Argv []string `json:"argv,omitempty"`
	URL  string   `json:"url,omitempty"`
	// Tools are all tools that the server listed, by name.
	Tools []ServerTool `json:"tools"`
}

// ServerTool is a tool of a [ToolServer].
type ServerTool struct {
	Name string `json:"name"`
	// Digest is the SHA-256 of Definition, which is canonical JSON: the name, the
	// description, the schemas of input and output, and the hints.
	Digest     string          `json:"digest"`
	Definition json.RawMessage `json:"definition"`
}

// ServerChanged records which tools of an MCP server differ from those when the run
// began. Without any tool the server is unchanged again.
type ServerChanged struct {
	Server string        `json:"server"`
	Tools  []ChangedTool `json:"tools"`
}

// ChangedTool is a tool of a server that changed or is gone.
type ChangedTool struct {
	Name string `json:"name"`
	// Digest is the digest of its current definition, absent if the tool is gone.
	Digest string `json:"digest,omitempty"`
	// Change is the difference in words.
	Change string `json:"change"`
}

func (ServerChanged) EventType() Type { return "mcp.changed" }
