package mcpserver

import (
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/internal/server"
)

// toolName matches valid names of tools.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// offer is a file that is offered as a tool.
type offer struct {
	server.Runnable
	tool *mcp.Tool
	// task is the name of the argument for the run's input.
	task string
}

// refresh reads the files again before tools are listed or called, so that the tools
// match the current files.
func (s *Server) refresh(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "tools/list" || method == "tools/call" {
			if err := s.load(); err != nil {
				return nil, err
			}
		}
		return next(ctx, method, req)
	}
}

// load offers each runnable file as a tool. If a file cannot be offered, each reason is
// logged once.
func (s *Server) load() error {
	files, err := s.Options.Server.Runnables()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, refused := map[string]*offer{}, map[string]string{}
	for _, f := range files {
		o := offered(f)
		switch _, taken := now[o.tool.Name]; {
		case f.Problem != "":
			refused[f.File] = f.Problem
		case !toolName.MatchString(o.tool.Name):
			refused[f.File] = "its name is " + o.tool.Name + "; the name of a tool has letters, digits, _ - . and at most 128 of them"
		case taken:
			refused[f.File] = "another file has the name " + o.tool.Name + " already"
		default:
			now[o.tool.Name] = o
		}
	}
	for file, why := range refused {
		if s.refused[file] != why {
			s.Log.Warn("a file is not offered as a tool", "file", file, "reason", why)
		}
	}
	s.refused = refused
	var gone []string
	for name := range s.tools {
		if now[name] == nil {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		s.protocol.RemoveTools(gone...)
	}
	for name, o := range now {
		if was := s.tools[name]; was == nil || !reflect.DeepEqual(was.tool, o.tool) {
			s.protocol.AddTool(o.tool, s.call)
		}
	}
	s.tools = now
	return nil
}

// offerOf returns the file of a tool.
func (s *Server) offerOf(tool string) *offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[tool]
}

// property is a property of an input schema.
type property struct {
	Type        string `json:"type"`
	Description string `json:"description"`
}

// offered makes the tool of a file. Its arguments are the task and the variables of the
// file's prompt.
func offered(r server.Runnable) *offer {
	o := &offer{Runnable: r, task: "task"}
	vars := slices.Concat(r.Vars, r.TaskVars)
	for slices.Contains(vars, o.task) {
		o.task = "_" + o.task
	}
	about := "What to do."
	if r.InputOptional {
		about = "What to do; without it, what the file says."
	}
	properties, required := map[string]property{o.task: {"string", about}}, slices.Clone(r.Vars)
	for _, name := range vars {
		properties[name] = property{"string", "The value of ${" + name + "} in the prompt."}
	}
	if !r.InputOptional {
		required = append([]string{o.task}, required...)
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	changes := !r.ReadOnly
	o.tool = &mcp.Tool{
		Name: r.Name, Description: description(r), InputSchema: schema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: r.ReadOnly, DestructiveHint: &changes},
	}
	var result map[string]any
	if json.Unmarshal(r.Result, &result) == nil && result["type"] == "object" {
		o.tool.OutputSchema = result
	}
	return o
}

// description returns the description of a tool.
func description(r server.Runnable) string {
	kind := strings.ToLower(r.Kind)
	if r.Description == "" {
		return "Runs the " + kind + " " + r.Name + "."
	}
	return r.Description
}
