package live

import "strings"

// history is what was typed before.
type history struct {
	sent []Editor
	// at is the shown one, and draft the input that it replaced; at is len(sent) for
	// the input itself.
	at    int
	draft Editor
}

// add appends an input.
func (h *history) add(e Editor) {
	h.sent = append(h.sent, e)
	h.at = len(h.sent)
}

// move shows an earlier or later input.
func (h *history) move(e *Editor, up bool) {
	to := h.at + 1
	if up {
		to = h.at - 1
	}
	if to < 0 || to > len(h.sent) {
		return
	}
	if h.at == len(h.sent) {
		h.draft = *e
	}
	if h.at = to; to == len(h.sent) {
		*e = h.draft
		return
	}
	*e = h.sent[to]
	e.text, e.at = append([]rune(nil), e.text...), len(e.text)
}

// row moves the cursor to the line above or below, and reports whether there is one.
func (e *Editor) row(up bool) bool {
	start := e.lineStart()
	column := e.at - start
	if up {
		if start == 0 {
			return false
		}
		e.at = start - 1
		e.at = min(e.lineStart()+column, start-1)
		return true
	}
	end := e.lineEnd()
	if end == len(e.text) {
		return false
	}
	e.at = end + 1
	e.at = min(e.at+column, e.lineEnd())
	return true
}

// complete completes the word at the cursor, as far as it is certain.
func (m *Model) complete() {
	word, from := m.input.word()
	fits := m.fits(word, from)
	if len(fits) == 0 {
		return
	}
	common := fits[0].Word
	for _, f := range fits[1:] {
		for !strings.HasPrefix(f.Word, common) {
			common = common[:len(common)-1]
		}
	}
	if common = strings.ToValidUTF8(common, ""); len(fits) == 1 {
		common = quoted(common) + " "
	}
	if len(common) > len(word) {
		m.input.cut(from, m.input.at)
		m.input.Insert(common)
	}
	m.hint = m.suggestions()
}

// quoted returns a word behind @ in quotes if it has blanks.
func quoted(word string) string {
	if name, is := strings.CutPrefix(word, "@"); is && strings.Contains(name, " ") {
		return `@"` + name + `"`
	}
	return word
}

// fits returns the completions of a word at a position.
func (m *Model) fits(word string, from int) (fits []Completion) {
	switch {
	case strings.HasPrefix(word, "/") && from == 0:
		for _, c := range m.commands {
			if strings.HasPrefix("/"+c.Word, word) {
				fits = append(fits, Completion{"/" + c.Word, c.Help})
			}
		}
	case strings.HasPrefix(word, "@"):
		for _, f := range m.files {
			if strings.HasPrefix("@"+f, word) {
				fits = append(fits, Completion{Word: "@" + f})
			}
		}
	}
	return fits
}

// suggestions returns the completions of the word at the cursor in one line.
func (m *Model) suggestions() string {
	word, from := m.input.word()
	if len(word) == 0 {
		return ""
	}
	const most = 8
	var words []string
	fits := m.fits(word, from)
	for _, f := range fits[:min(len(fits), most)] {
		if len(fits) == 1 && f.Help != "" {
			return f.Word + "  " + f.Help
		}
		words = append(words, f.Word)
	}
	if len(fits) > most {
		words = append(words, "…")
	}
	return strings.Join(words, "  ")
}
