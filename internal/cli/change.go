package cli

import (
	"os"
	"strings"

	textdiff "github.com/rogpeppe/go-internal/diff"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool/fs"
)

// mostLines bounds the difference that a question shows, mostBytes the file that is
// read for it.
const (
	mostLines = 200
	mostBytes = 1 << 20
)

// change returns the difference that a call would make to a file, coloured by line,
// and the file; "" if the call is not known to change one.
func (q *prompter) change(dir string, pending event.ToolPendingApproval) (path, shown string) {
	c, known := fs.ChangeOf(pending.Tool, pending.Args)
	if !known {
		return "", ""
	}
	before, there := content(dir, c.Path)
	switch {
	case c.Overwrite:
		return c.Path, q.difference(before, c.New)
	case there && (c.All || strings.Count(before, c.Old) == 1):
		return c.Path, q.difference(before, strings.ReplaceAll(before, c.Old, c.New))
	case c.All:
		return c.Path + ", every occurrence", q.difference(c.Old, c.New)
	}
	return c.Path, q.difference(c.Old, c.New)
}

// content returns the content of a file of a workspace; links cannot lead out of it.
func content(dir, path string) (string, bool) {
	if dir == "" {
		return "", false
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", false
	}
	defer root.Close()
	info, err := root.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostBytes {
		return "", false
	}
	b, err := root.ReadFile(path)
	return string(b), err == nil
}

// difference returns the difference of two texts in lines for the screen.
func (q *prompter) difference(before, after string) string {
	text := string(textdiff.Diff("before", []byte(before), "after", []byte(after)))
	if text == "" {
		return q.p.screen.paint(faint, "  (nothing would change)") + "\n"
	}
	_, text, _ = strings.Cut(text, "\n@@")
	lines := strings.Split(strings.TrimSuffix("@@"+text, "\n"), "\n")
	more := len(lines) - mostLines
	if more > 0 {
		lines = lines[:mostLines]
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("  " + q.p.screen.paint(styleOf(line), harmless(strings.TrimSuffix(line, "\r"))) + "\n")
	}
	if more > 0 {
		b.WriteString(q.p.screen.paint(faint, "  … and "+plural(more, "more line")+"; e shows all of it") + "\n")
	}
	return b.String()
}

func styleOf(line string) style {
	switch line[:min(1, len(line))] {
	case "+":
		return green
	case "-":
		return red
	case "@":
		return faint
	}
	return plain
}
