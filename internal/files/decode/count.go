package decode

import (
	"bytes"
	"strings"
)

// maxParts bounds the keys and items of a file sent by a client. A workflow of 100
// steps has about 1,000.
const maxParts = 10_000

// CheckSent refuses a text that is too long for a file or has too many parts. It counts
// separators and parses nothing, because parsing a megabyte takes a hundred times as
// long. The error is [Errors].
func CheckSent(name string, text []byte) error {
	r := New(name)
	switch n := parts(text); {
	case len(text) > maxFile:
		r.Fail(start(), "", "at most 1 MiB", "the file has %d bytes", len(text))
	case n > maxParts:
		r.Fail(start(), "", "at most 10000 of them in a file that is sent", "the file has about %d keys and items", n)
	default:
		return nil
	}
	return r.Problems
}

// parts returns the approximate number of keys and items in a YAML or JSON text. Each
// quoted text and each block counts as one.
func parts(text []byte) int {
	var c counter
	block := -1 // block is the column of the block's parent, -1 outside a block
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, " \t\r\n")
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		if len(line) == 0 || block >= 0 && indent > block {
			continue
		}
		block = -1
		if column := c.line(line, indent); c.quote == 0 && c.depth == 0 && opensBlock(line) {
			block = column
		}
	}
	return c.parts
}

// opensBlock reports whether a line ends with a block indicator, such as | or >-.
func opensBlock(line []byte) bool {
	line = bytes.TrimRight(line, "+-0123456789")
	n := len(line)
	return n > 0 && (line[n-1] == '|' || line[n-1] == '>') && (n == 1 || line[n-2] == ' ')
}

// counter counts parts, line by line.
type counter struct {
	parts int
	// quote is the open quote, 0 for none; depth is the number of open brackets.
	quote byte
	depth int
}

// line counts the parts of a line, and returns the column of its key.
func (c *counter) line(line []byte, i int) (column int) {
	column = i
	for c.quote == 0 && c.depth == 0 && (bytes.HasPrefix(line[i:], []byte("- ")) || string(line[i:]) == "-") {
		c.parts++
		column = i
		i += len(line[i:]) - len(bytes.TrimLeft(line[i+1:], " "))
		if i < len(line) && line[i] != '|' && line[i] != '>' {
			column = i
		}
	}
	fresh := c.quote == 0 // a value may begin here
	for ; i < len(line); i++ {
		switch b := line[i]; {
		case c.quote == '"' && b == '\\', c.quote == '\'' && bytes.HasPrefix(line[i:], []byte("''")):
			i++
		case c.quote != 0:
			if b == c.quote {
				c.quote, fresh = 0, false
			}
		case b == ' ' || b == '\t':
		case b == '#' && (i == 0 || line[i-1] == ' '):
			return column
		case fresh && (b == '"' || b == '\''):
			c.quote = b
		case (fresh || c.depth > 0) && (b == '{' || b == '['):
			c.parts++
			c.depth++
			fresh = true
		case c.depth > 0 && (b == '}' || b == ']'):
			c.depth--
			fresh = false
		case c.depth > 0 && b == ',':
			c.parts++
			fresh = true
		case b == ':' && (i+1 == len(line) || strings.IndexByte(" \t\"'{[", line[i+1]) >= 0 || c.depth > 0):
			if c.depth == 0 {
				c.parts++
			}
			fresh = true
		default:
			fresh = false
		}
	}
	return column
}
