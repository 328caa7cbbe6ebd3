package policy

import (
	"path"
	"strings"
)

// Pattern is a glob over canonical paths, anchored at the workspace: "src/**" matches
// only files of the top-level directory src. A star matches any characters within one
// part of the path; two stars as a whole part match any number of parts. "dir/**" also
// matches dir itself. A pattern that begins with a slash matches absolute paths.
type Pattern string

// Valid reports whether every part of the pattern has valid syntax.
func (p Pattern) Valid() bool {
	for _, part := range split(string(p)) {
		if _, err := path.Match(part, ""); err != nil {
			return false
		}
	}
	return p != "" && len(p) <= maxPattern
}

// maxPattern bounds a pattern in bytes.
const maxPattern = 1000

// single reports whether the pattern is the name of one file or directory.
func (p Pattern) single() bool { return !strings.ContainsAny(string(p), `*?[\`) }

// Match reports whether the pattern matches a path exactly as it is written. Rules that
// allow use Match, not [Pattern.Guards].
func (p Pattern) Match(name string) bool {
	return match(split(string(p)), split(name))
}

// Within converts a pattern of absolute paths to patterns relative to a directory:
// "/srv/app/keys/**" becomes "keys/**" in /srv/app. A pattern that matches everything
// below an ancestor of the directory has no relative form.
func (p Pattern) Within(dir string) []Pattern {
	if !strings.HasPrefix(string(p), "/") {
		return nil
	}
	pattern := split(string(p))
	at := make([]bool, len(pattern)+1)
	at[0] = true
	for _, name := range split(dir) {
		next := make([]bool, len(at))
		for i, part := range pattern {
			switch {
			case !at[i]:
			case part != "**":
				next[i+1] = next[i+1] || matchesPart(part, name)
			case i+1 < len(pattern):
				at[i+1], next[i] = true, true
			}
		}
		at = next
	}
	var within []Pattern
	for i, reached := range at {
		switch {
		case !reached:
		case i == len(pattern):
			within = append(within, "**")
		default:
			within = append(within, Pattern(strings.Join(pattern[i:], "/")))
		}
	}
	return within
}

func split(p string) []string {
	parts := strings.Split(path.Clean(p), "/")
	if len(parts) == 1 && parts[0] == "." {
		return nil
	}
	return parts
}

// A matcher reports whether a part of a pattern matches a part of a path.
type matcher func(pattern, name string) bool

func matchesPart(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}

// match walks the path once for each part of the pattern, so that its time is bounded
// by the product of both lengths.
func match(pattern, name []string) bool {
	at := make([]bool, len(name)+1)
	reach(at, pattern, name, matchesPart)
	return at[len(name)]
}

// reach reports, for each prefix of the name, whether the pattern matches it. The
// result is stored in at, which has an element for each prefix.
func reach(at []bool, pattern, name []string, matches matcher) {
	at[0] = true
	for _, part := range pattern {
		step(at, part, name, matches)
	}
}

// step advances by one part of the pattern, given the prefixes of the name that were
// reached before it.
func step(at []bool, part string, name []string, matches matcher) {
	if part == "**" {
		for i := 1; i < len(at); i++ {
			at[i] = at[i] || at[i-1]
		}
		return
	}
	for i := len(at) - 1; i > 0; i-- {
		at[i] = at[i-1] && matches(part, name[i-1])
	}
	at[0] = false
}
