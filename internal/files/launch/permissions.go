package launch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/resolve"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// permissions are the file's rules, and the protection of the file itself and of
// the journal where these lie in the workspace: whoever writes to them could
// permit or approve calls. What a run began with stays protected.
func (o Options) permissions(a *spec.Agent) policy.Rules {
	r := rules(a, o)
	r.Protected = slices.Concat(r.Protected, o.ownFiles(a), o.journalPatterns())
	for _, p := range o.protected {
		if !slices.Contains(r.Protected, p) {
			r.Protected = append(r.Protected, p)
		}
	}
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
	if rel, ok := o.journalInside(); ok {
		own := literally(rel)
		names = append(literals{own + "*"}, slices.DeleteFunc(names, func(p policy.Pattern) bool { return p == own })...)
	}
	return slices.DeleteFunc(names, func(name policy.Pattern) bool {
		return slices.ContainsFunc(policy.Builtin(), func(p policy.Pattern) bool { return p.Guards(string(name)) })
	})
}

// journalInside is the name that the journal has in the workspace.
func (o Options) journalInside() (rel string, ok bool) {
	if o.Journal == "" {
		return "", false
	}
	return inside(o.Workspace, filepath.Join(real(filepath.Dir(o.Journal)), filepath.Base(o.Journal)))
}

// guarded refuses rules that do not protect the journal as it lies now. A run is
// judged by the rules that it began with, and its journal may have been moved since.
func (o Options) guarded(r policy.Rules) error {
	rel, ok := o.journalInside()
	if !ok || slices.ContainsFunc(slices.Concat(r.Protected, policy.Builtin()), func(p policy.Pattern) bool {
		return p.Guards(rel) && p.Guards(rel+"-wal")
	}) {
		return nil
	}
	return fmt.Errorf("launch: the rules that the run began with let its tools write the journal where it lies now (%s); "+
		"move it out of the run's workspace", o.Journal)
}

// literals are patterns that stand for one file each.
type literals []policy.Pattern

// add adds the names by which one gets to a file, as far as they are of the
// workspace: its own, and those of the links on the way.
func (l *literals) add(workspace, file string) {
	if ws, err := resolve.At(workspace); err == nil {
		l.addNames(ws, absolute(file))
	}
}

func (l *literals) addNames(ws resolve.Workspace, file string) {
	for _, name := range ws.Names(file) {
		if p := literally(name.Path); !name.Outside && !slices.Contains(*l, p) {
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
