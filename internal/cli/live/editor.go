package live

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// foldedLines is the number of lines above which pasted text is folded.
const foldedLines = 10

// Editor is the text of the input, with a cursor. The zero value is empty.
type Editor struct {
	text []rune
	// at is the position of the cursor.
	at int
	// folds holds pasted texts by the words that stand for them.
	folds map[string]string
}

// Shown returns the text as it is shown: with a folded paste as one word.
func (e *Editor) Shown() string { return string(e.text) }

// Text returns the text with all pastes.
func (e *Editor) Text() string {
	text := string(e.text)
	for word, paste := range e.folds {
		text = strings.ReplaceAll(text, word, paste)
	}
	return text
}

// Empty reports whether there is no text.
func (e *Editor) Empty() bool { return len(e.text) == 0 }

// Set replaces the text, and moves the cursor behind it.
func (e *Editor) Set(text string) { e.text, e.at, e.folds = []rune(text), len([]rune(text)), nil }

// Insert inserts a text at the cursor.
func (e *Editor) Insert(text string) {
	add := []rune(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"))
	e.text = slices.Insert(e.text, e.at, add...)
	e.at += len(add)
}

// Paste inserts a pasted text. A long one is folded.
func (e *Editor) Paste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if path := picture(text); path != "" {
		e.Insert(quoted("@" + path))
		return
	}
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	if lines <= foldedLines {
		e.Insert(text)
		return
	}
	if e.folds == nil {
		e.folds = map[string]string{}
	}
	word := fmt.Sprintf("[paste %d: %d lines]", len(e.folds)+1, lines)
	e.folds[word] = text
	e.Insert(word)
}

// picture returns the path of a pasted text that is nothing but the path of an image or
// a PDF, as terminals paste a file that is dropped on them: quoted, with backslashes, or as
// an address. It is "" for another text.
func picture(text string) string {
	path := strings.TrimSpace(text)
	quote := path[:min(len(path), 1)]
	switch u, err := url.Parse(path); {
	case err == nil && u.Scheme == "file":
		path = u.Path
	case (quote == "'" || quote == `"`) && len(path) > 1 && strings.HasSuffix(path, quote):
		path = path[1 : len(path)-1]
	case strings.Contains(strings.ReplaceAll(path, `\ `, ""), " "):
		return ""
	default:
		path = strings.ReplaceAll(path, `\`, "")
	}
	if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "~/") || strings.ContainsAny(path, "\n\"") || !Attaches(path) {
		return ""
	}
	return path
}

// Attaches reports whether a name is one of an image or a document, which a message sends
// along.
func Attaches(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf":
		return true
	}
	return false
}

// Key applies a key that edits or moves.
func (e *Editor) Key(k Key) {
	switch k.Name {
	case "left", "ctrl+b":
		e.at = max(e.at-1, 0)
	case "right", "ctrl+f":
		e.at = min(e.at+1, len(e.text))
	case "home", "ctrl+a":
		e.at = e.lineStart()
	case "end", "ctrl+e":
		e.at = e.lineEnd()
	case "alt+left", "alt+b", "ctrl+left":
		e.at = e.wordStart()
	case "alt+right", "alt+f", "ctrl+right":
		e.at = e.wordEnd()
	case "backspace", "ctrl+h":
		e.cut(e.at-max(e.foldBefore(), 1), e.at)
	case "delete", "ctrl+d":
		e.cut(e.at, e.at+1)
	case "ctrl+w", "alt+backspace":
		e.cut(e.wordStart(), e.at)
	case "ctrl+u":
		e.cut(e.lineStart(), e.at)
	case "ctrl+k":
		e.cut(e.at, e.lineEnd())
	case "ctrl+j", "shift+enter":
		e.Insert("\n")
	default:
		e.Insert(k.Text)
	}
}

// cut removes the characters between two positions.
func (e *Editor) cut(from, to int) {
	from, to = max(from, 0), min(to, len(e.text))
	if from < to {
		e.text = slices.Delete(e.text, from, to)
		e.at = from
	}
}

// foldBefore returns the length of the folded paste that ends at the cursor, 0 for none.
func (e *Editor) foldBefore() int {
	for word := range e.folds {
		if strings.HasSuffix(string(e.text[:e.at]), word) {
			return len([]rune(word))
		}
	}
	return 0
}

func (e *Editor) lineStart() int {
	return e.at - len(e.text[:e.at][lastIndex(e.text[:e.at], '\n')+1:])
}

func (e *Editor) lineEnd() int {
	if i := slices.Index(e.text[e.at:], '\n'); i >= 0 {
		return e.at + i
	}
	return len(e.text)
}

func lastIndex(text []rune, r rune) int {
	for i, c := range slices.Backward(text) {
		if c == r {
			return i
		}
	}
	return -1
}

func (e *Editor) wordStart() int {
	at := e.at
	for at > 0 && unicode.IsSpace(e.text[at-1]) {
		at--
	}
	for at > 0 && !unicode.IsSpace(e.text[at-1]) {
		at--
	}
	return at
}

func (e *Editor) wordEnd() int {
	at := e.at
	for at < len(e.text) && unicode.IsSpace(e.text[at]) {
		at++
	}
	for at < len(e.text) && !unicode.IsSpace(e.text[at]) {
		at++
	}
	return at
}

// word returns the word that ends at the cursor, and where it begins.
func (e *Editor) word() (word string, from int) {
	from = e.wordStart()
	if from < e.at && unicode.IsSpace(e.text[e.at-1]) {
		from = e.at
	}
	return string(e.text[from:e.at]), from
}
