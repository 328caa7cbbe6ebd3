package wire

import (
	"strconv"
	"strings"
)

// GPTAtLeast reports whether a model's name is that of a GPT of this version or a later
// one.
func GPTAtLeast(model string, major, minor int) bool {
	version, ok := strings.CutPrefix(strings.TrimPrefix(strings.ToLower(model), "ft:"), "gpt-")
	if !ok {
		return false
	}
	if end := strings.IndexFunc(version, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); end >= 0 {
		version = version[:end]
	}
	before, after, _ := strings.Cut(version, ".")
	x, err := strconv.Atoi(before)
	y, _ := strconv.Atoi(after)
	return err == nil && (x > major || x == major && y >= minor)
}
