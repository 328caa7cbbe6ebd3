package launch

import (
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/tool"
)

// maxNestedEntries bounds the search for nested repositories, which is made once
// when a run begins.
const maxNestedEntries = 100_000

// nested are the .git of the repositories within a workspace when a run begins.
// One that the run itself makes later is its own to work in.
type nested struct {
	patterns []policy.Pattern
	// missed says that the workspace was too large to look through whole.
	missed bool
}

// nestedIn looks through a workspace, what lies near its top first.
func nestedIn(workspace string) nested {
	var found nested
	held := policy.NewGuard(".git")
	left := maxNestedEntries
	for dirs := []string{"."}; len(dirs) > 0; dirs = dirs[1:] {
		entries, err := os.ReadDir(filepath.Join(workspace, dirs[0]))
		if err != nil {
			continue // what this process cannot read, its commands cannot
		}
		if left -= len(entries); left < 0 {
			found.missed = true
			break
		}
		for _, e := range entries {
			name := path.Join(dirs[0], e.Name())
			switch {
			case held.Protects(e.Name()):
				if dirs[0] != "." {
					found.patterns = append(found.patterns, literally(name)+"/**")
				}
			case e.IsDir():
				dirs = append(dirs, name)
			}
		}
	}
	found.patterns = append(found.patterns, linkedWithin(workspace, found.patterns)...)
	slices.Sort(found.patterns)
	return found
}

// unsearched warns of a workspace in which repositories may have been missed.
func (n nested) unsearched(tools *tool.Set) []string {
	if _, runs := tools.Lookup(shellTool); !runs || !n.missed {
		return nil
	}
	return []string{"the workspace is too large to be looked through for repositories within it, so commands may change the .git of one that lies deep; " +
		"name those directories in tools.protected_paths"}
}
