package resolve

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawlrun/pawl/event"
)

// A command line may change the meaning of its later commands, and a variable or an
// option may contain a command that a program runs. Only setting a variable of the
// line's own is known to be harmless; everything else makes a line unclear, so that
// rules about commands apply.

// carriers are the options whose value is a command line that the program runs.
var carriers = map[string][]string{
	"tar":     {"--to-command", "--checkpoint-action", "--use-compress-program", "-I", "--rsh-command", "--info-script", "--new-volume-script", "-F"},
	"rsync":   {"-e", "--rsh", "--rsync-path"},
	"git":     {"-O", "--open-files-in-pager", "--upload-pack", "--receive-pack", "--exec", "--extcmd", "-x"},
	"rg":      {"--pre", "--hostname-bin"},
	"fd":      {"-x", "-X", "--exec", "--exec-batch"},
	"fdfind":  {"-x", "-X", "--exec", "--exec-batch"},
	"sort":    {"--compress-program"},
	"split":   {"--filter"},
	"man":     {"-P", "--pager"},
	"go":      {"-exec", "-toolexec", "-vettool"},
	"install": {"--strip-program"},
}

// carried marks a line with a command line among the options of a program.
func (r *reader) carried(name string, args []word) {
	if name == "git" && slices.ContainsFunc(args, func(a word) bool { return a.is("clean", "cherry-pick") }) {
		return // -x has another meaning there
	}
	for _, a := range args {
		for _, option := range carriers[name] {
			text, _, _ := strings.Cut(a.text, "=")
			short := len(option) == 2 && len(a.text) > 1 && a.text[0] == '-' && a.text[1] != '-' && strings.IndexByte(a.text, option[1]) > 0
			if named(text, option) || short {
				r.unclear("which command " + name + " runs by " + trim(a.text) + " is not known")
			}
		}
	}
}

// named reports whether a word is an option, including abbreviated long options, which
// many programs accept.
func named(text, option string) bool {
	return text == option || len(text) > 3 && text != "--checkpoint" && strings.HasPrefix(text, "--") && strings.HasPrefix(option, text)
}

// proxy is the suffix of the variables that make programs connect to another machine
// than the requested one. Most are read in lower case.
const proxy = "_proxy"

// carrying matches the variables that contain command lines for programs to run, or
// determine where a shell or git finds something.
var carrying = newPattern(`^(.*PAGER|(GIT_(SEQUENCE_)?)?EDITOR|VISUAL|GIT_(SSH|SSH_COMMAND|PROXY_COMMAND|EXTERNAL_DIFF|ASKPASS|CONFIG.*|DIR|WORK_TREE|EXEC_PATH)` +
	`|SSH_ASKPASS|PROMPT_COMMAND|BROWSER|LESSOPEN|LESSCLOSE|RSYNC_RSH|CVS_RSH|TAR_OPTIONS|CDPATH|IFS)$`)

// assign records the assignment of a variable. Lower-case variables are the line's own;
// others may change what any program does.
func (r *reader) assign(name string, value word) {
	if strings.HasSuffix(strings.ToLower(name), proxy) {
		r.addressed(value)
	}
	if carrying.MatchString(name) && !value.is("cat", "true", ":") || !value.computed && hidesCommands(value.text) {
		r.unclear("it sets " + name + ", by which something may run")
	}
	if !ownVariable(name) {
		r.atLeast(event.RiskExecute)
		if len(r.facts.Commands) < maxFacts {
			r.facts.Commands = append(r.facts.Commands, event.Command{Words: []string{name + "="}, Computed: true})
		}
	}
}

func ownVariable(name string) bool {
	return name == strings.ToLower(name) && !strings.HasSuffix(name, proxy) && !strings.HasPrefix(name, "npm_config_") || strings.HasPrefix(name, "LC_") ||
		slices.Contains([]string{"LANG", "TZ", "NO_COLOR", "CI", "TERM", "COLUMNS"}, name)
}

// assignment reads one assignment. The index of a variable, and the indexes of an
// array, are evaluated.
func (r *reader) assignment(a *syntax.Assign, dirs []string) {
	r.substitutions(a, dirs)
	r.notOnlyLooks = r.notOnlyLooks || a.Index != nil || a.Array != nil || a.Append && a.Value == nil
	if a.Name != nil {
		r.assign(a.Name.Value, wordOf(a.Value))
	}
}

// declare reads export, readonly, local and similar builtins. Only those three are
// known to do no more than assign: the others can give a variable an attribute that
// makes the shell evaluate the value.
func (r *reader) declare(c *syntax.DeclClause, dirs []string) after {
	if c.Variant == nil || !slices.Contains([]string{"export", "readonly", "local"}, c.Variant.Value) {
		r.notOnlyLooks = true
	}
	for _, a := range c.Args {
		// Some shells split this value like any other word.
		w := wordOf(a.Value)
		r.notOnlyLooks = r.notOnlyLooks || w.several
		switch {
		case a.Name != nil && a.Naked && a.Value == nil && a.Index == nil:
		case a.Name != nil:
			r.assignment(a, dirs)
		case !w.is("-p", "--"):
			r.substitutions(a, dirs)
			r.unclear("which variable " + trim(w.text) + " declares, is not known")
		}
	}
	return stay(dirs)
}

// sets marks a builtin that may set a variable which is not the line's own, or change
// how cd treats links (set -P).
func (r *reader) sets(name string, args []word) {
	options := name == "printf" || name == "wait" // the options with which these two set a variable
	for _, a := range args {
		switch {
		case name == "set" && a.is("--"):
			return
		case name == "set" && a.is("physical"), (name == "set" || name == "read") && (a.computed || !lookOptions[name].MatchString(a.text)), name == "getopts",
			options && (strings.HasPrefix(a.text, "-v") || strings.HasPrefix(a.text, "-p")):
			r.unclear("what " + name + " sets is not known")
			return
		}
		options = options && name == "wait"
	}
}

// Some shells run commands in a text that they interpret as a number, a variable name,
// or an index: the command in "x[$(rm y)]" runs, quoted or not, and whether the text
// came from the line or from a file that was read into a variable. A line with such a
// text does not only read.

// hidesCommands reports whether a text that the shell takes literally contains a
// command.
func hidesCommands(text string) bool {
	return strings.Contains(text, "$(") || strings.Contains(text, "`")
}

// evaluators are builtins whose arguments some shells evaluate.
var evaluators = []string{"test", "[", "wait", "unset", "read", "let", "getopts", "shift", "return", "exit", "break", "continue"}

// evaluated marks a builtin whose arguments contain a command to evaluate.
func (r *reader) evaluated(name string, args []word) {
	if slices.Contains(evaluators, name) && slices.ContainsFunc(args, func(a word) bool { return !a.computed && hidesCommands(a.text) }) {
		r.unclear(name + " may run what stands in its words")
		r.atLeast(event.RiskExecute)
	}
}

// expansion records the side effects of an expansion: it may set a variable, and some
// shells evaluate the value of a variable as a prompt, an index or an offset.
func (r *reader) expansion(n *syntax.ParamExp) {
	if n.Exp != nil && n.Param != nil {
		switch n.Exp.Op {
		case syntax.AssignUnset, syntax.AssignUnsetOrNull:
			r.notOnlyLooks = true
			r.assign(n.Param.Value, word{text: "$", computed: true})
		case syntax.OtherParamOps:
			r.notOnlyLooks = true
		}
	}
	r.notOnlyLooks = r.notOnlyLooks || n.Excl || n.Flags != nil || n.Index != nil || n.Slice != nil && !(constant(n.Slice.Offset) && constant(n.Slice.Length))
}

func constant(n syntax.ArithmExpr) bool {
	w, ok := n.(*syntax.Word)
	return n == nil || ok && number.MatchString(w.Lit())
}

// The operators of test that evaluate nothing, unary and binary.
var (
	testsOne = strings.Fields("-b -c -d -e -f -g -h -k -L -n -G -p -r -s -S -u -w -x -z")
	testsTwo = strings.Fields("= == != -nt -ot -ef")
)

// looksTest reports whether a test is known to evaluate nothing. A word that may become
// several words changes the test.
func looksTest(name string, args []word) bool {
	if n := len(args); name == "[" && n > 0 {
		args = args[:n-1] // the closing bracket
	}
	for len(args) > 1 && args[0].is("!") {
		args = args[1:]
	}
	if slices.ContainsFunc(args, func(a word) bool { return a.several }) {
		return false
	}
	switch len(args) {
	case 0, 1:
		return true
	case 2:
		return args[0].is(testsOne...)
	case 3:
		return args[1].is(testsTwo...)
	}
	return false
}

// texts matches a format of printf without numbers. With any other format, some shells
// evaluate the arguments.
var texts = newPattern(`^([^%-]|%%|%[-0-9.+ ]*[sbc])([^%]|%%|%[-0-9.+ ]*[sbc])*$`)
