package resolve

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// plain programs change nothing whatever they are given, so that an argument
// that is computed when they run does no harm either.
var plain = strings.Fields(`cat head tail wc ls stat du df pwd echo true false : basename dirname realpath readlink id whoami uname which type
	grep cut tr comm diff cmp nl tac rev fold paste join md5sum sha1sum sha256sum sha512sum cksum seq sleep expr nproc free uptime
	printenv od hexdump strings getconf tty ps`)

// reads reports whether a program that is not known to change anything is known
// to change nothing, and notes what it touches. A program that is not known is
// one that may do anything with what it is given, and so is one with an option
// that is not known.
func (r *reader) reads(name string, args []word, computed bool, dirs []string) bool {
	if name == "git" {
		return r.git(args, !computed, dirs)
	}
	r.searched(name, args, dirs)
	if !r.looks(name, args, computed) {
		r.atLeast(event.RiskExecute)
		r.given(args, dirs)
		r.mayDo(name, args, dirs)
		return false
	}
	if name == "ps" && slices.ContainsFunc(args, showsEnvironments) {
		r.path(word{text: "/proc"}, dirs, event.PathUse{Tree: true})
	}
	r.optionFiles(name, args, dirs)
	r.listed(name, args, dirs)
	r.imports(name, args)
	if !slices.Contains(pathless, name) {
		r.operandFiles(args, dirs)
	}
	return true
}

// showsEnvironments reports whether ps may show what other processes have in their
// environments.
func showsEnvironments(a word) bool {
	return a.computed || strings.Contains(strings.ToLower(a.text), "environ") || strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "E") ||
		!strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "e")
}

// operandFiles notes what could be the name of a file that is read.
func (r *reader) operandFiles(args []word, dirs []string) {
	options := true
	for _, a := range args {
		isOption := options && strings.HasPrefix(a.text, "-")
		options = options && !a.is("--")
		if a.text != "" && !isOption && !strings.ContainsRune(a.text, '\n') {
			r.path(a, dirs, event.PathUse{Tree: true})
		}
	}
}

// imports notes that a program for jq may read files that it names itself.
func (r *reader) imports(name string, args []word) {
	if name != "jq" {
		return
	}
	for _, a := range args {
		if jqImports.MatchString(a.text) {
			r.unknown(a, event.PathUse{})
		}
	}
}

var jqImports = newPattern(`\b(import|include)\b`)

// looks reports whether a program with these arguments is known to change nothing.
func (r *reader) looks(name string, args []word, computed bool) bool {
	if slices.Contains(plain, name) {
		return true
	}
	if options, known := lookOptions[name]; known {
		return !computed && len(written(name, args)) == 0 &&
			!slices.ContainsFunc(args, func(a word) bool { return !options.MatchString(a.text) })
	}
	switch name {
	case "test", "[":
		looks := looksTest(name, args)
		r.notOnlyLooks = r.notOnlyLooks || !looks
		return looks
	case "printf":
		return looksPrintf(args)
	case "break", "continue", "exit", "return", "shift", "wait":
		return numbers(args)
	case "hostname", "env", "arch":
		return len(args) == 0
	case "egrep", "fgrep": // scripts that run grep
		return !r.ws.shadowed("grep")
	case "sed":
		return !computed && printsOnly(args)
	}
	return false
}

// pathless programs take no files.
var pathless = []string{
	"echo", "printf", "true", "false", ":", "pwd", "id", "whoami", "uname", "seq", "sleep", "expr", "nproc", "free", "uptime", "printenv", "exit", "return",
	"break", "continue", "shift", "wait", "date", "hostname", "tr", "basename", "dirname", "which", "type", "read", "set", "ps", "git", "env",
}

var sedPrints = newPattern(`^([0-9]+|\$)(,([0-9]+|\$))?p$`)

// printsOnly recognises sed -n 'FROM,TOp' FILE, which models use to page.
func printsOnly(args []word) bool {
	return len(args) >= 2 && args[0].text == "-n" && sedPrints.MatchString(args[1].text) &&
		!slices.ContainsFunc(args[2:], func(a word) bool { return strings.HasPrefix(a.text, "-") })
}

// findRuns are the actions of find that run, delete or write something.
var findRuns = newPattern(`^-(exec|execdir|ok|okdir|delete|fls|fprint|fprint0|fprintf|files0-from)$`)

// mayDo raises the risk of programs that are not known in detail, and notes
// the files that they are known to write.
func (r *reader) mayDo(name string, args []word, dirs []string) {
	for _, w := range written(name, args) {
		r.writes(w, dirs)
	}
	if slices.Contains(packers, name) && !unpacks(name, args) {
		r.packed(args, dirs)
	}
	switch {
	case slices.Contains(senders, name):
		r.atLeast(event.RiskSend)
		r.downloads(name, args, dirs)
	case name == "sed" || name == "perl":
		inPlace := slices.ContainsFunc(args, func(a word) bool {
			return strings.HasPrefix(a.text, "--in-place") || strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "i")
		})
		for _, a := range args {
			if inPlace && (a.computed || !strings.HasPrefix(a.text, "-")) && !strings.ContainsAny(a.text, "\n;") {
				r.path(a, dirs, event.PathUse{Write: true})
			}
		}
	case name == "find":
		if slices.ContainsFunc(args, func(a word) bool { return a.computed && !a.glob || findRuns.MatchString(a.text) }) {
			r.unclear("find runs or deletes what it finds")
		}
	case name == "passwd" || name == "usermod" || name == "setfacl" || name == "visudo":
		r.atLeast(event.RiskPermission)
	}
}
