package policy

import (
	"path"
	"strings"
)

// Pattern is a glob over canonical paths, anchored at the workspace: "src/**"
// is what lies in the src at the top and in no other. A star stands for any
// characters of one part of the path, two stars as a whole part for any number
// of parts. "dir/**" matches dir itself, too. A pattern that begins with a
// slash is one for absolute paths.
type Pattern string

// Valid reports whether every part of the pattern can be matched.
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

// Match reports whether the pattern matches a path exactly as it is written, which
// is what a rule that permits something must ask.
func (p Pattern) Match(name string) bool {
	return match(split(string(p)), split(name))
}

// Within is what a pattern of absolute paths says of a directory's own paths:
// "/srv/app/keys/**" says "keys/**" of those in /srv/app. One that is about all
// below a directory further up says nothing of them.
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

// matcher says whether a part of a pattern matches a part of a path.
type matcher func(pattern, name string) bool

func matchesPart(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}

// match walks the path once for each part of the pattern, so that no pattern
// takes longer than the product of both.
func match(pattern, name []string) bool {
	at := make([]bool, len(name)+1)
	reach(at, pattern, name, matchesPart)
	return at[len(name)]
}

// reach says for each beginning of the name whether the pattern matches it; at has
// a place for each.
func reach(at []bool, pattern, name []string, matches matcher) {
	at[0] = true
	for _, part := range pattern {
		step(at, part, name, matches)
	}
}

// step goes on by one part of the pattern, from which beginnings of the name were
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
