package policy

import (
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl/event"
)

// Guard is patterns against which many names are held: each pattern is read once
// for all of them, and each name once for all patterns.
type Guard struct{ patterns []parts }

// NewGuard reads patterns.
func NewGuard(patterns ...Pattern) Guard {
	var g Guard
	for _, p := range patterns {
		g.patterns = append(g.patterns, p.parts())
	}
	return g
}

// Protects reports whether one of the patterns guards a name (see
// [Pattern.Guards]).
func (g Guard) Protects(name string) bool {
	n := nameParts(name)
	return slices.ContainsFunc(g.patterns, func(p parts) bool { return p.guards(n) })
}

// Below reports whether something below a directory may be matched by one of them.
func (g Guard) Below(dir string) bool {
	folded := fold(split(dir))
	return slices.ContainsFunc(g.patterns, func(p parts) bool { return p.below(folded) })
}

// Guards reports whether the pattern matches a path or a directory above it,
// under any spelling that some file system takes for the same file: with another
// case, with dots, spaces or a stream's name at the end of a part, with
// backslashes, with invisible characters, or cut short (GIT~1).
func (p Pattern) Guards(name string) bool { return p.parts().guards(nameParts(name)) }

// Below reports whether something below a directory may be matched.
func (p Pattern) Below(dir string) bool { return p.parts().below(fold(split(dir))) }

// parts are those of a pattern or a name, as they are written and folded.
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

// touches reports whether the pattern guards a path, or what a call touches with it
// besides: what lies below a tree, and what a pattern of names may stand for.
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

// mayMatch reports whether a part of a pattern may match a name that a shell finds for
// a part of a pattern of names. A shell's wildcards match no dot at the beginning.
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

// ends are what a pattern begins and ends with, before and behind its wildcards.
func ends(pattern, wildcards string) [2]string {
	return [2]string{pattern[:strings.IndexAny(pattern, wildcards)], pattern[strings.LastIndexAny(pattern, wildcards+"]")+1:]}
}

func alike(a, b [2]string) bool {
	return (strings.HasPrefix(a[0], b[0]) || strings.HasPrefix(b[0], a[0])) && (strings.HasSuffix(a[1], b[1]) || strings.HasSuffix(b[1], a[1]))
}

// above reports whether the pattern matches the name or a beginning of it.
func above(pattern, name []string, matches matcher) bool {
	at := make([]bool, len(name)+1)
	reach(at, pattern, name, matches)
	return slices.Contains(at[min(1, len(name)):], true)
}

// below reports whether the whole name of a directory is matched by some
// beginning of the pattern after which more may follow.
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

// fold brings the spellings of a name together.
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
