package gemini

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// partialArgs puts the arguments of a call together that come as values with
// their places ("$.recipe.steps[2]"), strings in several pieces.
type partialArgs struct {
	open bool
	root *node
}

// node is a value that grows.
type node struct {
	fields []field
	items  []*node
	text   strings.Builder
	isText bool
	scalar string
}

type field struct {
	name  string
	value *node
}

var errPlace = errors.New("gemini: malformed place in streamed arguments")

// maxItems bounds an index, so that a place cannot ask for a giant array.
const maxItems = 1 << 20

func (a *partialArgs) add(pieces []byte) error {
	if pieces == nil {
		return nil
	}
	list := wire.ScanArray(pieces)
	for list.Next() {
		place := ""
		text, scalar := []byte(nil), ""
		m := wire.ScanObject(list.Value())
		for m.Next() {
			switch string(m.Key()) {
			case "jsonPath":
				place = wire.Text(m.Value())
			case "stringValue":
				text = m.Value()
			case "numberValue", "boolValue":
				scalar = string(m.Value())
			case "nullValue":
				scalar = "null"
			}
		}
		if m.Err() != nil {
			return m.Err()
		}
		n, err := a.at(place)
		if err != nil {
			return err
		}
		if text != nil {
			n.isText = true
			n.text.WriteString(wire.Text(text))
		} else {
			n.scalar = scalar
		}
	}
	return list.Err()
}

// at finds or makes the node at a place.
func (a *partialArgs) at(place string) (*node, error) {
	if a.root == nil {
		a.root = &node{}
	}
	n := a.root
	rest, ok := strings.CutPrefix(place, "$")
	if !ok {
		return nil, errPlace
	}
	for rest != "" {
		switch rest[0] {
		case '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			n = n.field(rest[1 : end+1])
			rest = rest[end+1:]
		case '[':
			inner, after, ok := strings.Cut(rest[1:], "]")
			if !ok {
				return nil, errPlace
			}
			rest = after
			if name := strings.Trim(inner, `'"`); name != inner {
				n = n.field(name)
				continue
			}
			i, err := strconv.Atoi(inner)
			if err != nil || i < 0 || i > len(n.items)+maxItems {
				return nil, errPlace
			}
			n = n.item(i)
		default:
			return nil, errPlace
		}
	}
	return n, nil
}

func (n *node) field(name string) *node {
	for _, f := range n.fields {
		if f.name == name {
			return f.value
		}
	}
	child := &node{}
	n.fields = append(n.fields, field{name, child})
	return child
}

func (n *node) item(i int) *node {
	for len(n.items) <= i {
		n.items = append(n.items, &node{})
	}
	return n.items[i]
}

func (a *partialArgs) encode() json.RawMessage {
	if a.root == nil {
		return json.RawMessage("{}")
	}
	return a.root.append(nil)
}

func (n *node) append(b []byte) []byte {
	switch {
	case n.isText:
		return wire.AppendQuoted(b, n.text.String())
	case n.scalar != "":
		return append(b, n.scalar...)
	case len(n.items) > 0:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i, f := range n.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(wire.AppendQuoted(b, f.name), ':')
		b = f.value.append(b)
	}
	return append(b, '}')
}
