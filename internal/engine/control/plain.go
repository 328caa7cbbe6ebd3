package control

import (
	_ "embed"
	"slices"
	"strings"
)

// packages are the names with which errors of Pawl's own packages begin. A test
// finds them.
//
//go:embed packages.txt
var packages string

// Plain returns an error as text for people: without the names of the packages
// that it was wrapped in. Names of providers stay.
func Plain(err error) string {
	names := strings.Fields(packages)
	text := err.Error()
	for {
		name, rest, ok := strings.Cut(text, ": ")
		if !ok || !slices.Contains(names, name) {
			return text
		}
		text = rest
	}
}
