// Package refine contains the parts that a refinement loop adds to the loop of package
// flow: the log that an iteration leaves for the next one, and the task of an
// iteration. The package is pure.
package refine

import (
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/internal/rules/plan"
)

// The default limits of a log.
const (
	Chars      = 300
	MaxEntries = 50
)

// mostPatterns limits the patterns at the head of the log, in characters.
const mostPatterns = 2000

// Log contains the results of a loop's iterations.
type Log struct {
	Entries []Entry
	// Patterns is the head of the log: the latest advice of an iteration to all
	// later ones.
	Patterns string
}

// Entry is the result of one iteration. Numbers count from 1.
type Entry struct {
	Number   int
	Learning string
}

// Add adds the result of an iteration.
func (l *Log) Add(number int, learning, patterns string) {
	l.Entries = append(l.Entries, Entry{number, learning})
	if patterns != "" {
		l.Patterns = patterns
	}
}

// Last returns the text of the newest entry, or "".
func (l *Log) Last() string {
	if len(l.Entries) == 0 {
		return ""
	}
	return l.Entries[len(l.Entries)-1].Learning
}

// Learning returns the part of an output that the log keeps.
func Learning(output string, l plan.Log) string {
	output = strings.TrimSpace(output)
	if l.Extract == plan.ExtractTail {
		return strings.TrimSpace(lastRunes(output, l.Chars))
	}
	return strings.TrimSpace(firstRunes(output, l.Chars))
}

// Patterns returns the lines under the last heading "## Patterns" of an output,
// up to the next heading.
func Patterns(output string) string {
	var found []string
	within := false
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		switch heading := strings.HasPrefix(line, "#"); {
		case strings.TrimSpace(line) == patternsHeading:
			within, found = true, nil
		case within && heading:
			within = false
		case within:
			found = append(found, line)
		}
	}
	return strings.TrimSpace(firstRunes(strings.TrimSpace(strings.Join(found, "\n")), mostPatterns))
}

const patternsHeading = "## Patterns"

func firstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

func lastRunes(text string, n int) string {
	at := len(text)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return text[at:]
}
