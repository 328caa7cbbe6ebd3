package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxDepth bounds the nesting of a JSON file.
const maxDepth = 100

// jsonReader builds the tree of a JSON file. YAML would read most of JSON, but
// not its surrogate escapes, and it would accept what JSON forbids.
type jsonReader struct {
	data   []byte
	dec    *json.Decoder
	places places
}

func (r *report) readJSON(data []byte) *yaml.Node {
	j := &jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), places: places{data: data, line: 1, column: 1}}
	j.dec.UseNumber()
	root, err := j.value(0)
	if err == nil {
		at := j.nextNode()
		if _, end := j.dec.Token(); !errors.Is(end, io.EOF) {
			r.fail(at, "", "one value", "more text follows the first value")
			return nil
		}
		return root
	}
	at, message := j.nextNode(), err.Error()
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = placeOf(data, int(e.Offset)-1)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, message = placeOf(data, len(data)), "the file ends too early"
	}
	r.fail(at, "", "valid JSON", "%s", message)
	return nil
}

// nextNode returns a node at the position of the next token.
func (j *jsonReader) nextNode() *yaml.Node {
	offset := int(j.dec.InputOffset())
	rest := j.data[offset:]
	return j.places.at(offset + len(rest) - len(bytes.TrimLeft(rest, " \t\r\n,:")))
}

func (j *jsonReader) value(depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values are nested more than %d deep", maxDepth)
	}
	n := j.nextNode()
	token, err := j.dec.Token()
	if err != nil {
		return nil, err
	}
	n.Kind = yaml.ScalarNode
	switch v := token.(type) {
	case json.Delim:
		return j.container(n, v, depth)
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		n.Tag, n.Value = "!!int", v.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(v)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}

func (j *jsonReader) container(n *yaml.Node, open json.Delim, depth int) (*yaml.Node, error) {
	n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for j.dec.More() {
		item, err := j.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, item)
	}
	_, err := j.dec.Token()
	return n, err
}
