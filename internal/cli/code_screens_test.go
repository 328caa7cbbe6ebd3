package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

// coloured matches colours and styles other than the reverse one of the cursor.
var coloured = regexp.MustCompile("\x1b\\[([1-689]|[0-9]{2,}|[0-9;]*;[0-9;]*)m")

// A session is worked on whatever the screen can do. Text of the model, of a tool and in the
// arguments of a call steers none of them.
func TestASessionWorksOnEveryScreen(t *testing.T) {
	const evil = `\e[2J\e[3J\e]52;c;eA==\a\e[?1049h\u009b2J\r\u202e`
	for _, tt := range []struct {
		name    string
		columns uint16
		env     []string
		args    []string
		lines   bool
		never   *regexp.Regexp
	}{
		{"colours", 80, []string{"TERM=xterm"}, nil, false, regexp.MustCompile("\x1b\\[[0-9;]*[34]8;2")},
		{"NO_COLOR", 80, []string{"TERM=xterm", "NO_COLOR=1"}, nil, false, coloured},
		{"40 columns", 40, []string{"TERM=xterm"}, nil, false, nil},
		{"dumb", 80, []string{"TERM=dumb"}, nil, true, regexp.MustCompile("\x1b")},
		{"plain", 40, []string{"TERM=xterm"}, []string{"--plain"}, true, regexp.MustCompile("\x1b\\[[?0-9;]*[A-LN-Za-ln-z]|\r[^\n\r]")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProject(t, map[string]string{
				"agent.yaml": gatedAgent,
				"script.yaml": fmt.Sprintf("- {text: \"I look %s.\", tool_calls: [{name: shell.exec, arguments: {command: \"printf 'out\\\\033[2J\\\\033]52;c;eA==\\\\007put'; touch touched # %s\"}}]}\n"+
					"- text: \"the answer %s ends\"\n", evil, evil, evil),
			})
			y, s := p.atTerminalOf(tt.columns, tt.env, append([]string{"code", "--agent", "agent.yaml"}, tt.args...)...)
			waits := func() {
				p.eventually("it waits for a message", func() bool {
					return strings.Contains(y.frame(), "> ") && (!tt.lines || strings.HasSuffix(y.plain(), "> "))
				})
			}
			waits()
			enter := "\r"
			if tt.lines {
				enter = "\n"
			}
			for i := range 2 {
				y.types("go" + enter)
				if tt.lines {
					p.eventually("it asks", func() bool { return strings.Count(y.text(), "[n]o, n and a reason") > i })
					y.types("y\n")
				} else {
					p.eventually("keys count", func() bool { return strings.Contains(y.frame(), keys[:4]) })
					y.types("y")
				}
				p.eventually("it answers", func() bool { return p.row(p.newest()).State == journal.Ended && strings.Count(y.text(), "ends") > i })
				waits()
			}
			y.types("\x04")
			if f := s.wait(); f.code != 0 || !p.exists("touched")() {
				t.Errorf("it exits with %d: %q", f.code, y.seen())
			}
			seen := strings.NewReplacer(modes()...).Replace(y.seen())
			for _, sequence := range []string{"\x1b[2J", "\x1b[3J", "\x1b]52", "\x1b[?1049h", "\u009b", "\u202e"} {
				if strings.Contains(seen, sequence) {
					t.Errorf("%q reaches the terminal: %q", sequence, seen)
				}
			}
			if tt.never != nil && tt.never.MatchString(seen) {
				t.Errorf("%q is written: %q", tt.never.FindString(seen), seen)
			}
			if !tt.lines {
				for _, f := range strings.Split(seen, "\x1b[?7l")[1:] { // the rows of a frame are not wrapped
					rows, _, _ := strings.Cut(f, "\x1b[?7h")
					for row := range strings.SplitSeq(rows, "\r\n") {
						if n := columns(strings.Trim(drawn.ReplaceAllString(row, ""), "\r")); n > int(tt.columns) {
							t.Errorf("a row has %d columns: %q", n, row)
						}
					}
				}
			}
		})
	}
}

// modes are the sequences that a live region writes for itself, as pairs with nothing.
func modes() (pairs []string) {
	for _, m := range []string{"\x1b[?2004h", "\x1b[?1004h", "\x1b[?2004l", "\x1b[?1004l"} {
		pairs = append(pairs, m, "")
	}
	return pairs
}
