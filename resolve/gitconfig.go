package resolve

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// runsPrograms finds in the configuration of a repository what makes commands
// that only look run a program: a file system monitor, filters, a pager, other
// configuration. Whoever made the repository may have put it there.
var runsPrograms = newPattern(`(?im)(?:^|\])\s*(fsmonitor|textconv|external|command|pager|program|process|clean|smudge|path|hookspath|sshcommand|[a-z]*editor)\s*=|^\s*\[\s*(include|includeif|pager)\b`)

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
			return !exists(dir, ".gitmodules") && quietConfigs(filepath.Join(dir, ".git"), info.IsDir())
		}
		// What looks like a repository without a working tree is one, and may
		// have been committed as files.
		if exists(dir, "HEAD") && exists(dir, "objects") {
			return false
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
		if exists(dir, "hooks/post-index-change") || !quietIndex(dir) {
			return false
		}
		for _, name := range []string{"config", "config.worktree"} {
			text, err := beginning(filepath.Join(dir, name))
			if err != nil && !os.IsNotExist(err) || len(text) == maxGitConfig || runsPrograms.MatchString(text) {
				return false
			}
		}
	}
	return true
}

// maxGitIndex is how much of an index is looked at.
const maxGitIndex = 32 << 20

// gitlink is the mode of a directory in an index that is a repository of its
// own. Its configuration counts when the outer one is looked at.
var gitlink = []byte{0, 0, 0xe0, 0}

// quietIndex says that no repository within the repository is registered.
func quietIndex(git string) bool {
	shared, err := filepath.Glob(filepath.Join(git, "sharedindex.*"))
	if err != nil || len(shared) > 0 {
		return false
	}
	f, err := os.Open(filepath.Join(git, "index"))
	if err != nil {
		return os.IsNotExist(err)
	}
	defer f.Close()
	index, err := io.ReadAll(io.LimitReader(f, maxGitIndex))
	return err == nil && len(index) < maxGitIndex && !bytes.Contains(index, gitlink)
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
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
