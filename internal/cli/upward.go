package cli

import (
	"os"
	"path/filepath"
	"syscall"
)

// ownDir is the name of the directory that holds the journal and the config file by
// default.
const ownDir = ".pawl"

// nearest returns the directory .pawl of the working directory, or of the nearest
// directory above it that has one.
func nearest() string {
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return ownDir
	}
	home, _ := os.UserHomeDir()
	return upward(here, home, oneFileSystem)
}

// upward searches for a directory .pawl from here upward. It stops below the home
// directory, so that a journal there does not become every project's journal, and
// at directories that joined rejects. It ignores directories of other users,
// because a config file names programs and addresses.
func upward(here, home string, joined func(dir, above string) bool) string {
	if isDir(filepath.Join(here, ownDir)) {
		return ownDir
	}
	for dir := here; !sameFile(dir, home); {
		above := filepath.Dir(dir)
		if above == dir || !joined(dir, above) || sameFile(above, home) {
			break
		}
		dir = above
		if found := filepath.Join(dir, ownDir); isDir(found) && isOwn(found) {
			return found
		}
	}
	return ownDir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	second, other := os.Stat(b)
	return err == nil && other == nil && os.SameFile(first, second)
}

func oneFileSystem(a, b string) bool {
	first, ok := statOf(a)
	second, too := statOf(b)
	return ok && too && first.Dev == second.Dev
}

func isOwn(path string) bool {
	s, ok := statOf(path)
	return ok && int(s.Uid) == os.Getuid()
}

func statOf(path string) (*syscall.Stat_t, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return s, ok
}
