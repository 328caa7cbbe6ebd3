package resolve

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// copies are the programs that put something in a new place, with their options
// that take a value: one letter each, and by long names.
var copies = map[string][]string{
	"cp":      {"S", "suffix", "sparse", "no-preserve"},
	"mv":      {"S", "suffix"},
	"ln":      {"S", "suffix"},
	"link":    {""},
	"install": {"Smog", "suffix", "mode", "owner", "group", "strip-program"},
}

// copying is what such a program is told to do.
type copying struct {
	sources []word
	to      word
	// tree: what is below the sources is meant as well. taking: the sources are
	// changed themselves. linking: they get another name. keeping: one that is a
	// link stays one, so that it may lead elsewhere from its new place.
	tree, taking, linking, keeping bool
	// open says that a word which is computed when the command runs could be an
	// option that names another target.
	open bool
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
	means := func(option string) bool { return long != "" && strings.HasPrefix(option, long) }
	o.target = means("target-directory")
	o.takes = o.target || long != "strip" && slices.ContainsFunc(copies[name][1:], means)
	c.taking = c.taking || name == "install" && means("directory")
	if name == "cp" {
		c.linking = c.linking || means("link") || means("symbolic-link")
		c.tree = c.tree || means("recursive") || means("archive")
		c.keeping = c.keeping || c.tree || means("no-dereference") || means("preserve")
	}
	return o
}

func (c *copying) shortOptions(name, letters string) copyOption {
	for i, letter := range letters {
		o := copyOption{target: letter == 't' && name != "link"}
		o.takes = o.target || strings.ContainsRune(copies[name][0], letter)
		if o.takes {
			if rest := letters[i+1:]; rest != "" {
				o.value = &word{text: rest}
			}
			return o
		}
		c.taking = c.taking || name == "install" && letter == 'd'
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
	r.notOnlyLooks = r.notOnlyLooks || c.open || slices.ContainsFunc(c.sources, func(s word) bool { return matchesOptions(s, dirs) })
	if len(c.sources) == 0 && c.to == (word{}) {
		return
	}
	r.path(c.to, dirs, event.PathUse{Write: true, Tree: c.tree})
	for _, s := range c.sources {
		r.path(s, dirs, event.PathUse{Write: c.linking || c.taking, Given: c.tree && name == "cp", Tree: c.tree})
		switch {
		case s.computed:
			r.path(c.to, dirs, event.PathUse{Write: true, Tree: true})
		case !c.to.computed:
			r.path(word{text: c.to.text + "/" + path.Base(s.text)}, dirs, event.PathUse{Write: true, Tree: c.tree})
		}
	}
	if c.linking || c.keeping {
		r.relinks(c, dirs)
	}
}

// matchesOptions says that a pattern may match a file whose name is an option.
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
