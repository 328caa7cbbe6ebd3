package control

import (
	_ "embed"
	"slices"
	"strings"
)

// packages are the prefixes of the errors of Pawl's own packages. A test maintains the
// list.
//
//go:embed packages.txt
var packages string

// Plain returns an error's text for people: without the names of Pawl's packages. It
// keeps the names of providers.
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
