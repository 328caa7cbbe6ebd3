package resolve

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Repository is the git repository that contains a directory, as git finds it.
type Repository struct {
	// Top is the directory with the entry .git.
	Top string
	// Dirs are the canonical directories that git writes: those of the repository, or
	// of a linked worktree or a submodule. The last of them contains the settings and
	// hooks.
	Dirs []string
}

// Git returns the .git entry of the repository.
func (r Repository) Git() string { return filepath.Join(r.Top, ".git") }

// FindRepository finds the repository that contains a directory. It ignores a .git file
// unless the directory that it names refers back to it, because any program may have
// written the file.
func FindRepository(dir string) (Repository, bool) {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		found, ok := repositoryAt(at)
		if info, err := os.Stat(filepath.Join(at, ".git")); ok || err == nil && !info.IsDir() || at == filepath.Dir(at) {
			return found, ok
		}
	}
}

// repositoryAt returns the repository with its .git entry in a directory.
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
	// A submodule's Git directory is within the enclosing repository.
	outer, ok := FindRepository(filepath.Dir(top))
	return Repository{Top: top, Dirs: []string{dir}}, ok && slices.ContainsFunc(outer.Dirs, func(o string) bool {
		return strings.HasPrefix(dir, o+"/modules/")
	})
}

// pathIn returns the canonical path in a file of git, after a prefix.
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
