package resolve

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// copyOptions are the options of a program that puts something in a new place:
// what is not here may be one of a newer version that takes another target.
type copyOptions struct {
	// flags and values are the short options, without a value and with one.
	flags, values string
	// long are the long options, and valued those that always take a value; they
	// may be cut short.
	long, valued string
}

// copies are the programs that put something in a new place, with their options
// as in the manual pages of GNU coreutils 9.
var copies = map[string]copyOptions{
	"cp": {flags: "abdfiHlLnPpRrsTuvxZ", values: "St", valued: "suffix sparse no-preserve target-directory", long: `archive attributes-only backup
		context copy-contents debug dereference force help interactive link no-clobber no-dereference no-target-directory one-file-system
		parents preserve recursive reflink remove-destination strip-trailing-slashes symbolic-link update verbose version`},
	"mv": {flags: "bfinTuvZ", values: "St", valued: "suffix target-directory", long: `backup context debug force help interactive no-clobber no-copy
		no-target-directory strip-trailing-slashes update verbose version`},
	"ln": {flags: "bdFfiLnPrsTv", values: "St", valued: "suffix target-directory", long: `backup directory force help interactive logical
		no-dereference no-target-directory physical relative symbolic verbose version`},
	"link": {long: "help version"},
	"install": {flags: "bcCdDpsTvZ", values: "gmoSt", valued: "suffix mode owner group strip-program target-directory", long: `backup compare context
		debug directory help no-target-directory preserve-context preserve-timestamps strip verbose version`},
}

// mayMean reports whether a long option, which may be cut short, is one of a list.
func mayMean(long, list string) bool {
	for option := range strings.FieldsSeq(list) {
		if strings.HasPrefix(option, long) {
			return true
		}
	}
	return false
}

// copying is what such a program is told to do.
type copying struct {
	sources []word
	to      word
	// tree: what is below the sources is meant as well. taking: the sources are
	// changed themselves. linking: they get another name. keeping: one that is a
	// link stays one, so that it may lead elsewhere from its new place.
	tree, taking, linking, keeping bool
	// below: the sources keep their directories in the new place.
	below bool
	// backup: what was there gets another name, which is not known.
	backup bool
	// strips: a program is looked for and run that strips what was copied.
	strips bool
	// open says that a word which is computed when the command runs could be an
	// option that names another target.
	open bool
	// unknown is an option of which it is not known what it does.
	unknown string
}

// readCopying reads the arguments of a program that copies.
func readCopying(name string, args []word) copying {
	c := copying{
		tree: name == "mv" || name == "install", taking: name == "mv", keeping: name == "mv", linking: name == "ln" || name == "link",
	}
	var operands []word
	var target *word
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.computed || !strings.HasPrefix(a.text, "-") || len(a.text) == 1 {
			c.open = c.open || a.computed && (strings.HasPrefix(a.prefix, "-") || a.prefix == "" && !a.glob)
			operands = append(operands, a)
			continue
		}
		if a.text == "--" {
			operands = append(operands, args[i+1:]...)
			break
		}
		option := c.option(name, a.text)
		value := option.value
		if option.takes && value == nil && i+1 < len(args) {
			i++
			value = &args[i]
		}
		if option.target {
			target, c.tree = value, true
		}
	}
	switch {
	case target != nil:
		c.sources, c.to = operands, *target
	case len(operands) == 1 && name == "ln": // ln -s x makes ./x
		c.sources, c.to = operands, word{text: "."}
	case len(operands) > 0:
		c.sources, c.to = operands[:len(operands)-1], operands[len(operands)-1]
	}
	return c
}

// copyOption is an option as far as it matters: takes says that it has a
// value, which is in the next word where it is nil, and target that the value is
// where the sources go.
type copyOption struct {
	value         *word
	takes, target bool
}

// option reads one word of options of a program that copies.
func (c *copying) option(name, text string) copyOption {
	long, isLong := strings.CutPrefix(text, "--")
	if !isLong {
		return c.shortOptions(name, text[1:])
	}
	long, value, given := strings.Cut(long, "=")
	var o copyOption
	if given {
		o.value = &word{text: value}
	}
	means := func(option string) bool { return strings.HasPrefix(option, long) }
	known := copies[name]
	if !mayMean(long, known.long+" "+known.valued) {
		c.unknown = text
	}
	o.target = name != "link" && means("target-directory")
	o.takes = mayMean(long, known.valued) && long != "strip"
	c.backup = c.backup || means("backup") || means("suffix")
	if name == "install" {
		c.taking, c.strips = c.taking || means("directory"), c.strips || means("strip") || means("strip-program")
	}
	if name == "cp" {
		c.linking = c.linking || means("link") || means("symbolic-link")
		c.below = c.below || means("parents")
		c.tree = c.tree || means("recursive") || means("archive") || c.below
		c.keeping = c.keeping || c.tree || means("no-dereference") || means("preserve")
	}
	return o
}

func (c *copying) shortOptions(name, letters string) copyOption {
	for i, letter := range letters {
		o := copyOption{target: letter == 't'}
		o.takes = strings.ContainsRune(copies[name].values, letter)
		if !o.takes && !strings.ContainsRune(copies[name].flags, letter) {
			c.unknown = "-" + letters
		}
		c.backup = c.backup || strings.ContainsRune("bS", letter)
		if o.takes {
			if rest := letters[i+1:]; rest != "" {
				o.value = &word{text: rest}
			}
			return o
		}
		if name == "install" {
			c.taking, c.strips = c.taking || letter == 'd', c.strips || letter == 's'
		}
		if name == "cp" {
			c.linking = c.linking || strings.ContainsRune("ls", letter)
			c.tree = c.tree || strings.ContainsRune("arRd", letter)
			c.keeping = c.keeping || strings.ContainsRune("arRdP", letter)
		}
	}
	return copyOption{}
}

// copy notes what is written: the target, or what gets the sources' names below
// it. A link gives access to its source, and a move takes its source away, so
// these count as written.
func (r *reader) copy(name string, c copying, dirs []string) {
	r.notOnlyLooks = r.notOnlyLooks || c.open || c.strips || slices.ContainsFunc(c.sources, func(s word) bool { return matchesOptions(s, dirs) })
	if c.unknown != "" {
		r.unclear("what " + name + " does with " + trim(c.unknown) + " is not known")
	}
	if len(c.sources) == 0 && c.to == (word{}) {
		return
	}
	if c.backup {
		r.unknown(word{text: "the backup of what lies at " + c.to.text}, event.PathUse{Write: true})
	}
	r.path(c.to, dirs, event.PathUse{Write: true, Tree: c.tree})
	for _, s := range c.sources {
		r.path(s, dirs, event.PathUse{Write: c.linking || c.taking, Given: c.tree && name == "cp", Tree: c.tree})
		switch {
		case s.computed:
			r.path(c.to, dirs, event.PathUse{Write: true, Tree: true})
		case !c.to.computed:
			r.path(word{text: c.to.text + "/" + c.name(s)}, dirs, event.PathUse{Write: true, Tree: c.tree})
		}
	}
	if c.linking || c.keeping {
		r.relinks(c, dirs)
	}
}

// name is what a source is called in its new place.
func (c copying) name(source word) string {
	if c.below {
		return source.text
	}
	return path.Base(source.text)
}

// matchesOptions reports whether a pattern may match a file whose name is an
// option.
func matchesOptions(w word, dirs []string) bool {
	if !w.glob || w.prefix != "" {
		return false
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "-") }) {
			return true
		}
	}
	return false
}
