package live

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/view/terminal"
)

// The styles of the rows, as parameters of SGR.
const (
	bold    = "1"
	faint   = "2"
	reverse = "7"
	yellow  = "33"
)

// sgr matches the sequences that style text.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Rows returns the rows of the live region: the open question or the unfinished line,
// the messages that are not read yet, the status line and the input.
func (m *Model) Rows() []string {
	var rows []string
	if m.ask.open() {
		rows = m.question()
	} else if m.partial != "" {
		rows = append(rows, m.fit(m.partial, true))
	}
	for i, u := range m.unread {
		if m.ask.open() || i < len(m.unread)-mostUnread {
			continue
		}
		mark := "↳ "
		if u.Later {
			mark = "⇣ "
		}
		if more := len(m.unread) - mostUnread; more > 0 && i == more {
			mark = fmt.Sprintf("(%d before) %s", more, mark)
		}
		text := mark + terminal.FirstLine(u.Text, m.width())
		rows = append(rows, m.paint(faint, m.fit(text, false)))
	}
	if status := m.statusLine(); status != "" {
		rows = append(rows, m.paint(faint, m.fit(status, false)))
	}
	return append(rows, m.inputRows()...)
}

// width is the room of a row: the last column stays empty, because some terminals wrap
// there.
func (m *Model) width() int { return max(m.Width-1, 10) }

// mostUnread bounds the unread messages that are shown, mostBehind the questions after
// the open one.
const (
	mostUnread = 2
	mostBehind = 2
)

// quarter bounds the rows of the input.
func (m *Model) quarter() int { return max(m.Height/4, 1) }

// pageRows is the number of rows of a question: with the keys that answer it, it takes
// half of the screen.
func (m *Model) pageRows() int { return max(m.Height/2-2, 1) }

func (m *Model) paint(style, text string) string {
	if text == "" || m.Plain && style != reverse {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// fit cuts a text that may be styled to the width: its beginning, or its end.
func (m *Model) fit(text string, end bool) string {
	text = strings.ReplaceAll(text, "\t", "    ")
	plain := sgr.ReplaceAllString(text, "")
	if terminal.Columns(plain) <= m.width() {
		return text
	}
	if !end {
		return terminal.Clip(plain, m.width())
	}
	r := []rune(plain)
	from := len(r)
	for room := m.width() - 1; from > 0 && room >= terminal.ColumnsOf(r[from-1]); from-- {
		room -= terminal.ColumnsOf(r[from-1])
	}
	return "…" + string(r[from:])
}

// statusLine describes the run's current work and the session. Where there is no room for
// both, the work is cut to half of it.
func (m *Model) statusLine() string {
	if m.hint != "" {
		return terminal.Harmless(m.hint)
	}
	join := func(parts ...string) string {
		return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
	}
	doing := m.doing
	if over := terminal.Columns(join(m.mode, doing, m.status)) - m.width(); over > 0 {
		doing = terminal.Clip(doing, max(terminal.Columns(doing)-over, m.width()/2))
	}
	return join(m.mode, doing, m.status)
}

// question lays out the open question, a page of it if it is long.
func (m *Model) question() []string {
	var all []string
	for line := range strings.SplitSeq(strings.Trim(m.ask.text, "\n"), "\n") {
		all = append(all, m.wrap(line)...)
	}
	rows := m.pageRows()
	from := min(m.ask.page, max(len(all)-rows, 0))
	m.ask.page = from
	page := all[from:min(from+rows, len(all))]
	if len(all) > rows {
		page = append(page[:len(page):len(page)], m.paint(faint, m.fit("… rows "+span(from, len(page), len(all))+"; PgUp and PgDn show the others", false)))
	}
	for _, behind := range m.laterQuestions() {
		page = append(page[:len(page):len(page)], m.paint(faint, m.fit("then: "+terminal.FirstLine(behind, m.width()), false)))
	}
	if text := m.keys(); text != "" {
		page = append(page[:len(page):len(page)], m.paint(yellow, m.fit(text, false)))
	}
	return page
}

// laterQuestions returns the open questions after the current one.
func (m *Model) laterQuestions() []string {
	if m.ask.now == nil || m.ask.now.Choice == nil || m.Height < 16 {
		return nil
	}
	var all []string
	for _, q := range m.open {
		if q.ID != m.ask.now.Choice.ID {
			all = append(all, q.Subject)
		}
	}
	if more := len(all) - mostBehind; more > 0 {
		all[mostBehind-1] = fmt.Sprintf("(%d more) %s", more, all[mostBehind-1])
	}
	return all[:min(len(all), mostBehind)]
}

// keys says how the open question is answered.
func (m *Model) keys() string {
	switch p := m.ask.now; {
	case p == nil:
		return ""
	case m.ask.settling(m.now):
		return "…"
	case p.Choice == nil:
		return strings.TrimSpace(p.Text) + " (Enter answers)"
	case m.ask.rejecting:
		return "why not? The model reads it (Enter rejects, Esc goes back)"
	default:
		text := "[y]es, once"
		if p.Choice.Allow {
			text += "  [a]llow as shown"
		}
		text += "  [r]eject, with a reason"
		if p.Choice.Edit {
			text += "  [e]dit the arguments"
		}
		return text
	}
}

// wrap lays a line out in rows. A line that does not fit loses its style.
func (m *Model) wrap(line string) []string {
	line = strings.ReplaceAll(line, "\t", "    ")
	plain := sgr.ReplaceAllString(line, "")
	if terminal.Columns(plain) <= m.width() {
		return []string{line}
	}
	var rows []string
	for plain != "" {
		row := cut(plain, m.width())
		rows, plain = append(rows, row), plain[len(row):]
	}
	return rows
}

// cut returns the beginning of a text that fits into a width, at least one character.
func cut(text string, width int) string {
	for i, r := range text {
		if width -= terminal.ColumnsOf(r); width < 0 && i > 0 {
			return text[:i]
		}
	}
	return text
}

// inputRows lays out the input with its cursor; of a long one the rows around it.
func (m *Model) inputRows() []string {
	e := &m.input
	if m.ask.takesLine() {
		e = &m.ask.line
	}
	rows, at := m.layInput(e)
	most := m.quarter()
	from := max(min(at-most/2, len(rows)-most), 0)
	return rows[from:min(from+most, len(rows))]
}

// layInput returns all rows of an editor, and the one with the cursor.
func (m *Model) layInput(e *Editor) (rows []string, at int) {
	const margin = "  "
	var row strings.Builder
	room := m.width() - len(margin)
	left := room
	flush := func() {
		mark := margin
		if len(rows) == 0 {
			mark = m.paint(bold, ">") + " "
		}
		rows = append(rows, mark+row.String())
		row.Reset()
		left = room
	}
	for i := range len(e.text) + 1 {
		r, shown := ' ', " "
		switch {
		case i == len(e.text), e.text[i] == '\n':
		default:
			r = e.text[i]
			shown = strings.ReplaceAll(terminal.Harmless(string(r)), "\t", " ")
		}
		if terminal.Columns(shown) > left {
			flush()
		}
		left -= terminal.Columns(shown)
		if i == e.at {
			shown, at = m.paint(reverse, shown), len(rows)
		}
		if i < len(e.text) || i == e.at {
			row.WriteString(shown)
		}
		if i < len(e.text) && e.text[i] == '\n' {
			flush()
		}
	}
	flush()
	return rows, at
}

// span returns the range of rows that is shown.
func span(from, shown, all int) string {
	return fmt.Sprintf("%d to %d of %d", from+1, from+shown, all)
}
