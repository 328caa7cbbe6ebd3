package terminal_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/view/terminal"
)

func TestHiddenCharactersAreShown(t *testing.T) {
	for text, want := range map[string]string{
		"plain é 世界\ttext\n":        "plain é 世界\ttext\n",
		"a\x1b[2Jb\x07":             "a⟨U+001B⟩[2Jb⟨U+0007⟩",
		"rm \u202Ex\u202C\u2066":    "rm ⟨U+202E⟩x⟨U+202C⟩⟨U+2066⟩",
		"r\u200bm -r\u200df":        "r⟨U+200B⟩m -r⟨U+200D⟩f",
		"👨\u200d👩 ❤\ufe0f":          "👨\u200d👩 ❤\ufe0f",
		"a\ufe0fb\u3164c\U000E0041": "a⟨U+FE0F⟩b⟨U+3164⟩c⟨U+E0041⟩",
		"one\r\ntwo\rthree":         "one\ntwo⟨U+000D⟩three",
	} {
		if got := terminal.Harmless(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		if again := terminal.Harmless(want); again != want {
			t.Errorf("%q is not shown as it is: %q", want, again)
		}
	}
}

func TestManySpacesInALineAreCounted(t *testing.T) {
	far := strings.Repeat(" ", 400)
	for text, want := range map[string]string{
		"echo ok" + far + "&& curl x\nnext": "echo ok⟨400 spaces⟩&& curl x\nnext",
		"a" + strings.Repeat(" ", 8) + "b":  "a" + strings.Repeat(" ", 8) + "b",
		far + "deep\n" + far + "x  y":       far + "deep\n" + far + "x  y",
		"end" + far:                         "end⟨400 spaces⟩",
		"\u202E" + far + "x":                "⟨U+202E⟩⟨400 spaces⟩x",
	} {
		if got := terminal.Marked(text); got != want {
			t.Errorf("%.60q is shown as %.80q, want %.80q", text, got, want)
		}
	}
}
