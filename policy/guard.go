package policy

import (
	"slices"
	"strings"
	"unicode"
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

// Guards reports whether the pattern matches a path or a directory above it, under
// any spelling that some file system takes for the same file: of another case,
// with dots or spaces or a stream's name at the end of a part, with
// backslashes, with characters that nobody sees, or cut short (GIT~1).
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

// above reports whether the pattern matches the name or a beginning of it.
func above(pattern, name []string, matches matcher) bool {
	at := make([]bool, len(name)+1)
	reach(at, pattern, name, matches)
	return slices.Contains(at[min(1, len(name)):], true)
}

// below reports whether the whole name of a directory is matched by some
// beginning of the pattern after which more may follow.
func (pattern parts) below(dir []string) bool {
	at := make([]bool, len(dir)+1)
	at[0] = true
	for _, part := range pattern.folded {
		if at[len(dir)] {
			return true
		}
		step(at, part, dir, matchesShort)
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
