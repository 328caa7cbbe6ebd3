package decode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxDepth bounds the nesting of a JSON file.
const maxDepth = 100

// jsonReader builds the tree of a JSON file. A YAML reader would accept most JSON, but
// not its surrogate escapes, and it would also accept invalid JSON.
type jsonReader struct {
	data   []byte
	dec    *json.Decoder
	places *Places
}

// ReadJSON is [Report.Read] for a JSON text.
func (r *Report) ReadJSON(data []byte) *yaml.Node {
	j := &jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), places: PlacesIn(data)}
	j.dec.UseNumber()
	root, err := j.value(0)
	if err == nil {
		at := j.nextNode()
		if _, end := j.dec.Token(); !errors.Is(end, io.EOF) {
			r.Fail(at, "", "one value", "more text follows the first value")
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
	r.Fail(at, "", "valid JSON", "%s", message)
	return nil
}

// nextNode returns a node at the position of the next token.
func (j *jsonReader) nextNode() *yaml.Node {
	offset := int(j.dec.InputOffset())
	rest := j.data[offset:]
	return j.places.At(offset + len(rest) - len(bytes.TrimLeft(rest, " \t\r\n,:")))
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

// JSON renders a tree as JSON and records the place of every value. It keeps the order
// of the keys, because models fill in a schema in that order.
func (d *Decoder) JSON(b []byte, n *yaml.Node, path string, depth int) []byte {
	if d.exhausted(n, path) {
		return append(b, "null"...)
	}
	d.places[path] = n
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if depth > maxDepth {
		d.Fail(n, path, "", "values are nested more than %d deep", maxDepth)
		return append(b, "null"...)
	}
	switch n.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for i, p := range d.Pairs(n, path) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, p.Key.Value), ':')
			b = d.JSON(b, p.Value, Join(path, p.Key.Value), depth+1)
		}
		return append(b, '}')
	case yaml.SequenceNode:
		b = append(b, '[')
		for i, item := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			b = d.JSON(b, item, Join(path, strconv.Itoa(i)), depth+1)
		}
		return append(b, ']')
	}
	return d.scalarJSON(b, n, path)
}

func (d *Decoder) scalarJSON(b []byte, n *yaml.Node, path string) []byte {
	switch n.Tag {
	case "!!null":
		return append(b, "null"...)
	case "!!bool":
		return strconv.AppendBool(b, strings.EqualFold(n.Value, "true"))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return append(b, n.Value...)
		}
		if i, ok := WholeNumber(n); ok {
			return strconv.AppendInt(b, i, 10)
		}
		if f, ok := number(n); ok {
			return strconv.AppendFloat(b, f, 'g', -1, 64)
		}
		d.Fail(n, path, "a number that JSON has", "is %s", n.Value)
		return append(b, "null"...)
	}
	return appendJSON(b, n.Value)
}

// appendJSON appends a text without escaping "<", ">" and "&".
func appendJSON(b []byte, text string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	// Encoding a string cannot fail.
	_ = enc.Encode(text)
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
