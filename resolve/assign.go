package resolve

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawlrun/pawl/event"
)

// declare reads export, readonly, local and the like. Only export, readonly and
// local are known to do no more than to set what is written there: the others
// can give a variable a kind by which a shell evaluates what it is set to.
func (r *reader) declare(c *syntax.DeclClause, dirs []string) after {
	if c.Variant == nil || !slices.Contains([]string{"export", "readonly", "local"}, c.Variant.Value) {
		r.notOnlyLooks = true
	}
	for _, a := range c.Args {
		if a.Name != nil && a.Naked && a.Value == nil && a.Index == nil {
			continue
		}
		// Some shells split what is set here like any other word.
		r.notOnlyLooks = r.notOnlyLooks || wordOf(a.Value).several
		if a.Name != nil {
			r.assignment(a, dirs)
			continue
		}
		r.substitutions(a, dirs)
		w := wordOf(a.Value)
		r.notOnlyLooks = r.notOnlyLooks || !w.is("-p", "--")
		r.declares(w)
		if hidesCommands(w.text) {
			r.unclear("a declaration may run what stands in " + trim(w.text))
		}
	}
	return stay(dirs)
}

// assignment reads one variable that is set. The index of one, and those of an
// array, are evaluated.
func (r *reader) assignment(a *syntax.Assign, dirs []string) {
	r.substitutions(a, dirs)
	r.notOnlyLooks = r.notOnlyLooks || a.Index != nil || a.Array != nil || a.Append && a.Value == nil
	if a.Name == nil {
		return
	}
	r.assign(a.Name.Value)
	if a.Value != nil {
		r.value(a.Name.Value, wordOf(a.Value), dirs)
	}
}

// assign notes that a variable is set. Those in lower case are the line's own;
// others may change what any program does.
func (r *reader) assign(name string) {
	switch {
	case name == "CDPATH" || name == "IFS":
		r.unclear("it sets " + name)
	case ownVariable(name):
	default:
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
