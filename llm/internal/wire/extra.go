package wire

import (
	"encoding/json"
	"maps"
	"slices"
)

// AppendExtra appends the owner's additional members of a request, each with a comma
// before it, in the order of their names, so that the bytes are always the same. taken
// reports which members the request sets itself.
func AppendExtra(dst []byte, extra map[string]json.RawMessage, taken func(name string) bool) []byte {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if taken(name) {
			continue
		}
		dst = append(AppendQuoted(append(dst, ','), name), ':')
		dst = AppendCompact(dst, extra[name], "null")
	}
	return dst
}
