// Package search searches the lines of a text for a model's pattern, bounded by the
// context of the call.
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
	// states is the number of states that one character of a text may have to be
	// compared with.
	states int
}

// Compile parses a pattern. The error describes what is wrong with it.
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

// atOnce bounds characters times states of a search without a context, so that it takes
// at most a fraction of a second.
const atOnce = 1 << 23

// Find returns the bounds of the first match in a line, nil if there is none, or the
// error of the context. A short pattern can take hours in a long line, and Go's regular
// expressions do not support contexts.
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

// characters reads the characters of a text until its context ends.
type characters struct {
	ctx  context.Context
	rest []byte
}

// ReadRune returns the next character.
func (c *characters) ReadRune() (rune, int, error) {
	if len(c.rest) == 0 || c.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	r, size := utf8.DecodeRune(c.rest)
	c.rest = c.rest[size:]
	return r, size, nil
}
