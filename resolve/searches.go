package resolve

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// search is how a program that looks for text is told where: values are the
// short options that take a word, and recursive says that it goes through the
// directory where it runs when no word names another.
type search struct {
	values    string
	recursive func(args []word) bool
}

func always([]word) bool { return true }

var searchers = map[string]search{
	"grep":  {"ABCDdefm", grepsTrees},
	"egrep": {"ABCDdefm", grepsTrees},
	"fgrep": {"ABCDdefm", grepsTrees},
	"rgrep": {"ABCDdefm", always},
	"rg":    {"ABCdefEgjmMrtT", always},
}

// grepsTrees reports whether grep may be told to go through directories.
func grepsTrees(args []word) bool {
	for _, a := range args {
		long, isLong := strings.CutPrefix(a.text, "--")
		long, _, _ = strings.Cut(long, "=")
		switch {
		case a.computed && !strings.HasPrefix(a.prefix, "/") && a.several:
			return true
		case isLong && long != "" && mayMean(long, "recursive dereference-recursive directories"),
			!isLong && strings.HasPrefix(a.text, "-") && strings.ContainsAny(a.text, "rRd"):
			return true
		}
	}
	return false
}

// searched notes the directory that a program searches because no word names
// what it is to search. Where a word may be the value of an option, it is taken
// for that.
func (r *reader) searched(name string, args []word, dirs []string) {
	s, ok := searchers[name]
	if !ok || !s.recursive(args) {
		return
	}
	operands, pattern, options := 0, false, true
	for i := 0; i < len(args); i++ {
		text := args[i].text
		long, isLong := strings.CutPrefix(text, "--")
		switch {
		case options && text == "--":
			options = false
		case options && isLong:
			name, _, attached := strings.Cut(long, "=")
			pattern = pattern || mayMean(name, "regexp file files")
			if !attached {
				i += s.takesNext(name)
			}
		case options && len(text) > 1 && text[0] == '-':
			at := strings.IndexAny(text, s.values)
			pattern = pattern || at > 0 && strings.IndexByte("ef", text[at]) >= 0
			if at == len(text)-1 {
				i++
			}
		default:
			operands++
		}
	}
	if operands == 0 || operands == 1 && !pattern {
		r.path(word{text: "."}, dirs, event.PathUse{Tree: true})
	}
}

// gitGreps notes what git grep searches: the files behind "--", and everything
// where there are none, or where a pattern of git's own stands for them.
func (r *reader) gitGreps(operands []word, dirs []string) {
	at := slices.IndexFunc(operands, func(a word) bool { return a.is("--") })
	files := operands[at+1:]
	if at < 0 || len(files) == 0 || slices.ContainsFunc(files, func(a word) bool { return strings.ContainsAny(a.text, ":*?[\\") }) {
		files = []word{{text: r.ws.real}}
	}
	for _, file := range files {
		r.path(file, dirs, event.PathUse{Tree: true})
	}
}

// longValues are the long options of such programs that take a word.
const longValues = `after-context before-context context binary-files color colors context-separator devices directories encoding engine exclude exclude-dir
	exclude-from file glob iglob ignore-file include label max-columns max-count max-depth regexp replace sort sortr threads type type-not`

func (s search) takesNext(long string) int {
	if mayMean(long, longValues) {
		return 1
	}
	return 0
}
