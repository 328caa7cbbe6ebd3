package launch

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/resolve"
	"github.com/pawlrun/pawl/spec"
)

// permissions are the file's rules, and the protection of the file itself and of
// the journal where these lie in the workspace: whoever writes to them could
// permit or approve calls.
func (o Options) permissions(a *spec.Agent) policy.Rules {
	r := rules(a, o)
	r.Protected = slices.Concat(r.Protected, o.ownFiles(a), o.journalPatterns())
	return r
}

// journalPatterns match the journal, the files that belong to it, and the links
// by which it is found. There is none for what lies outside the workspace or is
// always protected.
func (o Options) journalPatterns() []policy.Pattern {
	if o.Journal == "" {
		return nil
	}
	var names literals
	names.add(o.Workspace, o.Journal)
	if rel, ok := inside(o.Workspace, filepath.Join(real(filepath.Dir(o.Journal)), filepath.Base(o.Journal))); ok {
		own := literally(rel)
		names = append(literals{own + "*"}, slices.DeleteFunc(names, func(p policy.Pattern) bool { return p == own })...)
	}
	return slices.DeleteFunc(names, func(name policy.Pattern) bool {
		return slices.ContainsFunc(policy.Builtin(), func(p policy.Pattern) bool { return p.Guards(string(name)) })
	})
}

// literals are patterns that stand for one file each.
type literals []policy.Pattern

// add adds the names by which one gets to a file, as far as they are of the
// workspace: its own, and those of the links on the way.
func (l *literals) add(workspace, file string) {
	ws, err := resolve.At(workspace)
	if err != nil {
		return
	}
	for _, name := range ws.Names(absolute(file)) {
		if p := literally(name.Path); !name.Outside && !slices.Contains(*l, p) {
			*l = append(*l, p)
		}
	}
}

// behindLinks are patterns for what names lead to where they are symbolic links,
// and for the names between: the same files have names there that the patterns do
// not know.
func behindLinks(workspace string, patterns ...policy.Pattern) []policy.Pattern {
	ws, err := resolve.At(workspace)
	if err != nil {
		return nil
	}
	var behind []policy.Pattern
	for _, p := range patterns {
		name, tree, ok := spelledOut(p)
		if !ok {
			continue
		}
		for _, use := range append(ws.Aliases(name), ws.Path(name)) {
			if use.Path == "." || p.Guards(use.Path) {
				continue
			}
			found := literally(use.Path)
			if tree {
				found += "/**"
			}
			behind = append(behind, found)
		}
	}
	return behind
}

// onTheWay are the links by which one gets to what patterns name: whoever changes
// one of them decides what is found there.
func onTheWay(workspace string, patterns ...policy.Pattern) []policy.Pattern {
	var names literals
	for _, p := range patterns {
		if name, _, ok := spelledOut(p); ok {
			names.add(workspace, real(workspace)+"/"+name)
		}
	}
	return slices.DeleteFunc(names, func(name policy.Pattern) bool {
		return name == "." || slices.ContainsFunc(patterns, func(p policy.Pattern) bool { return p.Guards(string(name)) })
	})
}

// spelledOut is the name that a pattern gives to a file, or to a tree of them,
// and false for a pattern that leaves some of it open.
func spelledOut(p policy.Pattern) (name string, tree, ok bool) {
	name, tree = strings.CutSuffix(string(p), "/**")
	return name, tree, name != "" && !strings.ContainsAny(name, `*?[\`) && !filepath.IsAbs(name)
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
