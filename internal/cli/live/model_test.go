package live_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/cli/live"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at is a message some milliseconds after the beginning.
type at struct {
	ms  int
	msg any
}

// play applies messages, and returns all actions.
func play(m *live.Model, steps ...at) (actions []live.Action) {
	for _, s := range steps {
		actions = append(actions, m.Update(s.msg, epoch.Add(time.Duration(s.ms)*time.Millisecond))...)
	}
	return actions
}

func model() *live.Model { return &live.Model{Width: 40, Height: 12, Plain: true} }

// typed are the keys of a text, one millisecond apart.
func typed(ms int, text string) (steps []at) {
	for i, r := range text {
		steps = append(steps, at{ms + i, key(string(r))})
	}
	return steps
}

func key(name string) live.Key {
	text := ""
	if len([]rune(name)) == 1 {
		text = name
	}
	if name == "space" {
		text = " "
	}
	return live.Key{Name: name, Text: text}
}

func input(m *live.Model) string {
	rows := m.Rows()
	return strings.TrimRight(sequence.ReplaceAllString(rows[len(rows)-1], ""), " ")
}

var question = []at{{1000, live.Ask{Text: "approve c: shell.exec touch x?\n"}}, {1000, live.Prompt{Choice: &live.Choice{Allow: true, Edit: true}}}}

func TestOnlyALetterDecidesAQuestion(t *testing.T) {
	for _, tt := range []struct {
		name  string
		keys  []string
		wants []live.Action
	}{
		{"space", []string{"space"}, nil},
		{"enter", []string{"enter"}, nil},
		{"another letter", []string{"x", "j"}, nil},
		{"once", []string{"y"}, []live.Action{live.Answer{Line: "y"}}},
		{"with the rule", []string{"a"}, []live.Action{live.Answer{Line: "a"}}},
		{"the arguments", []string{"e"}, []live.Action{live.Answer{Line: "e"}}},
		{"no", []string{"r", "enter"}, []live.Action{live.Answer{Line: "n"}}},
		{"no, and why", []string{"r", "t", "o", "o", "enter"}, []live.Action{live.Answer{Line: "n too"}}},
		{"no, and after all yes", []string{"r", "t", "esc", "y"}, []live.Action{live.Answer{Line: "y"}}},
		{"yes, twice", []string{"y", "y"}, []live.Action{live.Answer{Line: "y"}}},
	} {
		m := model()
		play(m, question...)
		var got []live.Action
		for i, k := range tt.keys {
			got = append(got, play(m, at{2000 + i, key(k)})...)
		}
		if !reflect.DeepEqual(got, tt.wants) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.wants)
		}
	}
	m := model()
	play(m, question[0], at{1000, live.Prompt{Choice: &live.Choice{}}})
	if got := play(m, at{2000, key("a")}, at{2001, key("e")}); got != nil {
		t.Errorf("what is not offered is chosen: %v", got)
	}
}

func TestKeysInFlightAnswerNoQuestion(t *testing.T) {
	m := model()
	play(m, typed(900, "tr")...)
	play(m, question...)
	if got := play(m, at{1100, key("y")}, at{1200, key("enter")}, at{1650, key("a")}); got != nil {
		t.Fatalf("%v", got)
	}
	if got := play(m, at{2200, key("y")}); !reflect.DeepEqual(got, []live.Action{live.Answer{Line: "y"}}) {
		t.Errorf("after a pause: %v", got)
	}
	play(m, at{2300, live.Answered{}})
	if got := input(m); got != "> trya" {
		t.Errorf("what was typed is lost: %q", got)
	}
}

func TestMessagesAreSentWithEnter(t *testing.T) {
	enter, later := at{9, key("enter")}, at{9, key("alt+enter")}
	for _, tt := range []struct {
		name  string
		steps []at
		wants []live.Action
	}{
		{"a message", append(typed(0, "go on"), enter), []live.Action{live.Send{Text: "go on"}}},
		{"nothing", []at{{0, key("space")}, enter}, nil},
		{"after the run", append(typed(0, "go"), at{8, live.Working{On: true}}, later), []live.Action{live.Send{Text: "go", Later: true}}},
		{"two lines", append(append(typed(0, "a"), later), append(typed(10, "b"), enter)...), []live.Action{live.Send{Text: "a\nb"}}},
		{"a command", append(typed(0, "/diff x"), enter), []live.Action{live.Command{Line: "diff x"}}},
		{"a command with a paste", append(typed(0, "/review "), at{9, live.Paste{Text: strings.Repeat("x\n", 11)}}, enter), []live.Action{live.Command{Line: "review " + strings.TrimSpace(strings.Repeat("x\n", 11))}}},
		{"a path", append(typed(0, "/tmp/x"), enter), []live.Action{live.Send{Text: "/tmp/x"}}},
		{"a command line", append(typed(0, "!ls"), enter), []live.Action{live.Shell{Line: "ls"}}},
		{"a long paste", []at{{0, live.Paste{Text: strings.Repeat("x\r\n", 11)}}, enter}, []live.Action{live.Send{Text: strings.Repeat("x\n", 11)}}},
		{"a paste taken away", []at{{0, key("k")}, {0, live.Paste{Text: strings.Repeat("x\n", 11)}}, {1, key("backspace")}, enter}, []live.Action{live.Send{Text: "k"}}},
		{"what was sent before", append(append(typed(0, "one"), enter), at{10, key("up")}, enter), []live.Action{live.Send{Text: "one"}, live.Send{Text: "one"}}},
		{"an edited one", append(append(typed(0, "one"), enter), at{10, key("up")}, at{11, key("home")}, at{12, key("x")}, at{13, key("ctrl+k")}, enter), []live.Action{live.Send{Text: "one"}, live.Send{Text: "x"}}},
	} {
		if got := play(model(), tt.steps...); !reflect.DeepEqual(got, tt.wants) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.wants)
		}
	}
}

func TestUnreadMessagesAreEditedUntilTheyAreRead(t *testing.T) {
	waits := at{0, live.Unread{Messages: []live.Message{{ID: 6, Text: "one"}, {ID: 7, Text: "two", Later: true}}}}
	works := at{0, live.Working{On: true}}
	for _, tt := range []struct {
		name  string
		steps []at
		wants []live.Action
	}{
		{"edited", []at{waits, works, {1, key("up")}, {2, key("s")}, {3, key("enter")}}, []live.Action{live.Send{Text: "twos", Later: true, Replaces: 7}}},
		{"taken back", []at{waits, works, {1, key("up")}, {2, key("ctrl+u")}, {3, key("enter")}}, []live.Action{live.Send{Later: true, Replaces: 7}}},
		{"left as it is", []at{waits, works, {1, key("up")}, {2, key("esc")}, {3, key("enter")}}, nil},
		{"read meanwhile", []at{waits, works, {1, key("up")}, {2, live.Unread{}}, {3, key("enter")}}, []live.Action{live.Send{Text: "two"}}},
		{"after an interrupt", []at{waits, {3, key("enter")}}, []live.Action{live.GoOn{}}},
		{"while the run works", []at{waits, works, {3, key("enter")}}, nil},
	} {
		if got := play(model(), tt.steps...); !reflect.DeepEqual(got, tt.wants) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.wants)
		}
	}
	m := model()
	play(m, waits)
	if rows := strings.Join(m.Rows(), "\n"); !strings.Contains(rows, "↳ one\n⇣ two\n") {
		t.Errorf("they are shown as %q", rows)
	}
}

func TestOnlyAWindowWithoutFocusIsNotified(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps []at
		wants []live.Action
	}{
		{"a question", append([]at{{0, live.Focus{}}}, question...), []live.Action{live.Notify{Text: "a question waits for an answer"}}},
		{"the focus is back", append([]at{{0, live.Focus{}}, {1, live.Focus{On: true}}}, question...), nil},
		{"a long run", []at{{0, live.Focus{}}, {0, live.Working{On: true}}, {31000, live.Working{}}}, []live.Action{live.Notify{Text: "the run has ended"}}},
		{"a short run", []at{{0, live.Focus{}}, {0, live.Working{On: true}}, {29000, live.Working{}}}, nil},
		{"a window with the focus", []at{{0, live.Working{On: true}}, {31000, live.Working{}}}, nil},
	} {
		if got := play(model(), tt.steps...); !reflect.DeepEqual(got, tt.wants) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.wants)
		}
	}
}

func TestALongPasteIsFolded(t *testing.T) {
	m := model()
	play(m, at{0, live.Paste{Text: strings.Repeat("x\n", 11)}})
	if got := input(m); got != "> [paste 1: 11 lines]" {
		t.Errorf("%q", got)
	}
	m = model()
	play(m, at{0, live.Paste{Text: strings.Repeat("x\n", 10)}})
	if got := input(m); strings.Contains(got, "paste") {
		t.Errorf("%q", got)
	}
}

func TestKeysStopAndEndTheSession(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps []at
		wants []live.Action
	}{
		{"Ctrl-C parks", []at{{0, key("ctrl+c")}}, []live.Action{live.Park{Leaving: true}}},
		{"twice ends", []at{{0, key("ctrl+c")}, {500, key("ctrl+c")}}, []live.Action{live.Park{Leaving: true}, live.Quit{}}},
		{"much later is once", []at{{0, key("ctrl+c")}, {5000, key("ctrl+c")}}, []live.Action{live.Park{Leaving: true}, live.Park{Leaving: true}}},
		{"another key between", []at{{0, key("ctrl+c")}, {1, key("x")}, {2, key("ctrl+c")}}, []live.Action{live.Park{Leaving: true}, live.Park{Leaving: true}}},
		{"Esc interrupts", []at{{0, live.Working{On: true}}, {1, key("esc")}}, []live.Action{live.Park{}}},
		{"Esc without a run", []at{{1, key("esc")}}, nil},
		{"Esc twice", []at{{1, key("esc")}, {2, key("esc")}}, []live.Action{live.Points{}}},
		{"Esc and Ctrl-C", []at{{1, key("esc")}, {2, key("ctrl+c")}}, []live.Action{live.Park{Leaving: true}}},
		{"Ctrl-D", []at{{1, key("ctrl+d")}}, []live.Action{live.Quit{}}},
		{"Ctrl-D in a text", []at{{1, key("x")}, {2, key("ctrl+d")}}, nil},
		{"at a question", append(question[:2:2], at{1100, key("ctrl+c")}), []live.Action{live.Park{Leaving: true}}},
	} {
		if got := play(model(), tt.steps...); !reflect.DeepEqual(got, tt.wants) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.wants)
		}
	}
}

func TestWordsAreCompleted(t *testing.T) {
	for _, tt := range []struct{ types, shows string }{
		{"/co", "> /co"},
		{"/com", "> /compact"},
		{"see @internal/cl", "> see @internal/cli/code"},
		{"see @x", "> see @x"},
		{"see @my", `> see @"my photo.png"`},
	} {
		m := model()
		play(m, at{0, live.Files{
			Names:    []string{"internal/cli/code.go", "internal/cli/code_live.go", "my photo.png"},
			Commands: []live.Completion{{Word: "cost"}, {Word: "compact"}},
		}})
		play(m, append(typed(0, tt.types), at{100, key("tab")})...)
		if got := input(m); got != tt.shows {
			t.Errorf("%q becomes %q, want %q", tt.types, got, tt.shows)
		}
	}
}

// Terminals paste the path of a file that is dropped on them.
func TestAPastedPathOfAPictureIsAttached(t *testing.T) {
	for pasted, shows := range map[string]string{
		"/tmp/a.png":               "> @/tmp/a.png",
		"'/tmp/my photo.JPG' ":     `> @"/tmp/my photo.JPG"`,
		`/tmp/my\ photo.pdf`:       `> @"/tmp/my photo.pdf"`,
		"file:///tmp/my%20a.webp":  `> @"/tmp/my a.webp"`,
		"~/a.gif":                  "> @~/a.gif",
		"/tmp/a.go":                "> /tmp/a.go",
		"see /tmp/a.png":           "> see /tmp/a.png",
		"/tmp/a.png and /tmp/b.go": "> /tmp/a.png and /tmp/b.go",
		"a.png":                    "> a.png",
	} {
		m := model()
		play(m, at{0, live.Paste{Text: pasted}})
		if got := input(m); got != shows {
			t.Errorf("%q becomes %q, want %q", pasted, got, shows)
		}
	}
}

// Whatever is typed, pasted or asked, no row is wider than the screen or steers it.
func TestRowsFitAndSteerNothing(t *testing.T) {
	for _, width := range []int{12, 40, 200} {
		m := &live.Model{Width: width, Height: 10, Plain: true}
		long := strings.Repeat("wörter 世界\t", 40)
		play(m, at{0, live.Printed{Partial: "\x1b[1m" + long + "\x1b[0m", Doing: long}}, at{0, live.Status{Text: long}},
			at{0, live.Unread{Messages: []live.Message{{Text: "\x1b[2J" + long}}}}, at{0, live.Paste{Text: "\x1b[3Ja\u202e" + long}})
		check := func() {
			t.Helper()
			rows := m.Rows()
			if len(rows) > m.Height {
				t.Errorf("%d rows", len(rows))
			}
			for _, row := range rows {
				if n := columns(row); n >= width && width > 12 {
					t.Errorf("%d columns of %d: %q", n, width, row)
				}
				if strings.Contains(row, "\x1b[2J") || strings.Contains(row, "\x1b[3J") || strings.ContainsAny(row, "\u202e\r\n") {
					t.Errorf("it steers the terminal: %q", row)
				}
			}
		}
		check()
		play(m, at{0, live.Ask{Text: long + "\n" + long}}, at{0, live.Prompt{Choice: &live.Choice{ID: "a"}}},
			at{0, live.Questions{Open: []live.Question{{ID: "a"}, {ID: "b", Subject: long}, {ID: "c", Subject: long}}}})
		check()
	}
}

// Questions that arrive while another is open are listed below it until they are decided.
func TestOtherQuestionsAreAList(t *testing.T) {
	m := &live.Model{Width: 60, Height: 24, Plain: true}
	open := []live.Question{{ID: "a", Subject: "first"}}
	play(m, at{0, live.Ask{Text: "first?\n"}}, at{0, live.Prompt{Choice: &live.Choice{ID: "a"}}})
	for _, step := range []struct{ adds, shows, hides string }{
		{"", "first?", "then:"},
		{"left: touch x", "then: left: touch x", "more"},
		{"right: touch y", "then: right: touch y", "more"},
		{"third", "then: (1 more) right: touch y", "third"},
	} {
		if step.adds != "" {
			open = append(open, live.Question{ID: step.adds, Subject: step.adds})
		}
		play(m, at{700, live.Questions{Open: open}})
		if rows := strings.Join(m.Rows(), "\n"); !strings.Contains(rows, step.shows) || strings.Contains(rows, step.hides) {
			t.Errorf("with %d questions: %s", len(open), rows)
		}
	}
	play(m, at{700, live.Questions{Open: open[:1]}})
	if rows := strings.Join(m.Rows(), "\n"); strings.Contains(rows, "then:") {
		t.Errorf("decided elsewhere: %s", rows)
	}
}

func TestALongQuestionPagesInPlace(t *testing.T) {
	m := model()
	var text strings.Builder
	for i := range 30 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	play(m, at{0, live.Ask{Text: text.String()}}, at{0, live.Prompt{Choice: &live.Choice{}}}, at{600, live.Status{}})
	if rows := strings.Join(m.Rows(), "\n"); !strings.Contains(rows, "line 0\n") || strings.Contains(rows, "line 4\n") || !strings.Contains(rows, "rows 1 to 4 of 30") {
		t.Errorf("the first page: %s", rows)
	}
	play(m, at{1000, key("pgdown")})
	if rows := strings.Join(m.Rows(), "\n"); !strings.Contains(rows, "line 4\n") || strings.Contains(rows, "line 3\n") {
		t.Errorf("the second page: %s", rows)
	}
	play(m, at{1000, live.Answered{}})
	if lines := m.Lines(); len(lines) != 30 {
		t.Errorf("%d lines stay", len(lines))
	}
	if lines := m.Lines(); len(lines) != 0 {
		t.Errorf("%d lines are printed twice", len(lines))
	}
}
