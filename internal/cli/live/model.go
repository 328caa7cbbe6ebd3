// Package live is the live region of a session at the terminal: the unfinished line of
// an answer, a status line and the input, below text that is printed once.
//
// [Model.Update] changes the state, and returns what has to be done; it does no I/O.
// [Model.Rows] lays the state out, and [Region] draws it. [Screen] connects them with a
// terminal. The package knows neither runs nor the journal.
package live

import (
	"slices"
	"strings"
	"time"
)

// Model is the state of the live region.
type Model struct {
	// Width and Height are the size of the terminal, and Plain switches colors off.
	Width, Height int
	Plain         bool

	files    []string
	commands []Completion
	input    Editor
	history  history
	// partial is the unfinished line of an answer. doing describes the run's current work,
	// status the session, and mode the permissions; hint replaces them until the next key.
	partial, doing, status, mode, hint string
	working                            bool
	// began is when the run began to work, and away reports that the window does not
	// have the focus.
	began  time.Time
	away   bool
	unread []Message
	// edited is the unread message in the input, nil for none.
	edited *Message
	ask    asking
	// open are all open questions.
	open []Question
	// stopped is when the last key was pressed, if it is stopper: Esc or Ctrl-C.
	stopped time.Time
	stopper string
	// now is the time of the last update.
	now time.Time
	// lines are finished lines that are not printed yet.
	lines []string
}

// Message is a message that no request to a model contains yet.
type Message struct {
	// ID identifies it, 0 if it cannot be replaced.
	ID   int64
	Text string
	// Later reports that it waits for the end of the run.
	Later bool
}

// Completion is a word that completes what is typed, with its explanation.
type Completion struct{ Word, Help string }

// These types are the events that [Model.Update] accepts.
type (
	// Key is a pressed key: its name, such as "enter" or "ctrl+c", and its text.
	Key struct{ Name, Text string }
	// Paste is a text that was pasted.
	Paste struct{ Text string }
	// Size is the size of the terminal.
	Size struct{ Width, Height int }
	// Printed brings finished lines, the unfinished one, and what the run does.
	Printed struct {
		Lines          []string
		Partial, Doing string
	}
	// Status is the text of the status line.
	Status struct{ Text string }
	// InMode is the mode of the permissions, "" for the usual one.
	InMode struct{ Text string }
	// Hint is a text in place of the status, until the next key.
	Hint struct{ Text string }
	// Working reports whether a run works.
	Working struct{ On bool }
	// Unread are the messages that are not read yet.
	Unread struct{ Messages []Message }
	// Files are the names that complete a word after @, and Commands those after /.
	Files struct {
		Names    []string
		Commands []Completion
	}
	// Clipboard goes to the clipboard of the terminal: a text in base64.
	Clipboard struct{ Text string }
	// Focus reports whether the terminal's window has the focus.
	Focus struct{ On bool }
	// Draft puts a text into the input, if that is empty.
	Draft struct{ Text string }
)

// Action is something that [Model.Update] wants done.
type Action any

// The actions.
type (
	// Send sends a message, which replaces an unread one, or waits until the run has
	// ended.
	Send struct {
		Text     string
		Later    bool
		Replaces int64
	}
	// GoOn lets the run go on with the unread messages.
	GoOn struct{}
	// Command runs a command of the session, without its slash.
	Command struct{ Line string }
	// Shell runs a command line.
	Shell struct{ Line string }
	// Answer answers the open question with a line.
	Answer struct{ Line string }
	// Park parks the run. Leaving reports that the key was Ctrl-C, which also shows how
	// the session is resumed.
	Park struct{ Leaving bool }
	// Points offers earlier points of the session.
	Points struct{}
	// Mode switches to the next mode.
	Mode struct{}
	// Notify rings the bell and shows a notification (OSC 9).
	Notify struct{ Text string }
	// Quit ends the session.
	Quit struct{}
)

// twice is within which two keys count as the same key pressed twice.
const twice = 2 * time.Second

// Update applies a message at a time.
func (m *Model) Update(msg any, now time.Time) []Action {
	m.now = now
	switch msg := msg.(type) {
	case Size:
		m.Width, m.Height = msg.Width, msg.Height
	case Printed:
		m.lines = append(m.lines, msg.Lines...)
		m.partial, m.doing = msg.Partial, msg.Doing
	case Status:
		m.status = msg.Text
	case InMode:
		m.mode = msg.Text
	case Hint:
		m.hint = msg.Text
	case Focus:
		m.away = !msg.On
	case Working:
		return m.works(msg.On, now)
	case Files:
		m.files, m.commands = msg.Names, msg.Commands
	case Unread:
		m.setUnread(msg.Messages)
	case Draft:
		if m.input.Empty() {
			m.input.Set(msg.Text)
		}
	case Ask:
		m.ask.add(msg, now)
	case Questions:
		m.open = msg.Open
	case Prompt:
		m.ask.prompt(msg, now)
		return m.notify("a question waits for an answer")
	case Answered:
		m.lines = append(m.lines, m.ask.end(msg.Note)...)
	case Paste:
		m.editor(now).Paste(msg.Text)
	case Key:
		m.hint = ""
		return m.key(msg, now)
	}
	return nil
}

// longRun is how long a run works before its end is worth a notification.
const longRun = 30 * time.Second

// works records that a run begins or ends to work.
func (m *Model) works(on bool, now time.Time) []Action {
	was := m.working
	if m.working = on; on && !was {
		m.began = now
	}
	if was && !on && now.Sub(m.began) > longRun {
		return m.notify("the run has ended")
	}
	return nil
}

// notify returns a notification if another window has the focus.
func (m *Model) notify(text string) []Action {
	if m.away {
		return []Action{Notify{text}}
	}
	return nil
}

// Wakes returns after how long the rows change by themselves, 0 for never: the keys that
// answer a question are shown once they count.
func (m *Model) Wakes() time.Duration {
	if m.ask.open() {
		return max(m.ask.lastKey.Add(settleTime).Sub(m.now), 0)
	}
	return 0
}

// Lines returns the finished lines that are to be printed, once.
func (m *Model) Lines() []string {
	lines := m.lines
	m.lines = nil
	return lines
}

// editor returns the editor that typed text goes to.
func (m *Model) editor(now time.Time) *Editor {
	if m.ask.takesLine() && !m.ask.settling(now) {
		return &m.ask.line
	}
	return &m.input
}

// key applies a key.
func (m *Model) key(k Key, now time.Time) []Action {
	again := k.Name == m.stopper && now.Sub(m.stopped) < twice
	m.stopper = ""
	switch k.Name {
	case "ctrl+c":
		if again {
			return []Action{Quit{}}
		}
		m.stopped, m.stopper = now, k.Name
		return []Action{Park{Leaving: true}}
	case "esc":
		m.stopped, m.stopper = now, k.Name
		return m.escape(again)
	case "shift+tab":
		return []Action{Mode{}}
	}
	if m.ask.open() {
		if m.ask.settling(now) { // it was meant for the input
			m.ask.lastKey = now
			if k.Name != "enter" {
				m.input.Key(k)
			}
			return nil
		}
		return m.ask.key(k, m.pageRows())
	}
	switch k.Name {
	case "enter", "alt+enter":
		return m.enter(k.Name == "alt+enter")
	case "ctrl+d":
		if m.input.Empty() {
			return []Action{Quit{}}
		}
	case "up", "down":
		return m.vertical(k.Name == "up")
	case "tab":
		m.complete()
		return nil
	}
	m.input.Key(k)
	m.hint = m.suggestions()
	return nil
}

// escape leaves the reason of a rejection, interrupts the run, or offers earlier points.
func (m *Model) escape(again bool) []Action {
	switch {
	case m.ask.open() && m.ask.leave():
		return nil
	case m.edited != nil:
		m.edited, m.input = nil, Editor{}
		return nil
	case again:
		m.stopper = ""
		return []Action{Points{}}
	case m.working:
		return []Action{Park{}}
	}
	return nil
}

// setUnread sets the unread messages. One that is read while it is edited stays in the
// input as another message.
func (m *Model) setUnread(all []Message) {
	m.unread = all
	if e := m.edited; e != nil && !slices.ContainsFunc(all, func(u Message) bool { return u.ID == e.ID }) {
		m.edited, m.hint = nil, "the message was read meanwhile; Enter sends this as another one"
	}
}

// enter sends the input.
func (m *Model) enter(later bool) []Action {
	text := m.input.Text()
	if later && !m.working {
		m.input.Insert("\n")
		return nil
	}
	if e := m.edited; e != nil {
		m.edited, m.input = nil, Editor{}
		return []Action{Send{Text: strings.TrimSpace(text), Later: later || e.Later, Replaces: e.ID}}
	}
	action := Line(text, later)
	if action == nil {
		if len(m.unread) > 0 && !m.working {
			return []Action{GoOn{}}
		}
		return nil
	}
	m.history.add(m.input)
	m.input = Editor{}
	return []Action{action}
}

// Line returns the action of a line that was typed: a [Command], a [Shell] or a [Send], nil
// for an empty line. A word with a second slash is a path, and no command.
func Line(text string, later bool) Action {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	word, _, _ = strings.Cut(word, "\n")
	switch {
	case word == "":
		return nil
	case len(word) > 1 && text[0] == '/' && strings.Count(word, "/") == 1:
		return Command{strings.TrimSpace(text[1:])}
	case strings.HasPrefix(text, "!"):
		return Shell{strings.TrimSpace(text[1:])}
	}
	return Send{Text: text, Later: later}
}

// vertical moves between the lines of the input and, beyond them, in the history; above
// the input are the messages that are not read yet.
func (m *Model) vertical(up bool) []Action {
	if last := len(m.unread) - 1; up && m.input.Empty() && last >= 0 && m.unread[last].ID != 0 {
		m.edited = &m.unread[last]
		m.input.Set(m.edited.Text)
		m.hint = "Enter replaces this message, without a text it is taken back; Esc leaves it as it is"
		return nil
	}
	if !m.input.row(up) {
		m.history.move(&m.input, up)
	}
	return nil
}
