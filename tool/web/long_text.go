package web

import (
	"errors"
	"strings"
)

// longText is a text that grows to a limit, and asks for room before it becomes
// long.
type longText struct {
	strings.Builder
	limit int
	room  func() error
	// err is why there was no room.
	err error
}

// errFull is the error of a text that has reached its limit.
var errFull = errors.New("the text has reached its limit")

// left is how many more bytes may be written.
func (t *longText) left() int {
	if t.err != nil {
		return 0
	}
	return t.limit - t.Len()
}

// grown is told of every growth.
func (t *longText) grown() {
	if t.room != nil && t.Len() > smallText {
		t.err = t.room()
		t.room = nil
	}
}

// Write appends as much as there is left, in whole characters.
func (t *longText) Write(p []byte) (int, error) {
	n := min(len(p), t.left())
	if n < len(p) {
		n = len(wholeRunes(p[:n]))
	}
	t.Builder.Write(p[:n])
	t.grown()
	switch {
	case t.err != nil:
		return n, t.err
	case n < len(p):
		return n, errFull
	}
	return n, nil
}
