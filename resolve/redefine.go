package resolve

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A command line may change what its own later commands mean: a function takes
// the name of a program, and a builtin sets a variable that it is given by name,
// such as the one by which cd finds a directory.

// renames asks about a function with the name of a command that is known here:
// "cd() { :; }; cd src && rm x" removes another x.
func (r *reader) renames(f *syntax.FuncDecl) {
	if f.Name == nil { // the parser takes "() command" for one, and a shell may not
		r.unclear("it declares a function without a name")
		return
	}
	name := f.Name.Value
	_, isOptioned := lookOptions[name]
	_, isChanger := changers[name]
	if isOptioned || isChanger || wrappers[name] != nil || slices.Contains([]string{"cd", "git"}, name) ||
		slices.ContainsFunc([][]string{unclearPrograms, shells, evaluators, plain}, func(names []string) bool { return slices.Contains(names, name) }) {
		r.unclear("it gives " + name + " another meaning")
	}
}

// sets notes the variables that a builtin is told to set.
func (r *reader) sets(name string, args []word) {
	switch {
	case name == "read":
		for i, a := range args {
			if a.computed || !strings.HasPrefix(a.text, "-") && (i == 0 || !readValue.MatchString(args[i-1].text)) {
				r.setsNamed(name, a)
			}
		}
	case name == "getopts" && len(args) > 1:
		r.setsNamed(name, args[1])
	case name == "set":
		for _, a := range args {
			if a.is("--") {
				break
			}
			if a.computed || a.is("physical") || strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "P") {
				r.unclear("set may change what cd does with a link")
			}
		}
	case name == "printf" || name == "wait":
		for i, a := range args {
			option := map[string]string{"printf": "-v", "wait": "-p"}[name]
			if rest, ok := strings.CutPrefix(a.text, option); ok && rest != "" {
				r.setsNamed(name, word{text: rest, computed: a.computed})
			} else if ok && i+1 < len(args) {
				r.setsNamed(name, args[i+1])
			}
		}
	}
}

// readValue are the options of read that take the next word.
var readValue = newPattern(`^-[ers]*[dinNptu]$`)

func (r *reader) setsNamed(by string, variable word) {
	if variable.computed {
		r.unclear("which variable " + by + " sets, is computed when it runs")
		return
	}
	name, _, _ := strings.Cut(variable.text, "[")
	r.assign(name)
}

// setsByDefault notes the variable that an expansion sets where it has no value.
func (r *reader) setsByDefault(n *syntax.ParamExp) {
	if n.Exp == nil || n.Param == nil || n.Exp.Op != syntax.AssignUnset && n.Exp.Op != syntax.AssignUnsetOrNull {
		return
	}
	r.setsNamed("an expansion", word{text: n.Param.Value, computed: n.Excl})
}

// declares notes what an argument of export and the like sets that is not
// written as an assignment, and the option by which a name stands for another.
func (r *reader) declares(w word) {
	name, _, sets := strings.Cut(w.text, "=")
	switch {
	case w.computed:
		r.unclear("which variable " + trim(w.text) + " is, is computed when it runs")
	case strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "n"):
		r.unclear("it lets one variable stand for another")
	case sets:
		r.assign(name)
	}
}
