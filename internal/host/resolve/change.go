package resolve

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// changers are the programs for which the files that they change are known.
var changers = map[string]event.Risk{
	"rm": event.RiskDelete, "rmdir": event.RiskDelete, "unlink": event.RiskDelete, "shred": event.RiskDelete, "truncate": event.RiskDelete,
	"mv": event.RiskDelete, "cp": event.RiskWrite, "ln": event.RiskWrite, "link": event.RiskWrite, "install": event.RiskWrite,
	"mkdir": event.RiskWrite, "touch": event.RiskWrite, "tee": event.RiskWrite, "mkfifo": event.RiskWrite, "dd": event.RiskDelete,
	"chmod": event.RiskPermission, "chown": event.RiskPermission, "chgrp": event.RiskPermission,
}

// recursive are the programs with an option for whole trees.
var recursive = []string{"rm", "chmod", "chown", "chgrp"}

// chmodMode matches a mode that looks like an option.
var chmodMode = newPattern(`^-[rwxXst]+$`)

// change records what such a program writes. Everything that may be an operand counts
// as one.
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

// copyOptions maps the programs that copy, move or link files to their last operand to
// the options with which they write no other file. A copy with another option is
// unclear.
var copyOptions = map[string]pattern{
	"cp":      newPattern(`^(-[adfHiLlnPpRrsTuvx]+|--(archive|force|link|no-clobber|recursive|symbolic-link|verbose|update|preserve)(=.*)?)$`),
	"mv":      newPattern(`^(-[finTuv]+|--(force|no-clobber|verbose))$`),
	"ln":      newPattern(`^(-[fiLnPrsTv]+|--(force|no-dereference|relative|symbolic|verbose))$`),
	"link":    newPattern(`^$`),
	"install": newPattern(`^(-[CcDdpTv]*(m[0-7]*)?|--(directory|mode)(=.*)?)$`),
}

// installMode matches the options of install that take the next word as the mode.
var installMode = newPattern(`^(-[CcDdpTv]*m|--mode)$`)

// copy records what is written: the target, or the sources' names below it. A link
// gives access to its source, and a move removes its source, so these count as written.
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
			// A computed word, or a pattern, may expand to an option.
			r.notOnlyLooks = r.notOnlyLooks || !end && a.computed && a.prefix == ""
			operands = append(operands, a)
		}
	}
	if len(operands) == 0 {
		return
	}
	sources, to := operands[:len(operands)-1], operands[len(operands)-1]
	if len(sources) == 0 { // ln -s x creates ./x
		sources, to = operands, word{text: "."}
	}
	tree := name != "cp" || strings.ContainsAny(letters, "aRrd")
	linking := name == "ln" || name == "link" || name == "cp" && strings.ContainsAny(letters, "ls")
	taking := name == "mv" || name == "install" && strings.Contains(letters, "d")
	// A link that is moved or copied as a link may lead elsewhere from its new place.
	// The sandbox confines what is written through it.
	keeping := name == "mv" || name == "cp" && (tree || strings.Contains(letters, "P"))
	r.links = r.links || linking || keeping

	into := event.PathUse{Write: true, Tree: tree && !linking}
	r.path(to, dirs, into)
	for _, s := range sources {
		r.path(s, dirs, event.PathUse{Write: linking || taking, Given: keeping && !taking && !r.ws.confined, Tree: tree})
		switch {
		case s.glob && !to.computed:
			r.intoDirectory(s, to.text, dirs, into)
		case s.computed && r.ws.confined:
			r.unknown(word{text: to.text + "/" + s.text}, into)
		case s.computed:
			r.path(to, dirs, event.PathUse{Write: true, Tree: true})
		case !to.computed:
			r.path(word{text: to.text + "/" + path.Base(s.text)}, dirs, into)
		}
		if linking && !s.computed && !to.computed {
			r.path(s, linkDirs(to.text, dirs), event.PathUse{Write: true, Tree: true})
		}
	}
}

// linkDirs returns the directories from which a symbolic link created at or below a
// place may be followed.
func linkDirs(to string, dirs []string) []string {
	var from []string
	for _, dir := range dirs {
		if dir == anywhere {
			continue
		}
		at := path.Clean(absolute(dir, to))
		if info, err := os.Stat(at); err != nil || !info.IsDir() {
			at = path.Dir(at)
		}
		from = append(from, at)
	}
	return from
}

func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return dir + "/" + name
}
