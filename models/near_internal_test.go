package models

import (
	"strings"
	"testing"
)

// A table without one of the models of today's must not refuse it: so it is with
// those that come after this version.
func TestNoKnownNameIsNearToAnother(t *testing.T) {
	table, err := Known()
	if err != nil {
		t.Fatal(err)
	}
	for name := range table.Models {
		for known := range table.Models {
			if name == known || providerOf(name) != providerOf(known) || strings.Count(name, "/") > 1 {
				continue
			}
			if _, near := slips(strings.TrimPrefix(name, providerOf(name)+"/"), strings.TrimPrefix(known, providerOf(known)+"/")); near {
				t.Errorf("%s is taken for %s", name, known)
			}
		}
	}
}
