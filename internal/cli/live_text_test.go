package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

func answered(text string) event.ModelResponse {
	return event.ModelResponse{Parts: event.Answer{llm.Text{Text: text}}}
}

// What a terminal shows once everything is written, a row a string: a small one,
// which knows line ends, the return to the first column and what clears a line.
func rows(t *testing.T, out string) []string {
	t.Helper()
	var rows []string
	row := ""
	for rest := out; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "\r\x1b[K"):
			row, rest = "", rest[4:]
		case rest[0] == '\n':
			rows, row, rest = append(rows, row), "", rest[1:]
		case rest[0] == '\x1b':
			t.Fatalf("an escape sequence that is not expected: %.20q", rest)
		default:
			row, rest = row+rest[:1], rest[1:]
		}
	}
	if row != "" {
		rows = append(rows, row)
	}
	return rows
}

func TestWhatTheModelSaysIsWrittenWhileItSaysIt(t *testing.T) {
	for name, tt := range map[string]struct {
		events []event.Data
		want   []string
	}{
		"piece by piece": {
			[]event.Data{event.Text{Text: "one two three fo"}, event.Text{Text: "ur five\n\n- s"}, event.Text{Text: "ix"}, answered("one two three four five\n\n- six")},
			[]string{"one two three four", "five", "", "- six"},
		},
		"at once": {[]event.Data{answered("one")}, []string{"one"}},
		"with a rest that was not heard": {
			[]event.Data{event.Text{Text: "one\n"}, event.TextReset{}, answered("one\ntwo")}, []string{"one", "two"},
		},
		"again after an attempt that failed": {
			[]event.Data{event.Text{Text: "one\ntw"}, event.TextReset{}, event.Text{Text: "thr"}, event.Text{Text: "ee"}, answered("three")},
			[]string{"one", "tw", "  (the answer begins again)", "three"},
		},
		"with a hole": {
			[]event.Data{event.Text{Text: "one\n"}, event.Text{Text: "three"}, answered("one\ntwo\nthree")},
			[]string{"one", "three", "  (the answer begins again)", "one", "two", "three"},
		},
		"nothing": {[]event.Data{answered("")}, nil},
		"with what would steer the terminal": {
			[]event.Data{event.Text{Text: "a\x1b[2J\rb\n&#27;[31m"}, answered("a\x1b[2J\rb\n&#27;[31m")},
			[]string{"a⟨U+001B⟩[2J⟨U+000D⟩b", "⟨U+001B⟩[31m"},
		},
		"a summary of the conversation": {[]event.Data{event.ModelResponse{Purpose: event.PurposeSummary, Parts: event.Answer{llm.Text{Text: "x"}}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, out, now := aTerminal(20)
			v := newTextView(io.Discard, p, screen{}, 0, "pawl")
			for _, d := range tt.events {
				*now = now.Add(time.Second)
				if err := v.show(event.Event{Data: d}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, rows(t, out.String())); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// The live line is the line that is being written, at the end of what it holds where
// the screen is too narrow for it.
func TestTheLineThatIsWrittenIsTheLiveLine(t *testing.T) {
	p, out, now := aTerminal(14)
	v := newTextView(io.Discard, p, screen{}, 0, "pawl")
	for _, step := range []struct{ piece, want string }{
		{"one two", "one two"},
		{" three f", "one two three|f"},
		{"our\n", "four|"},
		{"日本語の文章はとても", "…章はとても"},
	} {
		*now = now.Add(time.Second)
		before := out.Len()
		if err := v.show(event.Event{Data: event.Text{Text: step.piece}}); err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(strings.ReplaceAll(out.String()[before:], "\r\x1b[K", ""), "\n", "|")
		if step.piece[0] > 127 {
			got = got[strings.LastIndexByte(got, '|')+1:]
			if columns(got) > 13 {
				t.Errorf("%q is wider than the screen", got)
			}
			continue
		}
		if got != step.want {
			t.Errorf("after %q: %q, want %q", step.piece, got, step.want)
		}
	}
}

func TestTheAnswerIsPrintedOnceOnOneScreenAndWholeElsewhere(t *testing.T) {
	const answer = "# A\n\n**b** \x1b[2J"
	console, err := os.Create(filepath.Join(t.TempDir(), "console"))
	if err != nil {
		t.Fatal(err)
	}
	defer console.Close()
	ended := event.RunCompleted{Outcome: event.Outcome{OK: true, Status: event.StatusCompleted, FinalOutput: answer}}
	other := ended
	other.Outcome.FinalOutput = "something else"
	for name, tt := range map[string]struct {
		terminal, same bool
		end            event.RunCompleted
		want           string
	}{
		"the same terminal":                      {true, true, ended, ""},
		"the same terminal, and another outcome": {true, true, other, "something else\n"},
		"another terminal":                       {true, false, ended, "# A\n\n**b** ⟨U+001B⟩[2J\n"},
		"a pipe":                                 {false, false, ended, answer + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p, _, _ := aTerminal(80)
			v := newTextView(&out, p, screen{terminal: tt.terminal, width: func() int { return 80 }}, 0, "pawl")
			v.both = tt.same
			for _, d := range []event.Data{answered(answer), tt.end} {
				if err := v.show(event.Event{Data: d}); err != nil {
					t.Fatal(err)
				}
			}
			if out.String() != tt.want {
				t.Errorf("stdout has %q, want %q", out.String(), tt.want)
			}
		})
	}
	if !sameStream(console, console) || sameStream(console, &bytes.Buffer{}) || sameStream(os.Stdin, console) {
		t.Error("it is not known which streams are the same")
	}
}

func TestAFailedCommandShowsItsFirstAndLastLines(t *testing.T) {
	code := func(n int) *int { return &n }
	many := "exit code: 1\n" + strings.Repeat("x\n", 3) + strings.Repeat("y\n", 20) + "\tthe last\x1b[2J line\n"
	for name, tt := range map[string]struct {
		result event.ToolResult
		want   []string
	}{
		"many lines": {event.ToolResult{IsError: true, ExitCode: code(1), Output: many},
			[]string{"    x", "    x", "    x", "    … 14 lines …", "    y", "    y", "    y", "    y", "    y", "    y", "        the last⟨U+001B⟩[2J line"}},
		"few lines":          {event.ToolResult{IsError: true, ExitCode: code(1), Output: "exit code: 1\na\nb\n"}, []string{"    a", "    b"}},
		"no lines":           {event.ToolResult{IsError: true, ExitCode: code(1), Output: "exit code: 1\n"}, nil},
		"one that succeeded": {event.ToolResult{ExitCode: code(0), Output: "exit code: 0\na\n"}, nil},
		"no command":         {event.ToolResult{IsError: true, Output: "no\nway"}, nil},
	} {
		var got []string
		for _, n := range excerpt(tt.result, 80) {
			got = append(got, n.text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
