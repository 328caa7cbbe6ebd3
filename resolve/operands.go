package resolve

import (
	"strings"

	"github.com/pawlrun/pawl/event"
)

// writesSecond are the programs that write the file that their second operand
// names. The value is the pattern of options that take the next word.
var writesSecond = map[string]pattern{
	"uniq": newPattern(`^-[0-9cdDiuz]*[fsw]$`),
	"xxd":  newPattern(`^--?(c|cols|g|groupsize|l|len|o|offset|s|seek|skip)$`),
}

// written are the operands that such a program may write. Not every system
// takes options behind an operand, so that what stands there may be a file.
func written(name string, args []word) []word {
	takes, ok := writesSecond[name]
	if !ok {
		return nil
	}
	for i := 0; i < len(args); i++ {
		switch text := args[i].text; {
		case text == "--":
			return behindFirst(args[i+1:])
		case text == "-" || !strings.HasPrefix(text, "-"):
			return behindFirst(args[i:])
		case takes.MatchString(text):
			i++
		}
	}
	return nil
}

// behindFirst are the operands behind the first, and that one too where it may
// become several.
func behindFirst(operands []word) []word {
	if len(operands) > 0 && !operands[0].several {
		return operands[1:]
	}
	return operands
}

// listed notes what strings, as all of its family, reads because a file says so
// that an argument names behind "@": which files that are is not known.
func (r *reader) listed(name string, args []word, dirs []string) {
	for _, a := range args {
		if list, ok := strings.CutPrefix(a.text, "@"); ok && name == "strings" && list != "" {
			r.path(word{text: list, computed: a.computed}, dirs, event.PathUse{Tree: true})
			r.unknown(a, event.PathUse{})
		}
	}
}

// fileOption are options of one program: short ones by their letters, and long
// ones, which may be cut short.
type fileOption struct{ letters, long string }

// value is what stands behind such an option in the same word.
func (o fileOption) value(text string) (value string, found bool) {
	if long, ok := strings.CutPrefix(text, "--"); ok {
		long, value, _ = strings.Cut(long, "=")
		return value, long != "" && mayMean(long, o.long)
	}
	if !strings.HasPrefix(text, "-") {
		return "", false
	}
	i := strings.IndexAny(text, o.letters)
	return text[i+1:], i > 0
}

// fileOptions are the options whose value is a file that the program reads.
var fileOptions = map[string]fileOption{
	"grep":         {"f", "file exclude-from"},
	"egrep":        {"f", "file exclude-from"},
	"fgrep":        {"f", "file exclude-from"},
	"rg":           {"f", "file ignore-file"},
	"diff":         {"X", "from-file to-file exclude-from"},
	"du":           {"X", "files0-from exclude-from"},
	"wc":           {"", "files0-from"},
	"hexdump":      {"f", ""},
	"git grep":     {"f", ""},
	"git ls-files": {"X", "exclude-from"},
	"git blame":    {"S", "ignore-revs-file"},
}

// optionFiles notes the files that are named by the options of a program that
// only looks: it may show what they hold.
func (r *reader) optionFiles(name string, args []word, dirs []string) {
	options, ok := fileOptions[name]
	if !ok {
		return
	}
	for i, a := range args {
		value, found := options.value(a.text)
		switch {
		case found && value != "":
			r.path(word{text: value, computed: a.computed}, dirs, event.PathUse{Tree: true})
		case found && i+1 < len(args):
			r.path(args[i+1], dirs, event.PathUse{Tree: true})
		}
	}
}
