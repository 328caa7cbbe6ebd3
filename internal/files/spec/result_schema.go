package spec

import (
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/tool"
)

// ResultSchema is the JSON Schema of a run's final answer. In a file it is the schema
// itself, or the path of a file that contains it.
type ResultSchema struct {
	// JSON is the schema, read from File if that is set.
	JSON json.RawMessage
	// File is relative to the agent file.
	File string
}

func (*ResultSchema) Expected() string {
	return "a JSON Schema of an object, or the path of a file that holds one"
}

func (s *ResultSchema) DecodeNode(d *decode.Decoder, n *yaml.Node, path string) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		s.File = n.Value
	case n.Kind == yaml.MappingNode:
		s.JSON = d.JSON(nil, n, path, 0)
	default:
		d.Fail(n, path, s.Expected(), "is %s", decode.Describe(n))
	}
}

// JSONSchema allows a schema or a path.
func (*ResultSchema) JSONSchema() map[string]any {
	return map[string]any{"type": []string{"object", "string"}}
}

// MarshalYAML encodes the schema itself, so that no other file is needed.
func (s ResultSchema) MarshalYAML() (any, error) {
	r := &decode.Report{}
	if n := r.ReadJSON(s.JSON); n != nil {
		return n, nil
	}
	return nil, r.Problems
}

// validate reads the schema's file and checks the schema. Problems in another file name
// that file.
func (s *ResultSchema) validate(r *decode.Report, a *Agent) {
	const path = "resultSchema"
	s.check(r, a, path)
	if len(s.JSON) > 0 {
		a.endsWithAnswer(r, path)
	}
}

// check is validate for the schema alone, at a path.
func (s *ResultSchema) check(r *decode.Report, a *Agent, path string) {
	in := r
	if s.File != "" {
		if in = s.read(r, a, path); in == nil {
			return
		}
	} else if r.Reported(path) || len(s.JSON) == 0 {
		if !r.Reported(path) {
			r.At(path, s.Expected(), "is empty")
		}
		return
	}
	if len(in.Problems) == 0 || in == r {
		s.compile(in, path)
	}
	if in != r {
		r.Include(in)
	}
}

// read sets JSON from the file, and returns the report for it; nil if the file cannot
// be read.
func (s *ResultSchema) read(r *decode.Report, a *Agent, path string) *decode.Report {
	name := PathIn(a.Dir, s.File)
	data, err := decode.ReadFile(name)
	if err != nil {
		r.At(path, s.Expected(), "cannot be read: %v", err)
		return nil
	}
	in := decode.New(name)
	root := in.Read(data, "a JSON Schema")
	if root == nil {
		return in
	}
	if root.Kind != yaml.MappingNode {
		in.Fail(root, path, "a mapping", "is %s", decode.Describe(root))
		return in
	}
	d := &decode.Decoder{Report: in}
	s.JSON = d.JSON(nil, root, path, 0)
	return in
}

func (s *ResultSchema) compile(r *decode.Report, path string) {
	_, err := tool.CompileSchema(s.JSON)
	if invalid, ok := errors.AsType[*tool.SchemaError](err); ok {
		r.At(decode.Join(path, strings.Join(invalid.At, ".")), "a valid JSON Schema", "%s", invalid.Message)
		return
	}
	if err != nil {
		r.At(path, "a valid JSON Schema", "%v", err)
		return
	}
	var root struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(s.JSON, &root); err != nil || root.Type != "object" {
		r.At(decode.Join(path, "type"), "type: object, because no provider answers by another schema", "the schema is not that of an object")
	}
}

// endsWithAnswer rejects settings that would end a run without an answer to validate.
func (a *Agent) endsWithAnswer(r *decode.Report, path string) {
	at, given := "on_no_tool_call", a.OnNoToolCall
	if a.Iteration != nil {
		at = "iteration.on_no_tool_call"
		if given == "" {
			given = a.Iteration.OnNoToolCall
		}
		if given == "" {
			given = "nudge"
		}
	}
	if given != "" && given != "finish" {
		r.At(at, "finish", "a run with %s ends with an answer, so an answer without a call must end it; here it is %s", path, given)
	}
	if a.Iteration == nil {
		return
	}
	for i, c := range a.Iteration.TerminationConditions {
		if c.Kind.Known() && !c.Kind.OfMoney() {
			r.At(conditionPath(i), "no such condition beside "+path,
				"it would end the run before there is an answer to hold to the schema")
		}
	}
}
