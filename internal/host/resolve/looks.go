package resolve

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/event"
)

// plain programs change nothing with any arguments, so computed arguments are harmless
// too.
var plain = strings.Fields(`cat head tail wc ls stat du df pwd echo true false : basename dirname realpath readlink id whoami uname which type
	grep egrep fgrep cut tr comm diff cmp nl tac rev fold paste join md5sum sha1sum sha256sum sha512sum cksum seq sleep expr nproc free uptime
	printenv od hexdump strings getconf tty ps`)

// pathless programs take no files.
var pathless = strings.Fields(`echo printf true false : pwd id whoami uname seq sleep expr nproc free uptime printenv exit return break continue shift wait
	date hostname arch tr basename dirname which type read set ps env`)

// lookOptions are the programs that change nothing if each of their words matches the
// pattern. An unknown option may be a new one that writes or runs something.
var lookOptions = map[string]pattern{
	"find": words(`-[HLPd]|-[0-9].*|-O[0-3]|-[ugoa]*[-+=][-+=,ugoarwxXst]*|-newer[aBcm][aBcmt]|-(i?name|i?path|i?wholename|i?regex|regextype|x?type|size|empty` +
		`|[ac]?newer|[acm]time|[acm]min|used|user|group|[ug]id|nouser|nogroup|perm|readable|writable|executable|links|inum|samefile|i?lname|fstype` +
		`|maxdepth|mindepth|depth|mount|xdev|daystart|follow|noleaf|prune|print0?|printf|ls|quit|true|false|not|and|or|a|o)`),
	"rg": words(`-[abcFHhiIlLnNopPqsSuUvVwx0.]*([ABCdefEgjmMrtT].*)?|--((after-|before-)?context|count(-matches)?|files(-with-matches|-without-match)?` +
		`|fixed-strings|i?glob|heading|hidden|ignore-case|json|line-number|max-(columns|count|depth)|multiline|no-(config|heading|ignore(-vcs)?|line-number)` +
		`|only-matching|pcre2|regexp|smart-case|sort|stats|type(-not|-list)?|version|word-regexp)(=.*)?`),
	"sort": words(`-[bcCdfghiMmnRrsuVz]*([kSt].*)?|--(key|numeric-sort|reverse|unique|version-sort)(=.*)?`),
	"tree": words(`-[aACdDfFghiIJlLnNpPqQrsStuUvxX]+|--(dirsfirst|gitignore|noreport|prune)(=.*)?`),
	"file": words(`-[0bdEhikLlNnprsSv]*([eF].*)?|--(brief|dereference|mime|mime-type)(=.*)?`),
	"date": newPattern(`^(\+.*|-[uR]+|-I[a-z]*|-[dr].+|--(date|reference|rfc-3339)=.*|--(utc|universal|rfc-email|iso-8601)(=.*)?)$`),
	"jq":   words(`-[acCehjMnrRsS]+|--(arg|argjson|args|slurpfile|rawfile|exit-status|tab)(=.*)?`),
	"uniq": newPattern(`^-([cdDiuz]+|[fsw]?[0-9]+|-(count|repeated|unique)|)$`), // a second operand is an output file
	"read": newPattern(`^([a-z_0-9]*|-[ers]+|-[dnNtpu]|-[ers]*[nNtu][0-9.]+)$`),
	"set":  newPattern(`^([-+][abCefmnuvxo]+|--|[^-].*)$`),

	"break": number, "continue": number, "exit": number, "return": number, "shift": number, "wait": number,
}

// number matches a number.
var number = newPattern(`^[0-9]+$`)

// words returns a pattern that matches these options of a program, and every word that
// is not an option.
func words(options string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^(--?|[^-].*|` + options + `)$`) })
}

var (
	sedPrints = newPattern(`^([0-9]+|\$)(,([0-9]+|\$))?p$`)
	// namesFurther matches words with which jq and strings read files that no word
	// names.
	namesFurther = newPattern(`\b(import|include)\b|^@`)
	// findRuns matches the actions of find that run, delete or write something.
	findRuns = newPattern(`^-(exec|execdir|ok|okdir|delete|fls|fprint|fprint0|fprintf|files0-from)$`)
	// showsEnvironments matches words with which ps may show the environments of other
	// processes.
	showsEnvironments = newPattern(`(?i:environ)|^([^-].*)?e|^-.*E`)
)

// reads reports whether a program is known to change nothing, and records what it
// touches. Unknown programs, and known ones with an unknown option, may do anything
// with their arguments.
func (r *reader) reads(name string, args []word, computed bool, dirs []string) bool {
	if name == "git" {
		return r.git(args, computed, dirs)
	}
	r.searched(name, args, dirs)
	if !r.looks(name, args, computed) {
		r.atLeast(event.RiskExecute)
		r.given(args, dirs)
		r.mayDo(name, args, dirs)
		return false
	}
	switch {
	case name == "ps" && slices.ContainsFunc(args, func(a word) bool { return a.computed || showsEnvironments.MatchString(a.text) }):
		r.path(word{text: "/proc"}, dirs, event.PathUse{Tree: true})
	case (name == "jq" || name == "strings") && slices.ContainsFunc(args, func(a word) bool { return namesFurther.MatchString(a.text) }):
		r.unknown(word{text: "what " + name + " is told to read"}, event.PathUse{})
	}
	if !slices.Contains(pathless, name) {
		r.operandFiles(args, dirs)
	}
	return true
}

// looks reports whether a program with these arguments is known to change nothing.
func (r *reader) looks(name string, args []word, computed bool) bool {
	if options, known := lookOptions[name]; known {
		return !computed && !slices.ContainsFunc(args, func(a word) bool { return !options.MatchString(a.text) })
	}
	switch name {
	case "test", "[":
		looks := looksTest(name, args)
		r.notOnlyLooks = r.notOnlyLooks || !looks
		return looks
	case "printf":
		return len(args) > 0 && !args[0].computed && texts.MatchString(args[0].text)
	case "hostname", "env", "arch":
		return len(args) == 0
	case "sed": // sed -n 'FROM,TOp' FILE, which models use for paging
		return !computed && len(args) >= 2 && args[0].text == "-n" && sedPrints.MatchString(args[1].text) &&
			!slices.ContainsFunc(args[2:], func(a word) bool { return strings.HasPrefix(a.text, "-") })
	}
	return slices.Contains(plain, name) && !(strings.HasSuffix(name, "grep") && r.ws.shadowed("grep")) // the others are scripts that run grep
}

// operandFiles records every possible name of a file that is read, including one after
// an option in the same word.
func (r *reader) operandFiles(args []word, dirs []string) {
	options := true
	for _, a := range args {
		isOption := options && strings.HasPrefix(a.text, "-")
		options = options && !a.is("--")
		_, value, attached := strings.Cut(a.text, "=")
		switch {
		case a.text == "" || strings.ContainsRune(a.text, '\n'):
		case !isOption:
			r.path(a, dirs, event.PathUse{Tree: true})
		case a.computed:
			r.unknown(a, event.PathUse{})
		case attached:
			r.existing(value, dirs)
		case a.text[1:] != "" && a.text[1] != '-':
			for i := 2; i < min(5, len(a.text)); i++ {
				r.existing(a.text[i:], dirs)
			}
		}
	}
}

// existing records a file with a name, if there is one.
func (r *reader) existing(name string, dirs []string) {
	for _, dir := range dirs {
		if _, err := os.Lstat(absolute(dir, name)); err == nil && dir != anywhere {
			r.path(word{text: name}, []string{dir}, event.PathUse{Tree: true})
		}
	}
}

// searchers maps the programs that search directories to the options that may take the
// next word as a value, so that it is no file.
var searchers = map[string]pattern{"rg": newPattern(`^(-[a-zA-Z]*[ABCdefEgjmMrtT]|--[a-z-]+)$`), "grep": newPattern(`^(-[a-zA-Z]*[ABCDdefm]|--[a-z-]+)$`)}

// searched records that such a program may search its working directory, because no
// word is known to name another one.
func (r *reader) searched(name string, args []word, dirs []string) {
	recursive := func(a word) bool {
		return a.computed && a.several && !strings.HasPrefix(a.prefix, "/") || strings.HasPrefix(a.text, "--r") || strings.HasPrefix(a.text, "--d") ||
			strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.ContainsAny(a.text, "rRd")
	}
	takes := searchers[name]
	if slices.Contains([]string{"grep", "egrep", "fgrep", "rgrep"}, name) && (name == "rgrep" || slices.ContainsFunc(args, recursive)) {
		takes = searchers["grep"]
	} else if name != "rg" {
		return
	}
	operands, pattern, options := 0, false, true
	for i, a := range args {
		switch isOption := options && strings.HasPrefix(a.text, "-"); {
		case isOption:
			pattern, options = pattern || searchPattern.MatchString(a.text), !a.is("--")
		case i == 0 || !options || !takes.MatchString(args[i-1].text):
			operands++
		}
	}
	if operands == 0 || operands == 1 && !pattern {
		r.path(word{text: "."}, dirs, event.PathUse{Tree: true})
	}
}

// searchPattern matches the options that contain the pattern, so that the first operand
// is a file.
var searchPattern = newPattern(`^(-[a-zA-Z]*[ef]|--(regexp|file)(=.*)?)$`)

// packers are the programs that read everything below the directories in their
// arguments.
var packers = []string{"tar", "gtar", "bsdtar", "zip", "7z", "7za", "7zz", "pax", "rsync", "scp", "ag", "ack"}

// mayDo raises the risk of programs that are not known in detail, and records the files
// that they are known to write.
func (r *reader) mayDo(name string, args []word, dirs []string) {
	if slices.Contains(packers, name) {
		for _, a := range args {
			for _, dir := range dirs {
				if info, err := os.Stat(absolute(dir, a.text)); a.glob || !a.computed && !strings.HasPrefix(a.text, "-") && (dir == anywhere || err == nil && info.IsDir()) {
					r.path(a, []string{dir}, event.PathUse{Tree: true})
				}
			}
		}
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
