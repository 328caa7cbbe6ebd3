// Package search looks for a pattern of a model's in the lines of a text, for as
// long as the call lasts.
package search

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// MaxPattern bounds a pattern in bytes.
const MaxPattern = 1000

// Pattern is a regular expression (RE2). It is safe for concurrent use.
type Pattern struct {
	re *regexp.Regexp
	// states are what one character of a text may have to be held against.
	states int
}

// Compile reads a pattern. The error says what is wrong with it.
func Compile(expr string) (*Pattern, error) {
	if len(expr) > MaxPattern {
		return nil, fmt.Errorf("it has %d bytes; at most %d are possible", len(expr), MaxPattern)
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	return &Pattern{re: re, states: len(program.Inst)}, nil
}

// atOnce bounds the characters times the states of a search that looks at no
// context: what takes a part of a second at most.
const atOnce = 1 << 23

// Find is where the first match in a line begins and ends, nil where there is none.
// The error is that of the context. A few characters of a pattern can keep a search
// of one long line busy for hours, and a regular expression of Go's sees no context.
func (p *Pattern) Find(ctx context.Context, line []byte) (at []int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(line) <= atOnce/p.states {
		return p.re.FindIndex(line), nil
	}
	at = p.re.FindReaderIndex(&characters{ctx: ctx, rest: line})
	return at, ctx.Err()
}

// characters are those of a text, which ends with its context.
type characters struct {
	ctx  context.Context
	rest []byte
}

// ReadRune gives the next character.
func (c *characters) ReadRune() (rune, int, error) {
	if len(c.rest) == 0 || c.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	r, size := utf8.DecodeRune(c.rest)
	c.rest = c.rest[size:]
	return r, size, nil
}
