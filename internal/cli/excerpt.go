package cli

import (
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
)

// firstShown and lastShown are how many lines of a failed command's output are shown.
const (
	firstShown = 3
	lastShown  = 7
)

// excerpt is the beginning and the end of what a failed command wrote: the first
// lines often say what it did, and the last ones what went wrong.
func excerpt(d event.ToolResult, width int) []note {
	if !d.IsError || d.ExitCode == nil {
		return nil
	}
	_, output, _ := strings.Cut(d.Output, "\n") // the exit code stands on the first line
	var notes []note
	for _, line := range view.HeadAndTail(output, firstShown, lastShown) {
		text := strings.ReplaceAll(harmless(strings.TrimRight(line, "\r")), "\t", "    ")
		notes = append(notes, note{faint, "    " + clip(text, max(width-5, 20))})
	}
	return notes
}
