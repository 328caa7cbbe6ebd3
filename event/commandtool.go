package event

import "encoding/json"

// CommandTool is a program that a run offers as a tool, as it was when the run began.
type CommandTool struct {
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	// Schema is the schema of the arguments; absent if there are none.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Files are the program and its scripts, as far as this user can change them. A
	// call is refused if one of them has changed.
	Files []CommandFile `json:"files,omitempty"`
}

// CommandFile is the content of a file when the run began.
type CommandFile struct {
	Path string `json:"path"`
	// Digest is "sha256:" and the hex digest; empty if there was no file.
	Digest string `json:"digest,omitempty"`
}
