package launch

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/resolve"
)

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
