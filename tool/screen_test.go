package tool_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl/tool"
)

func TestScreenShowsWhatATerminalWould(t *testing.T) {
	var progress strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&progress, "\x1b[2K\rProgress %d%%", i+1)
	}
	for _, c := range []struct {
		name, output, shown string
		overwritten         int
	}{
		{"plain text", "a\nb\n", "a\nb\n", 0},
		{"Windows line ends", "a\r\nb\r\n", "a\r\nb\r\n", 0},
		{"progress and colors", progress.String() + "\n\x1b[32mgreen\x1b[0m done\n", "Progress 3000%\ngreen done\n", 2999},
		{"a shorter line over a longer one", "abcdef\rxy\n", "xycdef\n", 1},
		{"erased to its end", "abcdef\r\x1b[Kxy\n", "xy\n", 1},
		{"two bars in two lines", "50%\r100%\nfoo\rbar\n", "100%\nbar\n", 2},
		{"a spinner of backspaces", "|\b/\b-\b done\n", " done\n", 1},
		{"a character taken back", "ab\b\x1b[Kc\n", "ac\n", 1},
		{"several lines redrawn", "a 1\nb 1\n\x1b[2Aa 2\x1b[K\nb 2\x1b[K\n", "a 2\nb 2\n", 2},
		{"a link and a title", "\x1b]0;title\a\x1b]8;;https://example.com\x1b\\text\x1b]8;;\x1b\\\n", "text\n", 0},
		{"a clipboard sequence", "a\x1b]52;c;aGk=\ab", "ab", 0},
		{"a cleared screen", "one\n\x1b[2J\x1b[Htwo\n", "one\ntwo\n", 0},
		{"columns", "name\x1b[10Gvalue\n", "name     value\n", 0},
		{"a sequence that is cut off", "text\x1b[3", "text", 0},
		{"a lone escape", "text\x1b", "text", 0},
		{"a title that is not closed", "a\x1b]0;title\nb\n", "a\nb\n", 0},
		{"an end without a line end", "a\rb", "b", 1},
		{"other characters", "é\rü\n", "ü\n", 1},
		{"NUL bytes", "a\x00b\x1b[0m", "a\x00b", 0},
	} {
		shown, overwritten := tool.Screen(c.output)
		if shown != c.shown || overwritten != c.overwritten {
			t.Errorf("%s: got %q, %d overwritten; want %q, %d", c.name, shown, overwritten, c.shown, c.overwritten)
		}
	}
}

// What a few characters can make is bounded, in room and in time.
func TestScreenStaysWithinItsBounds(t *testing.T) {
	for name, output := range map[string]string{
		"down":  strings.Repeat("\x1b[500B", 1<<19),
		"right": strings.Repeat("\x1b[500Cx", 1<<19),
		"up":    strings.Repeat("x", 1<<20) + strings.Repeat("\x1b[A\x1b[B", 1<<18),
		"cut":   strings.Repeat("x", 1<<20) + "\r" + strings.Repeat("\x1b[P", 1<<19),
	} {
		begun := time.Now()
		shown, _ := tool.Screen(output)
		if len(shown) > len(output)+1<<17 {
			t.Errorf("%s: %d bytes became %d", name, len(output), len(shown))
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%s: took %s", name, took)
		}
	}
}

func FuzzScreen(f *testing.F) {
	for _, s := range []string{"a\rb\n", "\x1b[2K\r1%\x1b[A\b\x1b]8;;x\a", "\x1b[3Px\x1b[1K\x1b[20Gé\x1b["} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, output string) {
		shown, _ := tool.Screen(output)
		again, overwritten := tool.Screen(shown)
		if utf8.ValidString(output) && (again != shown || overwritten != 0) && !strings.Contains(shown, "\r") {
			t.Errorf("%q is shown as %q, and that as %q", output, shown, again)
		}
	})
}
