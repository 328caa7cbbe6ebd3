package launch

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/resolve"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/host/worktree"
)

// StateDir is the directory of what Pawl keeps for a user outside of workspaces:
// $XDG_STATE_HOME/pawl. No command of a sandbox reads it.
func StateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pawl"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a place for what Pawl keeps: %w", err)
	}
	return filepath.Join(home, ".local", "state", "pawl"), nil
}

// JournalError is returned for a run whose commands could write its journal: in
// the landlock tier they may write the whole workspace. It is an [ErrSandbox].
type JournalError struct {
	// Journal is the journal's path, and Workspace the directory that it lies in.
	Journal, Workspace string
}

// Error says what to do.
func (e *JournalError) Error() string {
	return fmt.Sprintf("the journal %s lies in the workspace %s, and in the sandbox tier %s commands may write all of that, "+
		"so that they could approve their own calls; keep the journal outside of it", e.Journal, cmp.Or(e.Workspace, "."), sandbox.Landlock)
}

// Unwrap returns [ErrSandbox].
func (e *JournalError) Unwrap() error { return ErrSandbox }

// journalApart fails where commands in a tier could write the journal.
func (o Options) journalApart(a *spec.Agent, tier sandbox.Tier) error {
	if tier != sandbox.Landlock || !runsCommands(a) {
		return nil
	}
	if _, in := o.journalInside(); !in {
		return nil
	}
	if state, err := StateDir(); err == nil {
		// It is hidden, also in a workspace that the whole home directory is.
		if _, kept := inside(state, real(o.Journal)); kept {
			return nil
		}
	}
	return &JournalError{Journal: o.Journal, Workspace: o.Workspace}
}

// hidden are files and directories that commands cannot read. In the landlock tier
// a directory with something hidden in it could not be listed, so there the
// workspace has nothing hidden, and the journal lies outside of it.
func (o Options) hidden(tier sandbox.Tier) []string {
	var paths []string
	if tier != sandbox.Landlock {
		paths = append(paths, filepath.Join(o.Workspace, ".pawl"))
		paths = append(paths, beside(real(o.Workspace))...)
	}
	if found, ok := resolve.FindRepository(real(o.Workspace)); ok && found.Top != real(o.Workspace) && worktree.Above(real(o.Workspace)) == "" {
		paths = append(paths, filepath.Join(found.Top, ".pawl"))
	}
	if _, in := o.journalInside(); o.Journal != "" && (tier != sandbox.Landlock || !in) {
		journal := absolute(o.Journal)
		if _, within := inside(filepath.Dir(journal), real(o.Workspace)); filepath.Base(filepath.Dir(journal)) == ".pawl" && !within {
			paths = append(paths, filepath.Dir(journal))
		}
		paths = append(paths, journal, journal+"-wal", journal+"-shm")
	}
	if dir, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(dir, "pawl"))
	}
	if dir, err := StateDir(); err == nil {
		paths = append(paths, dir)
	}
	return paths
}
