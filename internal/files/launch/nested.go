package launch

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool"
)

const (
	// maxNestedEntries bounds the search for nested repositories, which is made once
	// when a run begins.
	maxNestedEntries = 100_000
	// maxNested is how many of them are protected: each costs every command two
	// mounts, and with some thousands of those none could be started.
	maxNested = 100
)

// nested are the .git of the repositories within a workspace when a run begins.
// One that the run itself makes later is its own to work in.
type nested struct {
	patterns []policy.Pattern
	// missed says that there may be more: the workspace is too large to look through
	// whole, or has too many.
	missed bool
}

// nestedFor are those of an agent's workspace. One whose tools only read, and ask
// before nothing that they read, changes none: a large workspace, or one on a slow
// disk, would hold its starts up for nothing.
func nestedFor(a *spec.Agent, workspace string, builtin []tool.Tool) nested {
	asks := slices.Contains(slices.Collect(maps.Values(a.Tools.Approvals)), "protected_paths")
	writes := slices.ContainsFunc(builtin, func(t tool.Tool) bool { return !t.ReadOnly && allowed(a, t.Name) })
	if !asks && !writes {
		return nested{}
	}
	return nestedIn(workspace)
}

// nestedIn looks through a workspace, what lies near its top first.
func nestedIn(workspace string) nested {
	var found nested
	held := policy.NewGuard(".git")
	left := maxNestedEntries
	for dirs := []string{"."}; len(dirs) > 0 && !found.missed; dirs = dirs[1:] {
		entries := listed(filepath.Join(workspace, dirs[0]), left+1)
		if left -= len(entries); left < 0 {
			found.missed = true
			continue
		}
		for _, e := range entries {
			name := path.Join(dirs[0], e.Name())
			switch git := held.Protects(e.Name()); {
			case dirs[0] == "." && e.Name() == ".pawl": // is protected whole
			case !git && e.IsDir():
				dirs = append(dirs, name)
			case !git, dirs[0] == ".":
			case len(found.patterns) == maxNested:
				found.missed = true
			default:
				found.patterns = append(found.patterns, literally(name)+"/**")
			}
		}
	}
	found.patterns = append(found.patterns, linkedWithin(workspace, found.patterns)...)
	slices.Sort(found.patterns)
	return found
}

// listed are so many entries of a directory at most, by name: one may hold millions.
// Of what this process cannot read there are none, because its commands cannot
// read it either.
func listed(dir string, most int) []os.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(most)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// unsearched warns of a workspace in which repositories may have been missed.
func (n nested) unsearched(tools *tool.Set) []string {
	if !runsPrograms(tools) || !n.missed {
		return nil
	}
	return []string{fmt.Sprintf("the workspace has more than %d repositories within it, or is too large to be looked through for them, "+
		"so commands may change the .git of some; name those directories in tools.protected_paths", maxNested)}
}
