package resolve

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Repository is the git repository that a directory is in, as git finds it.
type Repository struct {
	// Top is the directory with the entry .git.
	Top string
	// Dirs are the directories that git writes, by their own names: the repository's, or
	// that of a linked worktree or a submodule. The last of them has the settings and hooks.
	Dirs []string
}

// Git is the entry of the repository in its directory.
func (r Repository) Git() string { return filepath.Join(r.Top, ".git") }

// FindRepository finds the repository that a directory is in. A file .git that names a
// directory which does not name it in its turn is not followed: anybody may have
// written it.
func FindRepository(dir string) (Repository, bool) {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		found, ok := repositoryAt(at)
		if info, err := os.Stat(filepath.Join(at, ".git")); ok || err == nil && !info.IsDir() || at == filepath.Dir(at) {
			return found, ok
		}
	}
}

// repositoryAt is the repository whose entry is in a directory.
func repositoryAt(top string) (Repository, bool) {
	git, err := filepath.EvalSymlinks(filepath.Join(top, ".git"))
	if err != nil {
		return Repository{}, false
	}
	if info, err := os.Stat(git); err == nil && info.IsDir() {
		return Repository{Top: top, Dirs: []string{git}}, isGitDir(git)
	}
	dir, err := pathIn(git, "gitdir: ")
	if err != nil || !isGitDir(dir) {
		return Repository{}, false
	}
	if back, err := pathIn(filepath.Join(dir, "gitdir"), ""); err == nil && back == git {
		if common, err := pathIn(filepath.Join(dir, "commondir"), ""); err == nil && isGitDir(common) {
			return Repository{Top: top, Dirs: []string{dir, common}}, true
		}
	}
	// A submodule's directory is one of the repository that it is in.
	outer, ok := FindRepository(filepath.Dir(top))
	return Repository{Top: top, Dirs: []string{dir}}, ok && slices.ContainsFunc(outer.Dirs, func(o string) bool {
		return strings.HasPrefix(dir, o+"/modules/")
	})
}

// pathIn is the path that a file of git's holds behind a prefix, by its own name.
func pathIn(file, prefix string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(strings.TrimRight(string(text), "\n"), prefix)
	if !ok || path == "" {
		return "", errors.New("resolve: " + file + " names nothing")
	}
	return filepath.EvalSymlinks(absolute(filepath.Dir(file), path))
}

func isGitDir(dir string) bool {
	return exists(dir, "HEAD") && (exists(dir, "objects") || exists(dir, "commondir"))
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}
