package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Limits of arguments. Deeper nesting would let a model exhaust the stack of a
// validator; larger exponents and longer numbers would exhaust its memory.
const (
	maxDepth    = 256
	maxExponent = 1000
	maxNumber   = 10_000
)

// parse decodes one JSON value, numbers as [json.Number]. It rejects text that readers
// interpret differently, such as an object with duplicate members, and text beyond the
// limits above.
func parse(raw []byte) (any, error) {
	if !json.Valid(raw) {
		var v any
		return nil, json.Unmarshal(raw, &v) // it returns the error with its place
	}
	p := parser{rest: raw}
	return p.value(0)
}

// parser decodes a text that is known to be valid JSON.
type parser struct{ rest []byte }

func (p *parser) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	switch c := p.peek(); c {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		return p.string()
	case 't':
		p.skip("true")
		return true, nil
	case 'f':
		p.skip("false")
		return false, nil
	case 'n':
		p.skip("null")
		return nil, nil
	}
	return p.number()
}

// peek returns the first character of the next token.
func (p *parser) peek() byte {
	p.rest = bytes.TrimLeft(p.rest, " \t\r\n")
	return p.rest[0]
}

func (p *parser) skip(token string) { p.rest = p.rest[len(token):] }

func (p *parser) object(depth int) (any, error) {
	o := map[string]any{}
	for c := p.peek(); c != '}'; c = p.peek() {
		p.skip("{") // or the comma
		if p.peek() == '}' {
			break
		}
		name, err := p.string()
		if err != nil {
			return nil, err
		}
		if _, twice := o[name]; twice {
			return nil, fmt.Errorf("the member %s occurs twice in one object", strconv.Quote(clip(name, 100)))
		}
		p.peek()
		p.skip(":")
		if o[name], err = p.value(depth + 1); err != nil {
			return nil, err
		}
	}
	p.skip("}")
	return o, nil
}

func (p *parser) array(depth int) (any, error) {
	a := []any{}
	for c := p.peek(); c != ']'; c = p.peek() {
		p.skip("[") // or the comma
		if p.peek() == ']' {
			break
		}
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
	}
	p.skip("]")
	return a, nil
}

func (p *parser) string() (string, error) {
	end, plain := 1, true
	for ; p.rest[end] != '"'; end++ {
		switch c := p.rest[end]; {
		case c == '\\':
			plain = false
			end++
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	text := p.rest[:end+1]
	p.rest = p.rest[end+1:]
	if plain {
		return string(text[1:end]), nil
	}
	var s string
	err := json.Unmarshal(text, &s)
	return s, err
}

func (p *parser) number() (any, error) {
	end := bytes.IndexAny(p.rest, " \t\r\n,]}")
	if end < 0 {
		end = len(p.rest)
	}
	n := json.Number(p.rest[:end])
	p.rest = p.rest[end:]
	_, _, _, err := decimal(n.String())
	return n, err
}
