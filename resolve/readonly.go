package resolve

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// plain programs change nothing whatever they are given, so that an argument
// that is computed when they run does no harm either.
var plain = []string{
	"cat", "head", "tail", "wc", "ls", "stat", "du", "df", "pwd", "echo", "true", "false", "test", "[", ":", "basename", "dirname",
	"realpath", "readlink", "id", "whoami", "uname", "which", "type", "grep", "egrep", "fgrep", "cut", "tr", "comm", "diff", "cmp", "nl", "tac",
	"rev", "fold", "paste", "join", "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "seq", "sleep", "expr", "nproc", "free", "uptime",
	"printenv", "od", "hexdump", "strings", "break", "continue", "exit", "return", "shift", "wait", "getconf", "arch", "tty",
}

// guarded programs change nothing unless an argument matches, which would make
// them run or write something.
var guarded = map[string]pattern{
	"find":   newPattern(`^-(exec|execdir|ok|okdir|delete|fls|fprint|fprint0|fprintf|files0-from)$`),
	"rg":     newPattern(`^(--pre|--pre=.*|--hostname-bin.*|-[a-zA-Z]*z[a-zA-Z]*|--search-zip)$`),
	"sort":   newPattern(`^(-[a-zA-Z]*[oT].*|--o.*|--comp.*|--temp.*|--files0.*)$`),
	"tree":   newPattern(`^(-[a-zA-Z]*[oR].*|--output.*)$`),
	"file":   newPattern(`^(-[a-zA-Z]*[Cm].*|--compile|--magic.*)$`),
	"date":   newPattern(`^(-[a-zA-Z]*s.*|--s.*|[^+].*)$`),
	"jq":     newPattern(`^(-[a-zA-Z]*[fL].*|--from-file.*)$`),
	"printf": newPattern(`^-`),
	"read":   newPattern(`^[^-]*[^a-z_0-9-]`),
	"ps":     newPattern(`^$`),
	"set":    newPattern(`^[^-+]`),
	"git":    newPattern(`^(--ou.*|-o.*|--ext.*|--textc.*|-[a-zA-Z]*O.*|--op.*|--exec.*|--pag.*|-p|-c|--config-env.*|--git-d.*|--work-t.*|-C|--conte.*)$`),
}

// reads says whether a program that is not known to change anything is known
// to change nothing, and notes what it touches. A program that is not known is
// one that may do anything with what it is given.
func (r *reader) reads(name string, args []word, computed bool, dirs []string) bool {
	options, known := guarded[name]
	switch {
	case slices.Contains(plain, name):
		known = true
	case known:
		known = !computed && !slices.ContainsFunc(args, func(a word) bool { return options.MatchString(a.text) })
	case name == "uniq" || name == "xxd":
		known = !computed && operands(args) <= 1 && !slices.ContainsFunc(args, func(a word) bool { return strings.HasPrefix(a.text, "-r") })
	case name == "sed":
		known = !computed && printsOnly(args)
	case name == "hostname" || name == "env":
		known = len(args) == 0
	}
	if name == "git" {
		return r.git(args, known, dirs)
	}
	if !known {
		r.atLeast(event.RiskExecute)
		r.given(args, dirs)
		r.mayDo(name, args, dirs)
		return false
	}
	if !slices.Contains(pathless, name) {
		for _, a := range args {
			if a.text != "" && !strings.HasPrefix(a.text, "-") && !strings.ContainsRune(a.text, '\n') {
				r.path(a, dirs, event.PathUse{Tree: true})
			}
		}
	}
	return true
}

// pathless programs take no files.
var pathless = []string{
	"echo", "printf", "true", "false", ":", "pwd", "id", "whoami", "uname", "seq", "sleep", "expr", "nproc", "free", "uptime", "printenv", "exit", "return",
	"break", "continue", "shift", "wait", "date", "hostname", "tr", "basename", "dirname", "which", "type", "read", "set", "ps", "git", "env",
}

func operands(args []word) int {
	n := 0
	for _, a := range args {
		if !strings.HasPrefix(a.text, "-") {
			n++
		}
	}
	return n
}

var sedPrints = newPattern(`^([0-9]+|\$)(,([0-9]+|\$))?p$`)

// printsOnly recognises sed -n 'FROM,TOp' FILE, which models use to page.
func printsOnly(args []word) bool {
	return len(args) >= 2 && args[0].text == "-n" && sedPrints.MatchString(args[1].text) &&
		!slices.ContainsFunc(args[2:], func(a word) bool { return strings.HasPrefix(a.text, "-") })
}

// mayDo raises the risk of programs that are not known in detail, and notes
// the files that they are known to write.
func (r *reader) mayDo(name string, args []word, dirs []string) {
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
		if slices.ContainsFunc(args, func(a word) bool { return a.computed && !a.glob || guarded["find"].MatchString(a.text) }) {
			r.unclear("find runs or deletes what it finds")
		}
	case name == "passwd" || name == "usermod" || name == "setfacl" || name == "visudo":
		r.atLeast(event.RiskPermission)
	}
}
