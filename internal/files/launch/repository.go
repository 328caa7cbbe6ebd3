package launch

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/internal/host/resolve"
	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// repositories are the directories outside the workspace that belong to the repository
// which it is in.
func (o Options) repositories() (outside []string) {
	found, _ := resolve.FindRepository(real(o.Workspace))
	for _, dir := range found.Dirs {
		if _, in := inside(o.Workspace, dir); !in {
			outside = append(outside, dir)
		}
	}
	return outside
}

// repositoryReads are what git reads outside a workspace that is below the top of its
// repository, or in a worktree of one: the top with all that is below it, but not
// where somebody's home directory is.
func (o Options) repositoryReads() []string {
	workspace := real(o.Workspace)
	found, ok := resolve.FindRepository(workspace)
	if !ok {
		return nil
	}
	paths := append(o.repositories(), found.Git())
	if home, err := os.UserHomeDir(); found.Top != workspace && (err != nil || !within(real(home), found.Top)) {
		paths = append(paths, found.Top)
	}
	return paths
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// repositoryGrants open the repositories of the workspace to every command.
func (o Options) repositoryGrants() []sandbox.Grant {
	open := func(dir string) sandbox.Grant { return sandbox.Grant{Path: dir, Tree: true, Repository: true} }
	workspace := real(o.Workspace)
	found, ok := resolve.FindRepository(workspace)
	if !ok {
		found.Dirs = []string{filepath.Join(workspace, ".git")} // which may be made
	}
	var grants []sandbox.Grant
	for _, dir := range found.Dirs {
		grants = append(grants, open(dir))
	}
	for _, pattern := range o.nested.patterns {
		name, _, ok := spelledOut(pattern)
		if info, err := os.Lstat(filepath.Join(workspace, name)); ok && err == nil && info.IsDir() {
			grants = append(grants, open(filepath.Join(workspace, name)))
		}
	}
	return grants
}
