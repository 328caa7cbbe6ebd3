package resolve

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawlrun/pawl/event"
)

// Some shells run what a text holds when they take it for a number, for the
// name of a variable, or for the index of one: the command in "x[$(rm y)]" runs
// then, quoted or not, and whether it came from the line or from a file that was
// read into a variable. A line of which some shell may do that does not only
// look.

// hidesCommands reports whether a text that the shell takes as it is holds a
// command.
func hidesCommands(text string) bool {
	return strings.Contains(text, "$(") || strings.Contains(text, "`")
}

// evaluators are builtins that some shells let evaluate what they are given.
var evaluators = []string{"test", "[", "wait", "unset", "read", "let", "getopts", "shift", "return", "exit", "break", "continue"}

// evaluated asks about a builtin that is given a command to evaluate by name.
func (r *reader) evaluated(name string, args []word) {
	if !slices.Contains(evaluators, name) && !(name == "printf" && len(args) > 0 && strings.HasPrefix(args[0].text, "-v")) {
		return
	}
	for _, a := range args {
		if !a.computed && hidesCommands(a.text) {
			r.unclear(name + " may run what stands in " + trim(a.text))
			r.atLeast(event.RiskExecute)
		}
	}
}

// evaluates reports whether an expansion sets a variable, or that some shell runs
// what a variable holds to compute it: as a prompt, an index or an offset.
func evaluates(n *syntax.ParamExp) bool {
	if n.Exp != nil {
		switch n.Exp.Op {
		case syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.OtherParamOps:
			return true
		}
	}
	return n.Excl || n.Flags != nil || n.Index != nil || n.Slice != nil && !(constant(n.Slice.Offset) && constant(n.Slice.Length))
}

func constant(n syntax.ArithmExpr) bool {
	w, ok := n.(*syntax.Word)
	return n == nil || ok && w.Lit() != "" && digits(w.Lit())
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// opensFile reports whether a word in front of a redirection may be the
// variable that takes the number of the opened file, with an index:
// {x[i]}>file.
func opensFile(w word) bool {
	return w.computed && strings.HasPrefix(w.text, "{") && strings.HasSuffix(w.text, "}") && strings.Contains(w.text, "[")
}

// numbers reports whether each word is one number, whatever it expands to.
func numbers(args []word) bool {
	return !slices.ContainsFunc(args, func(a word) bool { return !a.number })
}

// The operators of test. Those that are not here are asked about: -v and -R take
// the name of a variable, and -o one of the shell's settings.
var (
	testsOne     = strings.Fields("-a -b -c -d -e -f -g -h -k -L -n -N -O -G -p -r -s -S -u -w -x -z")
	testsTwo     = strings.Fields("= == != < > -nt -ot -ef -a -o")
	testsNumbers = strings.Fields("-eq -ne -gt -ge -lt -le")
)

// looksTest reports whether a test is known to evaluate nothing. A word that may
// become several makes another test of it, and so may a word in the place of an
// operator.
func looksTest(name string, args []word) bool {
	if n := len(args); name == "[" && n > 0 {
		args = args[:n-1] // the closing bracket
	}
	if slices.ContainsFunc(args, func(a word) bool { return a.several }) {
		return false
	}
	for len(args) > 1 && args[0].is("!") {
		args = args[1:]
	}
	switch len(args) {
	case 0, 1:
		return true
	case 2:
		return args[0].is(testsOne...) || args[0].is("-t") && args[1].number
	case 3:
		return args[1].is(testsTwo...) || args[1].is(testsNumbers...) && args[0].number && args[2].number
	}
	for i, a := range args {
		terminal := a.is("-t") && !(i+1 < len(args) && args[i+1].number)
		if a.computed || terminal || a.is("-v", "-R") || a.is(testsNumbers...) {
			return false
		}
	}
	return true
}

// decimal is a constant that no shell evaluates further.
var decimal = newPattern(`^[-+]?[0-9]*\.?[0-9]+$`)

func (w word) decimal() bool { return w.number || !w.computed && decimal.MatchString(w.text) }

// conversion is one conversion of printf's: the last letter says of what.
var conversion = newPattern(`%([-0-9. +#]*)(.)`)

// looksPrintf reports whether a printf is known to evaluate nothing: it names no
// variable, and what it takes for numbers are numbers. The format is used again
// for what is left, and a word that may become several moves those behind it.
func looksPrintf(args []word) bool {
	if len(args) == 0 || args[0].computed || strings.HasPrefix(args[0].text, "-") {
		return false
	}
	found := conversion().FindAllStringSubmatch(strings.ReplaceAll(args[0].text, "%%", ""), -1)
	if strings.Count(strings.ReplaceAll(args[0].text, "%%", ""), "%") != len(found) {
		return false
	}
	values := args[1:]
	moved := slices.ContainsFunc(values, func(a word) bool { return a.several })
	for i, f := range found {
		switch letter := f[2]; {
		case strings.Contains("sbc", letter):
		case !strings.Contains("diouxXeEfFgG", letter):
			return false
		default:
			for at, a := range values {
				if (moved || at%len(found) == i) && !a.decimal() {
					return false
				}
			}
		}
	}
	return true
}
