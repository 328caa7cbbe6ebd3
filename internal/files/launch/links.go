package launch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/host/resolve"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
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

// inWorkspace are the patterns of absolute paths as they are about the
// workspace's own, which a call's facts name from there.
func inWorkspace(workspace string, patterns ...policy.Pattern) []policy.Pattern {
	var within []policy.Pattern
	for _, p := range patterns {
		for _, dir := range []string{absolute(workspace), real(workspace)} {
			for _, own := range p.Within(dir) {
				if !slices.Contains(within, own) {
					within = append(within, own)
				}
			}
		}
	}
	return within
}

// linkedWithin is [behindLinks] for what nobody named: it protects nothing outside
// the workspace, where a write asks anyway.
func linkedWithin(workspace string, patterns []policy.Pattern) []policy.Pattern {
	return slices.DeleteFunc(behindLinks(workspace, patterns...), func(p policy.Pattern) bool { return strings.HasPrefix(string(p), "/") })
}

// onTheWay are the links by which one gets to what patterns name: whoever changes
// one of them decides what is found there.
func onTheWay(workspace string, patterns ...policy.Pattern) []policy.Pattern {
	ws, err := resolve.At(workspace)
	if err != nil {
		return nil
	}
	var names literals
	root := real(workspace)
	for _, p := range patterns {
		if name, _, ok := spelledOut(p); ok {
			names.addNames(ws, root+"/"+name)
		}
	}
	return slices.DeleteFunc(names, func(name policy.Pattern) bool {
		return name == "." || slices.ContainsFunc(patterns, func(p policy.Pattern) bool { return p.Guards(string(name)) })
	})
}

// besideLinks warns of directories in which commands can do less than their owner
// may expect, because a protected link stands there.
func (c confinement) besideLinks(tools *tool.Set) []string {
	if c.box == nil || !runsPrograms(tools) {
		return nil
	}
	links, err := c.box.ProtectedLinks()
	if err != nil || len(links) == 0 {
		return nil // what is wrong with the workspace, each command says
	}
	return []string{"in the directory of a symbolic link that is protected, commands can make, rename and remove nothing; such links are " +
		c.named(links) + "; with the file itself in its place they can"}
}

// belowHidden warns of the same where something hidden lies in the workspace, as in
// a home directory.
func (c confinement) belowHidden(tools *tool.Set) []string {
	if c.box == nil || !runsPrograms(tools) {
		return nil
	}
	hidden, err := c.box.HiddenWithin()
	if err != nil || len(hidden) == 0 {
		return nil
	}
	return []string{"the workspace has files that commands may not read (" + c.named(hidden) + "), so in this sandbox tier they can list, make, rename and " +
		"remove nothing in the directories above those; name a directory of the project's own with --workspace"}
}

// named are some paths of the workspace, a few of them by name.
func (c confinement) named(paths []string) string {
	const most = 5
	more := ""
	if n := len(paths) - most; n > 0 {
		paths, more = paths[:most], fmt.Sprintf(" and %d more", n)
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = path
		if rel, err := filepath.Rel(c.policy.Workspace, path); err == nil {
			names[i] = rel
		}
	}
	return strings.Join(names, ", ") + more
}

// spelledOut is the name that a pattern gives to a file, or to a tree of them,
// and false for a pattern that leaves some of it open.
func spelledOut(p policy.Pattern) (name string, tree, ok bool) {
	name, tree = strings.CutSuffix(string(p), "/**")
	return name, tree, name != "" && !strings.ContainsAny(name, `*?[\`) && !filepath.IsAbs(name)
}
