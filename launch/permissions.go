package launch

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/spec"
)

// permissions are the file's rules, and the protection of the file itself and of
// the journal where these lie in the workspace: whoever writes to them could
// permit or approve calls.
func (o Options) permissions(a *spec.Agent) policy.Rules {
	r := rules(a, o)
	r.Protected = append(r.Protected, o.ownFiles(a)...)
	if p := o.journalPattern(); p != "" {
		r.Protected = append(r.Protected, p)
	}
	return r
}

// journalPattern matches the journal and the files that belong to it; it is
// empty for one outside the workspace and for one that is always protected.
func (o Options) journalPattern() policy.Pattern {
	if o.Journal == "" {
		return ""
	}
	rel, ok := inside(o.Workspace, filepath.Join(real(filepath.Dir(o.Journal)), filepath.Base(o.Journal)))
	if !ok || slices.ContainsFunc(policy.Builtin(), func(p policy.Pattern) bool { return p.Guards(rel) }) {
		return ""
	}
	return literally(rel) + "*"
}

// literals are patterns that stand for one file each.
type literals []policy.Pattern

// add adds a file of the workspace: the name itself, under the real name of its
// directory, and the file behind it, should it be a link.
func (l *literals) add(workspace, file string) {
	for _, path := range []string{filepath.Join(real(filepath.Dir(file)), filepath.Base(file)), real(file)} {
		rel, ok := inside(workspace, path)
		if p := literally(rel); ok && !slices.Contains(*l, p) {
			*l = append(*l, p)
		}
	}
}

// inside is the name that a file has in a workspace, and false for one that lies
// elsewhere.
func inside(workspace, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(real(workspace), path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// literally is the pattern of one name: a character that would mean something
// in a pattern gives way to one that stands for any.
func literally(name string) policy.Pattern {
	return policy.Pattern(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`*[\`, r) {
			return '?'
		}
		return r
	}, name))
}

// real is the name of a file or directory behind all links, as far as it is
// there.
func real(path string) string {
	if name, err := filepath.EvalSymlinks(absolute(path)); err == nil {
		return name
	}
	return absolute(path)
}
