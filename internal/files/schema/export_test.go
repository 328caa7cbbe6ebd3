package schema

import (
	"maps"
	"slices"
)

// ShownFor returns the example of a key of a type, a fragment of the mapping that
// contains the key.
func ShownFor(name, key string) (string, error) {
	all, err := readProperties()
	return all.of(name, key).Example, err
}

// Described returns the documented keys, by type.
func Described() (map[string][]string, error) {
	all, err := readProperties()
	keys := map[string][]string{}
	for name, of := range all {
		keys[name] = slices.Sorted(maps.Keys(of))
	}
	return keys, err
}
