package llm

import (
	"bytes"
	"encoding/json"
)

// CallTool is the tool through which a model calls a tool that its requests do not
// list. Its arguments are the name of that tool and its arguments.
const CallTool = "tool.call"

type indirect struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// Inner returns the call that a call of [CallTool] contains. It reports whether the
// arguments are valid; models also write the inner ones as a string.
func (c ToolCall) Inner() (inner ToolCall, ok bool) {
	if c.Name != CallTool {
		return c, false
	}
	var asked indirect
	dec := json.NewDecoder(bytes.NewReader(c.Args))
	dec.DisallowUnknownFields()
	if dec.Decode(&asked) != nil || asked.Tool == "" || asked.Tool == CallTool {
		return c, false
	}
	var text string
	if json.Unmarshal(asked.Args, &text) == nil && text != "" {
		asked.Args = json.RawMessage(text)
	}
	if string(asked.Args) == "null" || len(asked.Args) == 0 {
		asked.Args = json.RawMessage("{}")
	}
	if !json.Valid(asked.Args) || bytes.TrimSpace(asked.Args)[0] != '{' {
		return c, false
	}
	c.Name, c.Args, c.ArgsText = asked.Tool, asked.Args, ""
	return c, true
}

// Outer returns the arguments of a call as the model made it, for a tool with the name
// as: those of c itself, or those of the call of [CallTool] that contains c.
func (c ToolCall) Outer(as string) json.RawMessage {
	if as != CallTool || c.Name == as || c.Name == "" || len(c.Args) == 0 {
		return c.Args
	}
	name, err := json.Marshal(c.Name)
	if err != nil {
		return c.Args
	}
	return bytes.Join([][]byte{[]byte(`{"tool":`), name, []byte(`,"args":`), c.Args, []byte("}")}, nil)
}
