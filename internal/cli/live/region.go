package live

import (
	"io"
	"slices"
	"strings"
)

// Region draws rows below the finished text of a terminal. Between two frames the
// cursor rests at the start of the first row: terminals move it with that row when they
// wrap lines anew, so the rows are found again after any resize, even before this process
// learns the new size. Rows are drawn without automatic wrapping, so that each
// takes one row of the screen.
type Region struct {
	w     io.Writer
	drawn bool
	// last are the rows of the last frame, nil if they must be drawn again.
	last []string
}

// The sequences of a frame. None clears the whole screen: tmux then moves the rows of a
// clear from the top left corner to its history.
const (
	beginFrame = "\x1b[?2026h\x1b[?25l"
	endFrame   = "\x1b[?2026l"
	clearRows  = "\r\x1b[K\x1b[2C\x1b[J\r"
	wrapOff    = "\x1b[?7l"
	wrapOn     = "\x1b[?7h"
	showCursor = "\x1b[?25h"
)

// NewRegion returns a region without rows at the cursor of a terminal, which must be in
// raw mode.
func NewRegion(w io.Writer) *Region { return &Region{w: w} }

// Frame writes finished lines above the region, and replaces its rows. The lines and the
// rows must be harmless for a terminal.
func (r *Region) Frame(lines, rows []string) error {
	if len(lines) == 0 && r.drawn && slices.Equal(rows, r.last) {
		return nil
	}
	r.last = rows
	var b strings.Builder
	b.WriteString(beginFrame)
	if r.drawn {
		b.WriteString(clearRows)
	}
	for _, line := range lines {
		b.WriteString(strings.ReplaceAll(line, "\n", "\r\n") + "\r\n")
	}
	if r.drawn = len(rows) > 0; r.drawn {
		b.WriteString(wrapOff + strings.Join(rows, "\r\n") + "\r" + up(len(rows)-1) + wrapOn)
	} else {
		b.WriteString(showCursor)
	}
	b.WriteString(endFrame)
	_, err := io.WriteString(r.w, b.String())
	return err
}

// Clipboard asks the terminal to put a text, in base64, into its clipboard (OSC 52).
func (r *Region) Clipboard(text string) error {
	_, err := io.WriteString(r.w, "\x1b]52;c;"+text+"\a")
	return err
}

// Notify rings the bell, and shows a notification where the terminal has them.
func (r *Region) Notify(text string) error {
	_, err := io.WriteString(r.w, "\a\x1b]9;pawl: "+text+"\a")
	return err
}

// Resized makes the next frame draw all rows again.
func (r *Region) Resized() { r.last = nil }

// up returns the sequence that moves the cursor up.
func up(rows int) string {
	return strings.Repeat("\x1b[A", rows)
}
