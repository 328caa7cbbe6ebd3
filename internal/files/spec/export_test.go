package spec

import (
	"maps"
	"slices"

	"github.com/pawlrun/pawl/internal/files/decode"
)

// ShownFor is the example of a key of a type, a piece of the mapping that the
// key stands in.
func ShownFor(name, key string) (string, error) {
	all, err := readProperties()
	return all.of(name, key).Example, err
}

// Described are the documented keys, by type.
func Described() (map[string][]string, error) {
	all, err := readProperties()
	keys := map[string][]string{}
	for name, of := range all {
		keys[name] = slices.Sorted(maps.Keys(of))
	}
	return keys, err
}

// RunnerProblems are what is wrong with the runner of a loop.
func RunnerProblems(c *Runner) decode.Errors {
	var r decode.Report
	c.validate(&r, "loop.runner")
	return r.Problems.Sorted()
}
