package gemini

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// partialArgs assembles the arguments of a call from values with paths
// ("$.recipe.steps[2]"); a string may arrive in several pieces.
type partialArgs struct {
	open bool
	root *node
	// made counts the values of the whole answer.
	made *int
}

// node is a value in progress.
type node struct {
	fields []field
	// byName finds the fields.
	byName map[string]*node
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

// A short path must not cause a giant array, nor a long one more nesting than readers
// support: a stack overflow cannot be recovered.
const (
	maxValues = 1 << 16
	maxDepth  = 1_000
)

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

// at returns the node at a path, creating it if necessary.
func (a *partialArgs) at(place string) (*node, error) {
	if a.root == nil {
		a.root = &node{}
	}
	n := a.root
	rest, ok := strings.CutPrefix(place, "$")
	if !ok {
		return nil, errPlace
	}
	for depth := 0; rest != ""; depth++ {
		if depth > maxDepth || *a.made > maxValues {
			return nil, wire.ErrArgumentsTooLarge
		}
		switch rest[0] {
		case '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			n = a.field(n, rest[1:end+1])
			rest = rest[end+1:]
		case '[':
			inner, after, ok := strings.Cut(rest[1:], "]")
			if !ok {
				return nil, errPlace
			}
			rest = after
			if name := strings.Trim(inner, `'"`); name != inner {
				n = a.field(n, name)
				continue
			}
			i, err := strconv.Atoi(inner)
			if i-len(n.items) > maxValues-*a.made { // i is the largest number where inner is larger
				return nil, wire.ErrArgumentsTooLarge
			}
			if err != nil || i < 0 {
				return nil, errPlace
			}
			n = a.item(n, i)
		default:
			return nil, errPlace
		}
	}
	return n, nil
}

func (a *partialArgs) field(n *node, name string) *node {
	if child := n.byName[name]; child != nil {
		return child
	}
	if n.byName == nil {
		n.byName = map[string]*node{}
	}
	child := &node{}
	n.byName[name] = child
	*a.made++
	n.fields = append(n.fields, field{name, child})
	return child
}

func (a *partialArgs) item(n *node, i int) *node {
	for len(n.items) <= i {
		n.items = append(n.items, &node{})
		*a.made++
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
		return wire.AppendKept(b, n.text.String())
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
		b = append(wire.AppendKept(b, f.name), ':')
		b = f.value.append(b)
	}
	return append(b, '}')
}
