package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/internal/view/terminal"
)

// printJSON prints one object on one line.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.jsonOut())
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// show prints a value as one JSON object, or as text for people.
func (a *app) show(asJSON bool, v any, people func() error) error {
	if asJSON {
		return a.printJSON(v)
	}
	return people()
}

func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format, args...)
	return err
}

// harmless is [terminal.Harmless].
func harmless(s string) string { return terminal.Harmless(s) }

// columns is [terminal.Columns].
func columns(s string) int { return terminal.Columns(s) }

// firstLine is [terminal.FirstLine].
func firstLine(s string, width int) string { return terminal.FirstLine(s, width) }

// clip is [terminal.Clip].
func clip(s string, width int) string { return terminal.Clip(s, width) }

// onOneLine returns a path as it is, or quoted if its name would break the line.
func onOneLine(path string) string {
	if path == harmless(path) && !strings.ContainsAny(path, "\n\t") {
		return path
	}
	return strconv.Quote(path)
}

// tail returns the end of a text on one line, for a live line.
func tail(s string, width int) string {
	s = strings.Join(strings.Fields(harmless(s)), " ")
	if columns(s) <= width {
		return s
	}
	r := []rune(s)
	from := len(r)
	for room := width - columns("…"); room >= terminal.ColumnsOf(r[from-1]); from-- {
		room -= terminal.ColumnsOf(r[from-1])
	}
	return "…" + string(r[from:])
}
