package launch

import (
	"path/filepath"
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
	rel, err := filepath.Rel(real(o.Workspace), filepath.Join(real(filepath.Dir(absolute(o.Journal))), filepath.Base(o.Journal)))
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return ""
	}
	rel = filepath.ToSlash(rel)
	for _, p := range policy.Builtin() {
		if p.Guards(rel) {
			return ""
		}
	}
	return policy.Pattern(escape.Replace(rel) + "*")
}

// escape takes the meaning from what a pattern would read.
var escape = strings.NewReplacer("*", "?", "[", "?", "{", "?", "}", "?", "\\", "?")

// real is a directory's own name, behind its links.
func real(dir string) string {
	if name, err := filepath.EvalSymlinks(absolute(dir)); err == nil {
		return name
	}
	return absolute(dir)
}
