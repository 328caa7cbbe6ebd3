package resolve

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// runsPrograms finds in the configuration of a repository what makes commands
// that only look run a program: a file system monitor, filters, a pager, other
// configuration. Whoever made the repository may have put it there.
var runsPrograms = regexp.MustCompile(`(?im)^\s*(fsmonitor|textconv|external|command|pager|program|process|clean|smudge|path|hookspath|sshcommand|[a-z]*editor)\s*=|^\s*\[\s*(include|includeif|pager)\b`)

// maxGitConfig is how much of a configuration is looked at; what is longer may
// say anything.
const maxGitConfig = 64 << 10

// quietGit says that the repository of each directory is known to make git run
// nothing when it only looks.
func (r *reader) quietGit(dirs []string) bool {
	for _, dir := range dirs {
		if dir == anywhere || !quietRepository(dir) {
			return false
		}
	}
	return true
}

func quietRepository(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return quietConfigs(filepath.Join(dir, ".git"), info.IsDir())
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// quietConfigs looks at the configuration of a .git directory, or of the one
// that a .git file leads to, as in a working tree beside the first.
func quietConfigs(git string, isDir bool) bool {
	if !isDir {
		text, err := beginning(git)
		to, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir:")
		if err != nil || !ok {
			return false
		}
		git = within(filepath.Dir(git), strings.TrimSpace(to))
	}
	dirs := []string{git}
	if common, err := beginning(filepath.Join(git, "commondir")); err == nil {
		dirs = append(dirs, within(git, strings.TrimSpace(common)))
	}
	for _, dir := range dirs {
		for _, name := range []string{"config", "config.worktree"} {
			text, err := beginning(filepath.Join(dir, name))
			if err != nil && !os.IsNotExist(err) || len(text) == maxGitConfig || runsPrograms.MatchString(text) {
				return false
			}
		}
	}
	return true
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func beginning(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxGitConfig))
	return string(b), err
}
