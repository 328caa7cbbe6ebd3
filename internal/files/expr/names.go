package expr

import (
	"strings"

	"cel.dev/cel-go/parser/gen"
	"github.com/antlr4-go/antlr/v4"
)

// withStepNames makes steps.ID and steps["ID"] equivalent for any id: CEL parses the
// hyphen of steps.list-services as a minus, which steps do not support. It returns the
// expression with such ids in backticks, and where each of them made the text longer.
func withStepNames(text string) (string, []shift) {
	var b strings.Builder
	var shifts []shift
	done, last := 0, 0
	for _, t := range tokens(text) {
		end := t.GetStop() + 1
		if t.GetText() == "steps" && last != gen.CELLexerDOT {
			if id, length := stepName(text[end:]); id != "" {
				b.WriteString(text[done:end] + ".`" + id + "`")
				done = end + length
				shifts = append(shifts, shift{at: b.Len(), by: len(id) + 3 - length})
			}
		}
		if t.GetChannel() == antlr.TokenDefaultChannel {
			last = t.GetTokenType()
		}
	}
	b.WriteString(text[done:])
	return b.String(), shifts
}

// tokens returns the tokens of an expression with their byte offsets: the lexer counts
// characters, so it gets one for each byte. The parser reports invalid input.
func tokens(text string) []antlr.Token {
	characters := make([]rune, len(text))
	for i := range len(text) {
		characters[i] = rune(text[i])
	}
	lexer := gen.NewCELLexer(antlr.NewInputStream(string(characters)))
	lexer.RemoveErrorListeners()
	return lexer.GetAllTokens()
}

// shift is the growth of a text from an offset on.
type shift struct{ at, by int }

// original converts an offset in the longer text to one in the original text.
func original(offset int, shifts []shift) int {
	for i := len(shifts) - 1; i >= 0; i-- {
		if offset >= shifts[i].at {
			offset -= shifts[i].by
		}
	}
	return offset
}

// stepName returns the id after "steps", and the length of its text.
func stepName(rest string) (id string, length int) {
	at := spaces(rest, 0)
	switch {
	case at == len(rest):
		return "", 0
	case rest[at] == '.':
		from := spaces(rest, at+1)
		to := from
		for to < len(rest) && (isWord(rest[to]) || rest[to] == '-' && to > from) {
			to++
		}
		if next := spaces(rest, to); to == from || next < len(rest) && rest[next] == '(' {
			return "", 0 // a method, such as steps.size()
		}
		return rest[from:to], to
	case rest[at] == '[':
		from := spaces(rest, at+1)
		if from == len(rest) || rest[from] != '"' && rest[from] != '\'' {
			return "", 0
		}
		to := from + 1
		for to < len(rest) && (isWord(rest[to]) || rest[to] == '-') {
			to++
		}
		if to == len(rest) || rest[to] != rest[from] || to == from+1 {
			return "", 0
		}
		if end := spaces(rest, to+1); end < len(rest) && rest[end] == ']' {
			return rest[from+1 : to], end + 1
		}
	}
	return "", 0
}

func spaces(text string, at int) int {
	for at < len(text) && isSpace(text[at]) {
		at++
	}
	return at
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
