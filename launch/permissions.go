package launch

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/spec"
)

// permissions are the file's rules, and the protection of the journal where it
// lies in the workspace: whoever writes to it could approve calls.
func (o Options) permissions(a *spec.Agent) policy.Rules {
	r := rules(a, o)
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
