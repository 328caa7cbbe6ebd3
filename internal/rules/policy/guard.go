package policy

import (
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl/event"
)

// Guard matches many names against many patterns. It parses each pattern once.
type Guard struct{ patterns []parts }

// NewGuard parses patterns.
func NewGuard(patterns ...Pattern) Guard {
	var g Guard
	for _, p := range patterns {
		g.patterns = append(g.patterns, p.parts())
	}
	return g
}

// Protects reports whether one of the patterns guards a name (see [Pattern.Guards]).
func (g Guard) Protects(name string) bool {
	n := nameParts(name)
	return slices.ContainsFunc(g.patterns, func(p parts) bool { return p.guards(n) })
}

// Below reports whether one of the patterns may match something below a directory.
func (g Guard) Below(dir string) bool {
	folded := fold(split(dir))
	return slices.ContainsFunc(g.patterns, func(p parts) bool { return p.below(folded) })
}

// Guards reports whether the pattern matches a path or one of its parent directories
// under any spelling that some file system treats as the same file: with another case,
// with dots, spaces or a stream name at the end of a part, with backslashes, with
// invisible characters, or as a short name (GIT~1).
func (p Pattern) Guards(name string) bool { return p.parts().guards(nameParts(name)) }

// Below reports whether the pattern may match something below a directory.
func (p Pattern) Below(dir string) bool { return p.parts().below(fold(split(dir))) }

// parts holds the parts of a pattern or a name, as written and folded.
type parts struct{ written, folded []string }

func (p Pattern) parts() parts {
	written := split(string(p))
	return parts{written, fold(written)}
}

func nameParts(name string) parts {
	return parts{split(name), fold(split(strings.ReplaceAll(name, `\`, "/")))}
}

func (pattern parts) guards(name parts) bool {
	return above(pattern.written, name.written, matchesPart) || above(pattern.folded, name.folded, matchesShort)
}

// touches reports whether the pattern guards a path or something else that a call
// touches with it: the content of a tree, or the names that a wildcard may expand to.
func (pattern parts) touches(p event.PathUse) bool {
	name := nameParts(p.Path)
	switch {
	case p.Pattern:
		return above(pattern.written, name.written, mayMatch) || above(pattern.folded, name.folded, mayMatch) ||
			p.Tree && pattern.belowBy(name.folded, mayMatch)
	case p.Tree:
		return pattern.guards(name) || pattern.below(name.folded)
	}
	return pattern.guards(name)
}

// mayMatch reports whether a part of a pattern may match a name that a shell expands a
// part with wildcards to. A shell's wildcards do not match a leading dot.
func mayMatch(pattern, names string) bool {
	if !strings.ContainsAny(names, "*?") {
		return matchesShort(pattern, names)
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		hidden := strings.HasPrefix(pattern, ".") && !strings.HasPrefix(names, ".")
		return !hidden && matchesPart(names, pattern)
	}
	hidden := strings.HasPrefix(pattern, ".") && strings.ContainsAny(names[:1], "*?")
	return !hidden && alike(ends(pattern, `*?[\`), ends(names, "*?"))
}

// ends returns the literal prefix and suffix of a pattern, outside its wildcards.
func ends(pattern, wildcards string) [2]string {
	return [2]string{pattern[:strings.IndexAny(pattern, wildcards)], pattern[strings.LastIndexAny(pattern, wildcards+"]")+1:]}
}

func alike(a, b [2]string) bool {
	return (strings.HasPrefix(a[0], b[0]) || strings.HasPrefix(b[0], a[0])) && (strings.HasSuffix(a[1], b[1]) || strings.HasSuffix(b[1], a[1]))
}

// above reports whether the pattern matches the name or a prefix of it.
func above(pattern, name []string, matches matcher) bool {
	at := make([]bool, len(name)+1)
	reach(at, pattern, name, matches)
	return slices.Contains(at[min(1, len(name)):], true)
}

// below reports whether a prefix of the pattern, after which more parts may follow,
// matches the whole name of a directory.
func (pattern parts) below(dir []string) bool { return pattern.belowBy(dir, matchesShort) }

func (pattern parts) belowBy(dir []string, matches matcher) bool {
	at := make([]bool, len(dir)+1)
	at[0] = true
	for _, part := range pattern.folded {
		if at[len(dir)] {
			return true
		}
		step(at, part, dir, matches)
	}
	return at[len(dir)] && len(pattern.folded) > 0 && pattern.folded[len(pattern.folded)-1] == "**"
}

// fold maps the spellings of a name to one.
func fold(parts []string) []string {
	out := make([]string, len(parts))
	for i, part := range parts {
		part = strings.Map(folded, part)
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

func folded(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
		return -1
	}
	return unicode.ToLower(r)
}
