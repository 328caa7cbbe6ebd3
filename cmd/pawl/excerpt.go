package main

import (
	"strings"

	"github.com/pawlrun/pawl/event"
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
	output = strings.Trim(output, "\n")
	if output == "" {
		return nil
	}
	lines := strings.Split(output, "\n")
	var notes []note
	show := func(lines []string) {
		for _, line := range lines {
			text := strings.ReplaceAll(harmless(strings.TrimRight(line, "\r")), "\t", "    ")
			notes = append(notes, note{faint, "    " + clip(text, max(width-5, 20))})
		}
	}
	left := len(lines) - firstShown - lastShown
	if left <= 1 { // to say that a line is left out takes one as well
		show(lines)
		return notes
	}
	show(lines[:firstShown])
	notes = append(notes, note{faint, "    … " + plural(left, "line") + " …"})
	show(lines[len(lines)-lastShown:])
	return notes
}
