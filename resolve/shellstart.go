package resolve

import (
	"strings"

	"github.com/pawlrun/pawl/event"
)

var shells = []string{"sh", "bash", "dash", "ash"}

// shellSettings are the values of a shell's option -o that change nothing about
// which commands it runs.
var shellSettings = []string{
	"allexport", "errexit", "errtrace", "functrace", "ignoreeof", "noclobber", "noexec", "noglob", "nounset", "pipefail", "posix", "verbose", "xtrace",
}

// shell reads the command line that a shell is given, with the shell's other
// arguments as values that are not known. A shell that reads its commands from
// its input is unclear.
func (r *reader) shell(name string, args []word, dirs []string, depth int) {
	started, ok := startOf(args)
	switch {
	case !ok || started.byText && len(started.operands) == 0:
		r.unclear("which commands " + name + " runs, is not known before it runs")
	case started.byText:
		r.notOnlyLooks = r.notOnlyLooks || started.profile
		r.nested(started.operands[0], dirs, depth)
	case len(started.operands) > 0:
		r.atLeast(event.RiskExecute)
		r.given(started.operands, dirs)
	default:
		r.unclear(name + " runs what it is given as input")
	}
}

// shellStart is how a shell is started: with a text of commands, which is its
// first operand, or with a file of them. profile says that it runs files of its
// user's before.
type shellStart struct {
	byText, profile bool
	operands        []word
}

// startOf reads the options of a shell. It reports false where it is not known
// which of the words is what the shell runs.
func startOf(args []word) (start shellStart, ok bool) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.computed && !start.byText, strings.HasPrefix(a.text, "--"), a.text == "-", a.text == "+":
			return start, false
		case a.computed, a.text == "", a.text[0] != '-' && a.text[0] != '+':
			start.operands = args[i:]
			return start, true
		}
		letters := a.text[1:]
		if strings.ContainsAny(letters, "sOP") {
			return start, false
		}
		start.byText = start.byText || strings.Contains(letters, "c")
		start.profile = start.profile || strings.ContainsAny(letters, "il")
		for range strings.Count(letters, "o") { // each has its value in a word of its own
			if i++; i == len(args) || !args[i].is(shellSettings...) {
				return start, false
			}
		}
	}
	return start, true
}
