package live

import (
	"slices"
	"strings"
	"time"
)

// A question is open from its first [Ask] or [Prompt] to [Answered].
type (
	// Ask adds a text to the question.
	Ask struct{ Text string }
	// Prompt waits for an answer to the question. Choice is nil for a line of text.
	Prompt struct {
		Text   string
		Choice *Choice
	}
	// Answered closes the question, with a note behind it.
	Answered struct{ Note string }
)

// Choice is a decision by one key.
type Choice struct {
	// Allow reports that the answer may also be a rule, Edit that the arguments may be
	// changed.
	Allow, Edit bool
	// ID is the question among the open ones.
	ID string
}

// Questions are all open questions, in the order in which they came.
type Questions struct{ Open []Question }

// Question is an open question in a list.
type Question struct{ ID, Subject string }

// settleTime is how long keys must pause before they answer a question, because keys
// pressed while it appears were meant for the input.
const settleTime = 500 * time.Millisecond

// asking is the open question.
type asking struct {
	// text is the question, given what it shows of the answer, and page the first row
	// that is shown.
	text string
	page int
	// now is the prompt that waits for an answer, nil for none.
	now *Prompt
	// lastKey is the time of the last key that did not answer the question.
	lastKey time.Time
	// rejecting reports that the reason of a rejection is typed.
	rejecting bool
	line      Editor
}

// add adds a text.
func (a *asking) add(q Ask, now time.Time) {
	if !a.open() {
		a.lastKey = now
	}
	a.text += q.Text
}

// prompt begins to wait for an answer.
func (a *asking) prompt(p Prompt, now time.Time) {
	if !a.open() {
		a.lastKey = now
	}
	a.now, a.rejecting, a.line = &p, false, Editor{}
}

// open reports whether a question is open.
func (a *asking) open() bool { return a.text != "" || a.now != nil }

// settling reports whether it is too early for keys to answer.
func (a *asking) settling(now time.Time) bool { return now.Sub(a.lastKey) < settleTime }

// takesLine reports whether text is typed as the answer.
func (a *asking) takesLine() bool { return a.now != nil && (a.now.Choice == nil || a.rejecting) }

// end closes the question, and returns its lines.
func (a *asking) end(note string) []string {
	lines := slices.DeleteFunc(strings.Split(a.text, "\n"), func(line string) bool { return line == "" })
	if note != "" {
		lines = append(lines, note)
	}
	*a = asking{}
	return lines
}

// leave returns from the reason of a rejection to the question, and reports whether it
// was typed.
func (a *asking) leave() bool {
	was := a.rejecting
	a.rejecting, a.line = false, Editor{}
	return was
}

// key applies a key. Only a letter decides: Space and Enter approve nothing.
func (a *asking) key(k Key, rows int) []Action {
	switch k.Name {
	case "pgdown":
		a.page += rows
		return nil
	case "pgup":
		a.page = max(a.page-rows, 0)
		return nil
	}
	if a.now == nil {
		return nil
	}
	if a.takesLine() {
		if k.Name != "enter" {
			a.line.Key(k)
			return nil
		}
		text := a.line.Text()
		if a.rejecting {
			text = strings.TrimSpace("n " + text)
		}
		return a.answer(text)
	}
	switch k.Text {
	case "y":
		return a.answer("y")
	case "a":
		if a.now.Choice.Allow {
			return a.answer("a")
		}
	case "e":
		if a.now.Choice.Edit {
			return a.answer("e")
		}
	case "r", "n":
		a.rejecting = true
	}
	return nil
}

// answer gives a line as the answer.
func (a *asking) answer(line string) []Action {
	a.now, a.rejecting = nil, false
	return []Action{Answer{line}}
}
