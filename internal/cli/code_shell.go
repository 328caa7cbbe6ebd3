package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/sessions"
)

// mostOutput bounds the lines of a command that are printed.
const mostOutput = 200

// shell runs a command line of the user, as a run with the rules of the agent file.
func (t *chat) shell(ctx context.Context, line string) error {
	if line == "" {
		return usagef("a command is missing behind !")
	}
	if err := textual("the command", line); err != nil {
		return err
	}
	state, err := launch.StateDir()
	if err != nil {
		return err
	}
	now, err := t.host.Settings(ctx, t.id)
	if err != nil {
		return err
	}
	return t.surface.begin(ctx, "!"+line, func(ctx context.Context) (*sessions.Turn, error) {
		return t.host.Command(ctx, filepath.Join(state, "commands"), t.dir, line, now.Mode, t.ask)
	})
}

// wholeOutput returns what a command of the user printed, behind the line that the progress
// shows.
func wholeOutput(d event.ToolResult) []note {
	_, rest, _ := strings.Cut(strings.TrimRight(harmless(d.Output), "\n"), "\n")
	if rest == "" {
		return nil
	}
	lines := strings.Split(rest, "\n")
	var notes []note
	for _, line := range lines[:min(len(lines), mostOutput)] {
		notes = append(notes, note{plain, "  " + line})
	}
	if more := len(lines) - mostOutput; more > 0 {
		notes = append(notes, note{faint, "  … " + plural(more, "line") + " more"})
	}
	return notes
}
