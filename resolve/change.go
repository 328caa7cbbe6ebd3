package resolve

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// changers are the programs of which it is known which files they change.
var changers = map[string]event.Risk{
	"rm": event.RiskDelete, "rmdir": event.RiskDelete, "unlink": event.RiskDelete, "shred": event.RiskDelete, "truncate": event.RiskDelete,
	"mv": event.RiskDelete, "cp": event.RiskWrite, "ln": event.RiskWrite, "link": event.RiskWrite, "install": event.RiskWrite,
	"mkdir": event.RiskWrite, "touch": event.RiskWrite, "tee": event.RiskWrite, "mkfifo": event.RiskWrite, "dd": event.RiskDelete,
	"chmod": event.RiskPermission, "chown": event.RiskPermission, "chgrp": event.RiskPermission,
}

// recursive programs have an option to take whole trees.
var recursive = []string{"rm", "chmod", "chown", "chgrp"}

// chmodMode is a mode that looks like an option.
var chmodMode = newPattern(`^-[rwxXst]+$`)

// change notes what such a program writes. Everything that could be an operand
// counts as one.
func (r *reader) change(name string, args []word, dirs []string) {
	r.atLeast(changers[name])
	if fits, copies := copyOptions[name]; copies {
		r.copy(name, fits, args, dirs)
		return
	}
	var operands []word
	tree, options := false, true
	for _, a := range args {
		switch {
		case !a.computed && options && a.text == "--":
			options = false
		case name == "chmod" && chmodMode.MatchString(a.text):
			operands = append(operands, a)
		case !a.computed && options && strings.HasPrefix(a.text, "-") && len(a.text) > 1:
			tree = tree || slices.Contains(recursive, name) && strings.ContainsAny(a.text, "rRad")
			if _, value, ok := strings.Cut(a.text, "="); ok {
				operands = append(operands, word{text: value})
			}
		case name == "dd" && !a.computed:
			if of, ok := strings.CutPrefix(a.text, "of="); ok {
				r.writes(word{text: of}, dirs)
			}
			if from, ok := strings.CutPrefix(a.text, "if="); ok {
				r.path(word{text: from}, dirs, event.PathUse{})
			}
		default:
			operands = append(operands, a)
		}
	}
	if strings.HasPrefix(name, "ch") && len(operands) > 1 {
		operands = operands[1:] // the mode or the owner
	}
	for _, o := range operands {
		r.path(o, dirs, event.PathUse{Write: true, Tree: tree})
	}
}

// copyOptions are the options of the programs that put something in a new place,
// its last operand, with which no other file is written. A copy with another is
// unclear.
var copyOptions = map[string]pattern{
	"cp":      newPattern(`^(-[adfHiLlnPpRrsTuvx]+|--(archive|force|link|no-clobber|recursive|symbolic-link|verbose|update|preserve)(=.*)?)$`),
	"mv":      newPattern(`^(-[finTuv]+|--(force|no-clobber|verbose))$`),
	"ln":      newPattern(`^(-[fiLnPrsTv]+|--(force|no-dereference|relative|symbolic|verbose))$`),
	"link":    newPattern(`^$`),
	"install": newPattern(`^(-[CcDdpTv]*(m[0-7]*)?|--(directory|mode)(=.*)?)$`),
}

// installMode are the options of install that take the next word.
var installMode = newPattern(`^(-[CcDdpTv]*m|--mode)$`)

// copy notes what is written: the target, or what gets the sources' names below
// it. A link gives access to its source, and a move takes its source away, so
// these count as written.
func (r *reader) copy(name string, fits pattern, args []word, dirs []string) {
	var operands []word
	var letters string
	end := false
	for i, a := range args {
		switch isOption := !end && (strings.HasPrefix(a.text, "-") && len(a.text) > 1 || a.computed && strings.HasPrefix(a.prefix, "-")); {
		case isOption && a.is("--"):
			end = true
		case isOption && (a.computed || !fits.MatchString(a.text)):
			r.unclear("what " + name + " does with " + trim(a.text) + " is not known")
		case isOption && strings.HasPrefix(a.text, "--"):
			letters += a.text[2:3]
		case isOption:
			letters += a.text[1:]
		case name == "install" && i > 0 && installMode.MatchString(args[i-1].text):
		default:
			// A computed word, or a pattern, may stand for an option.
			r.notOnlyLooks = r.notOnlyLooks || !end && a.computed && a.prefix == "" && (!a.glob || matchesOptions(dirs))
			operands = append(operands, a)
		}
	}
	if len(operands) == 0 {
		return
	}
	c := copying{tree: name != "cp" || strings.ContainsAny(letters, "aRrd"), linking: name == "ln" || name == "link" || name == "cp" && strings.ContainsAny(letters, "ls")}
	c.keeping = name == "mv" || name == "cp" && (c.tree || strings.ContainsAny(letters, "P"))
	c.taking = name == "mv" || name == "install" && strings.Contains(letters, "d")
	c.sources, c.to = operands[:len(operands)-1], operands[len(operands)-1]
	if len(c.sources) == 0 { // ln -s x makes ./x
		c.sources, c.to = operands, word{text: "."}
	}
	r.copies(c, dirs)
}

// copying is what a program that copies is told to do.
type copying struct {
	sources []word
	to      word
	// tree: what is below the sources is meant as well. taking: the sources are
	// changed themselves. linking: they get another name. keeping: one that is a
	// link stays one, so that it may lead elsewhere from its new place.
	tree, taking, linking, keeping bool
}

func (r *reader) copies(c copying, dirs []string) {
	r.path(c.to, dirs, event.PathUse{Write: true, Tree: c.tree && !c.linking})
	for _, s := range c.sources {
		r.path(s, dirs, event.PathUse{Write: c.linking || c.taking, Given: c.keeping && !c.taking, Tree: c.tree})
		switch {
		case s.computed:
			r.path(c.to, dirs, event.PathUse{Write: true, Tree: true})
		case !c.to.computed:
			r.path(word{text: c.to.text + "/" + path.Base(s.text)}, dirs, event.PathUse{Write: true, Tree: c.tree && !c.linking})
		}
		for _, dir := range dirs {
			if dir != anywhere && !c.to.computed && (c.linking || c.keeping && r.mayLead(dir, s)) {
				r.relink(c, s, dir)
			}
		}
	}
}

// naming is a path, and the step of the line that it belongs to.
type naming struct {
	path string
	step int
}

// relink notes where a copy may leave a link. A symbolic one is followed from where it
// lies.
func (r *reader) relink(c copying, s word, dir string) {
	to := path.Clean(absolute(dir, c.to.text))
	at, _ := follow(path.Dir(to))
	link := naming{path.Join(at, path.Base(to)), r.steps}
	if info, err := os.Stat(to); err == nil && info.IsDir() && !s.glob {
		if name := path.Base(c.to.text); name != "." && name != ".." {
			r.replaced = append(r.replaced, link)
		}
		at, _ = follow(to)
		link.path = path.Join(at, path.Base(s.text))
	}
	r.links = append(r.links, link)
	if c.linking && !s.computed {
		r.path(s, []string{path.Dir(link.path)}, event.PathUse{Write: true, Tree: true})
	}
}

// throughLinks reports whether a step names something through a link that another
// one makes, whichever of them stands first: loops and what runs in the background
// have no order.
func (r *reader) throughLinks() bool {
	links := r.links
	if slices.Index(risks, r.risk) >= slices.Index(risks, event.RiskDelete) {
		links = slices.Concat(links, r.replaced)
	}
	through := false
	for _, n := range r.named {
		if len(links) == 0 {
			break
		}
		visit(n.path, func(name string) {
			through = through || slices.ContainsFunc(links, func(l naming) bool { return l.step != n.step && l.path == name })
		})
	}
	return through
}

// matchesOptions reports whether a pattern may match a file whose name is an
// option.
func matchesOptions(dirs []string) bool {
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "-") }) {
			return true
		}
	}
	return false
}

func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return dir + "/" + name
}

// maxLooked is how many entries of a directory are looked at for links.
const maxLooked = 4096

// mayLead reports whether what is moved or copied may be a link or have one in it.
// What is not there yet can only be one by another command of the line.
func (r *reader) mayLead(dir string, s word) bool {
	names := []string{absolute(dir, s.text)}
	if s.computed {
		found, ok := r.expand(absolute(dir, s.names))
		if names = found; !s.glob || !ok {
			return true
		}
	}
	looked, errLink := 0, errors.New("a link")
	for _, name := range names {
		err := filepath.WalkDir(path.Clean(name), func(_ string, e fs.DirEntry, err error) error {
			if looked++; err != nil || looked > maxLooked || e.Type()&fs.ModeSymlink != 0 {
				return cmp.Or(err, errLink)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}
