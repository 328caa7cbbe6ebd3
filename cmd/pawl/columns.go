package main

import "golang.org/x/text/width"

// columns is how much room a text takes on a terminal. What joins onto the
// character before it is counted too: a line that is cut too soon is read, and
// one that is too long breaks.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// columnsOf is two for the letters of East Asia and for pictures.
func columnsOf(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
