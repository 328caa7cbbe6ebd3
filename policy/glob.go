package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// Pattern is a glob over canonical paths, anchored at the workspace: "src/**"
// is what lies in the src at the top and in no other. A star stands for any
// characters of one part of the path, two stars as a whole part for any number
// of parts. "dir/**" matches dir itself, too. A pattern that begins with a
// slash is one for absolute paths.
type Pattern string

// Valid says that every part of the pattern can be matched.
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

// single says that the pattern is the name of one file or directory.
func (p Pattern) single() bool { return !strings.ContainsAny(string(p), `*?[\`) }

// Match says that the pattern matches a path exactly as it is written, which
// is what a rule that permits something must ask.
func (p Pattern) Match(name string) bool {
	return match(split(string(p)), split(name))
}

// Guards says that the pattern matches a path or a directory above it, under
// any spelling that some file system takes for the same file: of another case,
// with dots or spaces or a stream's name at the end of a part, with
// backslashes, with characters that nobody sees, or cut short (GIT~1).
func (p Pattern) Guards(name string) bool {
	pattern := split(string(p))
	return above(pattern, split(name), matchesPart) || above(fold(pattern), fold(split(strings.ReplaceAll(name, `\`, "/"))), matchesShort)
}

// above says that the pattern matches the name or a beginning of it.
func above(pattern, name []string, matches matcher) bool {
	at := reachable(pattern, name, matches)
	return slices.Contains(at[min(1, len(name)):], true)
}

// Below says that something below a directory may be matched.
func (p Pattern) Below(dir string) bool {
	return prefix(fold(split(string(p))), fold(split(dir)))
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
	return reachable(pattern, name, matchesPart)[len(name)]
}

// prefix says that the whole name is matched by some beginning of the pattern
// after which more may follow.
func prefix(pattern, name []string) bool {
	at := start(name)
	for _, part := range pattern {
		if at[len(name)] {
			return true
		}
		at = step(at, part, name, matchesShort)
	}
	return at[len(name)] && len(pattern) > 0 && pattern[len(pattern)-1] == "**"
}

// reachable says for each beginning of the name whether the pattern matches it.
func reachable(pattern, name []string, matches matcher) []bool {
	at := start(name)
	for _, part := range pattern {
		at = step(at, part, name, matches)
	}
	return at
}

func start(name []string) []bool {
	at := make([]bool, len(name)+1)
	at[0] = true
	return at
}

func step(at []bool, part string, name []string, matches matcher) []bool {
	next := make([]bool, len(at))
	for i := range at {
		switch {
		case part == "**":
			next[i] = at[i] || i > 0 && next[i-1]
		case i > 0 && at[i-1]:
			next[i] = matches(part, name[i-1])
		}
	}
	return next
}

// fold brings the spellings of a name together.
func fold(parts []string) []string {
	out := make([]string, len(parts))
	for i, part := range parts {
		part = strings.Map(func(r rune) rune {
			if unicode.In(r, unicode.Cf, unicode.Cc) {
				return -1
			}
			return unicode.ToLower(r)
		}, part)
		if name, _, stream := strings.Cut(part, ":"); stream && name != "" {
			part = name
		}
		if trimmed := strings.TrimRight(part, ". "); trimmed != "" {
			part = trimmed
		}
		out[i] = part
	}
	return out
}
