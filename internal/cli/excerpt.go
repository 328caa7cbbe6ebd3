package cli

import (
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
)

// firstShown and lastShown count the shown lines of a failed command's output.
const (
	firstShown = 3
	lastShown  = 7
)

// excerpt returns the beginning and the end of a failed command's output: the first
// lines often show what it did, and the last ones what went wrong.
func excerpt(d event.ToolResult, width int) []note {
	if !d.IsError || d.ExitCode == nil {
		return nil
	}
	_, output, _ := strings.Cut(d.Output, "\n") // the exit code is on the first line
	var notes []note
	for _, line := range view.HeadAndTail(output, firstShown, lastShown) {
		text := strings.ReplaceAll(harmless(strings.TrimRight(line, "\r")), "\t", "    ")
		notes = append(notes, note{faint, "    " + clip(text, max(width-5, 20))})
	}
	return notes
}
