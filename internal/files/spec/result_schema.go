package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/tool"
)

// ResultSchema is the JSON Schema that a run's final answer must match. In a
// file it is the schema itself, or the path of a file that holds it.
type ResultSchema struct {
	// JSON is the schema, read from File where it has one.
	JSON json.RawMessage
	// File is relative to the agent file.
	File string
}

func (*ResultSchema) expected() string {
	return "a JSON Schema of an object, or the path of a file that holds one"
}

func (s *ResultSchema) decodeNode(d *decoder, n *yaml.Node, path string) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		s.File = n.Value
	case n.Kind == yaml.MappingNode:
		s.JSON = d.json(nil, n, path, 0)
	default:
		d.fail(n, path, s.expected(), "is %s", describe(n))
	}
}

// JSONSchema is a schema or a path.
func (*ResultSchema) JSONSchema() map[string]any {
	return map[string]any{"type": []string{"object", "string"}}
}

// MarshalYAML writes the schema itself, so that no other file is needed.
func (s ResultSchema) MarshalYAML() (any, error) {
	r := &report{}
	if n := r.readJSON(s.JSON); n != nil {
		return n, nil
	}
	return nil, r.problems
}

// validate reads the schema's file and checks the schema. Problems in another file
// name that file.
func (s *ResultSchema) validate(r *report, a *Agent) {
	const path = "resultSchema"
	s.check(r, a, path)
	if len(s.JSON) > 0 {
		a.endsWithAnswer(r, path)
	}
}

// check is validate for the schema alone, which stands at a path.
func (s *ResultSchema) check(r *report, a *Agent, path string) {
	in := r
	if s.File != "" {
		if in = s.read(r, a, path); in == nil {
			return
		}
	} else if r.reported(path) || len(s.JSON) == 0 {
		if !r.reported(path) {
			r.at(path, s.expected(), "is empty")
		}
		return
	}
	if len(in.problems) == 0 || in == r {
		s.compile(in, path)
	}
	if in != r {
		r.problems = append(r.problems, in.problems...)
		r.more += in.more
	}
}

// read fills JSON from the file, and returns the report about it; nil when it
// cannot be read.
func (s *ResultSchema) read(r *report, a *Agent, path string) *report {
	name := pathIn(a.Dir, s.File)
	data, err := readFile(name)
	if err != nil {
		r.at(path, s.expected(), "cannot be read: %v", err)
		return nil
	}
	in := newReport(name)
	root := in.read(data, "a JSON Schema")
	if root == nil {
		return in
	}
	if root.Kind != yaml.MappingNode {
		in.fail(root, path, "a mapping", "is %s", describe(root))
		return in
	}
	d := &decoder{report: in}
	s.JSON = d.json(nil, root, path, 0)
	return in
}

func (s *ResultSchema) compile(r *report, path string) {
	_, err := tool.CompileSchema(s.JSON)
	if invalid, ok := errors.AsType[*tool.SchemaError](err); ok {
		r.at(join(path, strings.Join(invalid.At, ".")), "a valid JSON Schema", "%s", invalid.Message)
		return
	}
	if err != nil {
		r.at(path, "a valid JSON Schema", "%v", err)
		return
	}
	var root struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(s.JSON, &root); err != nil || root.Type != "object" {
		r.at(join(path, "type"), "type: object, because no provider answers by another schema", "the schema is not that of an object")
	}
}

// endsWithAnswer refuses what would end a run of the agent without an answer
// that could be held to the schema.
func (a *Agent) endsWithAnswer(r *report, path string) {
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
		r.at(at, "finish", "a run with %s ends with an answer, so an answer without a call must end it; here it is %s", path, given)
	}
	if a.Iteration == nil {
		return
	}
	for i, c := range a.Iteration.TerminationConditions {
		if c.Kind.Known() && !c.Kind.OfMoney() {
			r.at(conditionPath(i), "no such condition beside "+path,
				"it would end the run before there is an answer to hold to the schema")
		}
	}
}

// json renders a tree as JSON in the order of its keys, which is the order in
// which models fill a schema, and remembers where everything stands.
func (d *decoder) json(b []byte, n *yaml.Node, path string, depth int) []byte {
	if d.exhausted(n, path) {
		return append(b, "null"...)
	}
	d.places[path] = n
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if depth > maxDepth {
		d.fail(n, path, "", "values are nested more than %d deep", maxDepth)
		return append(b, "null"...)
	}
	switch n.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for i, p := range d.pairs(n, path) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, p.key.Value), ':')
			b = d.json(b, p.value, join(path, p.key.Value), depth+1)
		}
		return append(b, '}')
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, item := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = d.json(b, item, join(path, strconv.Itoa(i)), depth+1)
		}
		return append(b, ']')
	}
	return d.scalarJSON(b, n, path)
}

func (d *decoder) scalarJSON(b []byte, n *yaml.Node, path string) []byte {
	switch n.Tag {
	case "!!null":
		return append(b, "null"...)
	case "!!bool":
		return strconv.AppendBool(b, strings.EqualFold(n.Value, "true"))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return append(b, n.Value...)
		}
		if i, ok := wholeNumber(n); ok {
			return strconv.AppendInt(b, i, 10)
		}
		if f, ok := number(n); ok {
			return strconv.AppendFloat(b, f, 'g', -1, 64)
		}
		d.fail(n, path, "a number that JSON has", "is %s", n.Value)
		return append(b, "null"...)
	}
	return appendJSON(b, n.Value)
}

// appendJSON appends a text, with "<", ">" and "&" as they are.
func appendJSON(b []byte, text string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	// A string cannot fail to be encoded.
	_ = enc.Encode(text)
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
