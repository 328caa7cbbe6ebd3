package markdown_test

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/pawlrun/pawl/internal/cli/markdown"
	"github.com/pawlrun/pawl/internal/golden"
	"github.com/pawlrun/pawl/internal/view/terminal"
)

var update = flag.Bool("update", false, "write the golden files")

func answer(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("testdata/answer.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestATextIsLaidOutForTheScreen(t *testing.T) {
	for name, show := range map[string]struct {
		width  int
		colour bool
	}{
		"wide": {79, false}, "narrow": {24, false}, "colour": {79, true},
	} {
		got := strings.Join(markdown.Lines(answer(t), show.width, show.colour), "\n") + "\n"
		golden.File(t, "testdata/"+name+".golden", strings.ReplaceAll(got, "\x1b", "␛"), *update)
	}
}

func TestSmallTexts(t *testing.T) {
	for source, want := range map[string][]string{
		"":                                       nil,
		"\n\n":                                   nil,
		"one\n\n\n\ntwo":                         {"one", "", "two"},
		"one\r\ntwo":                             {"one", "two"},
		"Steps:\n- a\n- b":                       {"Steps:", "- a", "- b"},
		"-":                                      {"-"},
		"not a heading\n===":                     {"not a heading", "==="},
		"&#27;[2Jx &#x9b;31m":                    {"⟨U+001B⟩[2Jx ⟨U+009B⟩31m"},
		"\x1b]0;title\x07`\x1b[31m`":             {"⟨U+001B⟩]0;title⟨U+0007⟩`⟨U+001B⟩[31m`"},
		`{"path": "C:\\a\"b", "x": "*"}`:         {`{"path": "C:\\a\"b", "x": "*"}`},
		"[x](javascript:alert)":                  {"x (javascript:alert)"},
		"[https://a.example](https://b.example)": {"https://a.example (https://b.example)"},
		strings.Repeat("> ", 30) + "deep":        {strings.Repeat("│ ", 8) + "deep"},
	} {
		if got := markdown.Lines(source, 60, false); !slices.Equal(got, want) {
			t.Errorf("%q is shown as %q, want %q", source, got, want)
		}
	}
}

// stream lays a text out that comes in two pieces and then letter by letter.
func stream(source string, first, width int) (lines, partials []string) {
	s := markdown.Writer{Width: func() int { return width }}
	step := func(piece string) {
		s.Add(piece)
		settled, partial := s.Next()
		lines, partials = append(lines, settled...), append(partials, partial)
	}
	step(source[:first])
	for at := first; at < len(source); at++ {
		step(source[at : at+1])
	}
	return append(lines, s.Close()...), partials
}

// Whatever the pieces, a line that was given stays right.
func TestAStreamGivesTheSameLinesAsTheWholeText(t *testing.T) {
	source := answer(t)
	for _, width := range []int{24, 79} {
		want := markdown.Lines(source, width, false)
		for first := 0; first < len(source); first += 97 {
			got, partials := stream(source, first, width)
			if !slices.Equal(got, want) {
				t.Fatalf("%d columns, first %d bytes:\n%s\nwant:\n%s", width, first, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for _, partial := range partials {
				if strings.Contains(partial, "\n") {
					t.Fatalf("the line that is not settled breaks: %q", partial)
				}
			}
		}
	}
}

func TestProseIsGivenLineByLine(t *testing.T) {
	s := markdown.Writer{Width: func() int { return 20 }}
	for _, step := range []struct {
		piece   string
		settled []string
		partial string
	}{
		{"The quick ", nil, "The quick"},
		{"brown fox jum", []string{"The quick brown fox"}, "jum"},
		{"ps over **the lazy ", []string{}, "lazy"},
		{"dog** and", []string{"jumps over **the"}, "lazy dog** and"},
		{".\n", []string{"lazy dog** and."}, ""},
		{"#", nil, "#"},
		{"# Head", nil, "## Head"},
		{"\n|a|b|\n|-|-|\n|1|", []string{"## Head"}, "|1|"},
		{"2|\n\nend", []string{"a │ b", "──┼──", "1 │ 2", ""}, "end"},
		{"\n```go", []string{"end"}, "```go"},
		{"\nx := 1\ny", []string{"```go", "x := 1"}, "y"},
		{"\n``", []string{"y"}, "``"},
		{"`\nafter", []string{"```"}, "after"},
	} {
		s.Add(step.piece)
		settled, partial := s.Next()
		if !slices.Equal(settled, step.settled) || partial != step.partial {
			t.Errorf("after %q: %q and %q, want %q and %q", step.piece, settled, partial, step.settled, step.partial)
		}
	}
	if rest := s.Close(); !slices.Equal(rest, []string{"after"}) {
		t.Errorf("the rest is %q", rest)
	}
}

// A text that takes long to read does not hold the screen up.
func TestABlockWithoutAnEndIsShownAsItIs(t *testing.T) {
	for _, source := range []string{strings.Repeat("> ", 100_000), strings.Repeat("[x](", 50_000), strings.Repeat("a\n", 60_000) + "*b*"} {
		lines := markdown.Lines("*one*\n\n"+source, 60, true)
		if shown := strings.Join(lines[2:], "\n"); lines[0] != "\x1b[3mone\x1b[0m" || shown != source {
			t.Errorf("%d bytes of %.12q are shown as %d bytes", len(source), source, len(shown))
		}
	}
}

// A block is laid out by the width at which it begins, so that none of it is given
// twice.
func TestANewWidthHoldsFromTheNextBlockOn(t *testing.T) {
	width := 20
	s := markdown.Writer{Width: func() int { return width }}
	s.Add("one two three four five six seven eight ")
	lines, _ := s.Next()
	width = 40
	s.Add("nine ten\n\none")
	more, _ := s.Next()
	s.Add(" two three four five six seven")
	want := []string{"one two three four", "five six seven eight", "nine ten", "", "one two three four five six seven"}
	if got := slices.Concat(lines, more, s.Close()); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// FuzzStream holds that no text makes it fail, that no control character of a text
// comes through, that styles end with their line, and that nothing is given twice.
func FuzzStream(f *testing.F) {
	f.Add("# a\n- *b* `c`\n\n> d\n```\ne\n|f|g|\n|-|-|\n|h|i|", 7, 20, true)
	f.Add("&#27;[31m\x1b[2J\u202e\n```\x07\n", 3, 0, true)
	f.Add("1.\n - \n  >\n\t```", 4, 5, false)
	f.Fuzz(func(t *testing.T, source string, piece, width int, colour bool) {
		s := markdown.Writer{Width: func() int { return width % 200 }, Colour: colour}
		var lines []string
		for rest := source; rest != ""; {
			n := min(max(piece%len(source), 1), len(rest))
			s.Add(rest[:n])
			settled, partial := s.Next()
			lines, rest = append(lines, settled...), rest[n:]
			check(t, partial, colour)
		}
		for _, line := range append(lines, s.Close()...) {
			check(t, line, colour)
		}
	})
}

func check(t *testing.T, line string, colour bool) {
	t.Helper()
	if colour {
		if styles := sgr.FindAllString(line, -1); len(styles) > 0 && styles[len(styles)-1] != "\x1b[0m" {
			t.Errorf("the style of %q does not end", line)
		}
		line = sgr.ReplaceAllString(line, "")
	}
	if terminal.Harmless(line) != line || strings.ContainsFunc(line, unicode.IsControl) {
		t.Errorf("%q steers the terminal", line)
	}
}
