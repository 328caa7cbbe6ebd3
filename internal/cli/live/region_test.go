package live_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/cli/live"
	"github.com/pawlrun/pawl/internal/view/terminal"
)

var sequence = regexp.MustCompile("\x1b\\[[?0-9;]*[A-Za-z]")

// columns is the width of a row; a tab is not allowed.
func columns(row string) int {
	return terminal.Columns(sequence.ReplaceAllString(strings.ReplaceAll(row, "\t", strings.Repeat("x", 1000)), ""))
}

func TestAFrameReplacesTheRowsBeforeIt(t *testing.T) {
	var b strings.Builder
	r := live.NewRegion(&b)
	frame := func(lines, rows []string) string {
		b.Reset()
		if err := r.Frame(lines, rows); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := frame(nil, []string{"one", "two"}); !strings.Contains(got, "one\r\ntwo\r\x1b[A") || strings.Contains(got, "\x1b[K") {
		t.Errorf("the first frame: %q", got)
	}
	if got := frame([]string{"done"}, []string{"three"}); !strings.Contains(got, "\r\x1b[K\x1b[2C\x1b[J\rdone\r\n") || strings.Contains(got, "\x1b[A") {
		t.Errorf("the second frame: %q", got)
	}
	if got := frame(nil, []string{"three"}); got != "" {
		t.Errorf("nothing has changed: %q", got)
	}
	r.Resized()
	if got := frame(nil, []string{"three"}); got == "" {
		t.Error("it is not drawn again")
	}
	got := frame(nil, nil)
	if !strings.Contains(got, "\x1b[?25h") {
		t.Errorf("the cursor stays hidden: %q", got)
	}
	for _, clear := range []string{"\x1b[2J", "\x1b[3J", "\x1b[H"} {
		if strings.Contains(got, clear) {
			t.Errorf("it clears the screen: %q", got)
		}
	}
}
