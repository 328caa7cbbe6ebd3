package resolve

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pawlrun/pawl/event"
)

// call reads one simple command.
func (r *reader) call(c *syntax.CallExpr, dirs []string) after {
	for _, a := range c.Assigns {
		r.assignment(a, dirs)
	}
	words := make([]word, len(c.Args))
	for i, a := range c.Args {
		words[i] = wordOf(a)
		r.substitutions(a, dirs)
	}
	if len(words) == 0 {
		return stay(dirs)
	}
	return r.simple(words, dirs, r.depth)
}

// simple judges one simple command, its program first.
func (r *reader) simple(words []word, dirs []string, depth int) after {
	r.steps++
	command := event.Command{}
	for _, w := range words {
		command.Words = append(command.Words, trim(w.text))
		command.Computed = command.Computed || w.computed
	}
	if len(r.facts.Commands) == maxFacts {
		r.unclear("it has too many commands")
		return stay(dirs)
	}
	command.Program = r.leadsTo(words[0], dirs)
	at := len(r.facts.Commands)
	r.facts.Commands = append(r.facts.Commands, command)
	if words[0].computed {
		r.unclear("which program " + trim(words[0].text) + " is, is computed when it runs")
		return stay(dirs)
	}
	r.hosts(words)
	name, args := program(words[0].text), words[1:]
	r.runsFiles(name, words, dirs)
	r.notOnlyLooks = r.notOnlyLooks || r.ws.shadowed(words[0].text) || slices.ContainsFunc(words, opensFile)
	r.evaluated(name, args)
	r.sets(name, args)
	r.carried(name, args)
	switch {
	case name == "cd":
		r.steps--
		r.facts.Commands[at].ReadOnly = true
		return r.cd(args, dirs)
	case slices.Contains(unclearPrograms, name):
		r.unclear(name + " runs what is not known before it runs")
		r.given(args, dirs)
	case slices.Contains(shells, name):
		r.steps--
		r.shell(name, args, dirs, depth)
	case wrappers[name] != nil:
		r.steps--
		r.wrapped(name, args, dirs, depth)
	case changers[name] != "":
		r.change(name, args, dirs)
	default:
		r.facts.Commands[at].ReadOnly = r.reads(name, args, command.Computed, dirs)
	}
	return stay(dirs)
}

// leadsTo returns the file of a program that is called by a path, "" if it is unknown.
// A program outside of the workspace keeps the path by which it is called, so that a
// rule can name /usr/bin/awk.
func (r *reader) leadsTo(w word, dirs []string) string {
	switch {
	case w.computed || !strings.Contains(w.text, "/"), len(dirs) != 1, dirs[0] == anywhere && !filepath.IsAbs(w.text):
		return ""
	}
	file := r.ws.PathFrom(dirs[0], w.text)
	if file.Outside && filepath.IsAbs(w.text) && filepath.Clean(w.text) == w.text && r.ws.within(w.text).Outside {
		return trim(w.text)
	}
	return trim(file.Path)
}

// program returns the name of the program that a command's first word runs. A program
// that is given by a path may be anything.
func program(first string) string {
	switch dir := path.Dir(first); dir {
	case "/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin":
		return path.Base(first)
	}
	return first
}

// unclearPrograms run something that is not in their arguments, run it as another user
// or elsewhere, or are shells with their own language.
var unclearPrograms = []string{
	"eval", "xargs", "parallel", "source", ".", "trap", "alias", "watch", "sudo", "doas", "su", "runuser", "chroot", "unshare", "nsenter", "script", "at",
	"batch", "shopt", "crontab", "systemd-run", "flock", "busybox", "toybox", "pushd", "popd", "enable", "hash", "bind", "complete", "coproc", "ssh",
	"mapfile", "readarray", "compgen", "fc", "ksh", "mksh", "zsh", "csh", "tcsh", "fish",
	"pkexec", "run0", "sg", "newgrp", "setpriv", "capsh", "machinectl", "proot", "bwrap", "firejail", "tmux", "screen", "start-stop-daemon", "run-parts",
	"entr", "expect",
}

// wrappers run the command that follows their own arguments, which must match the
// pattern; a wrapper with other arguments is unclear.
var wrappers = map[string]pattern{
	"env":     newPattern(`^(-i|-|--ignore-environment|[A-Za-z_]\w*=.*)$`),
	"nice":    newPattern(`^-(n?[0-9]+)$`),
	"nohup":   newPattern(`^--$`),
	"time":    newPattern(`^-p$`),
	"timeout": newPattern(`^(--foreground|--preserve-status|[0-9.]+[smhd]?)$`),
	"command": newPattern(`^--$`),
	"builtin": newPattern(`^--$`),
	"exec":    newPattern(`^--$`),
	"stdbuf":  newPattern(`^-[ioe][0-9LKMG]+$`),
	"setsid":  newPattern(`^(-w|--wait)$`),
	"ionice":  newPattern(`^-(c[0-3]|n[0-7]|t)$`),
	"chrt":    newPattern(`^(-[bfimor]|[0-9]+)$`),
	"taskset": newPattern(`^(-c|(0x)?[0-9a-f]+([,-][0-9]+)*)$`),
	"setarch": newPattern(`^(-R|linux32|linux64|i[3-6]86|x86_64|aarch64|arm64)$`),
	"linux32": newPattern(`^-R$`),
	"linux64": newPattern(`^-R$`),
	"prlimit": newPattern(`^--[a-z]+=[0-9:]+$`),
	"strace":  newPattern(`^-[fqrtT]+$`),
	"ltrace":  newPattern(`^-[frtT]+$`),

	"fakeroot": onlyItsEnd, "unbuffer": onlyItsEnd, "chronic": onlyItsEnd, "ifne": onlyItsEnd, "torsocks": onlyItsEnd, "proxychains": onlyItsEnd,
	"proxychains4": onlyItsEnd, "catchsegv": onlyItsEnd, "valgrind": onlyItsEnd, "choom": onlyItsEnd, "numactl": onlyItsEnd, "xvfb-run": onlyItsEnd,
	"dbus-run-session": onlyItsEnd, "systemd-inhibit": onlyItsEnd,
}

// onlyItsEnd is the pattern of a wrapper without known options.
var onlyItsEnd = newPattern(`^--$`)

func (r *reader) wrapped(name string, args []word, dirs []string, depth int) {
	operand := false
	for i, a := range args {
		bare := !strings.HasPrefix(a.text, "-") && !strings.Contains(a.text, "=")
		// A wrapper takes at most one word that is neither an option nor a variable:
		// the word after it is a program, even if its name is 7.
		if own := wrappers[name]; !a.computed && own.MatchString(a.text) && !(bare && operand) {
			operand = operand || bare
			if variable, value, ok := strings.Cut(a.text, "="); ok {
				r.assign(variable, word{text: value})
			}
			continue
		}
		if name == "command" && (a.text == "-v" || a.text == "-V") && !a.computed {
			return
		}
		if a.computed || strings.HasPrefix(a.text, "-") || program(a.text) == "cd" {
			r.unclear("which command " + name + " runs, is not known before it runs")
			return
		}
		r.simple(args[i:], dirs, depth)
		return
	}
	if name != "env" {
		r.atLeast(event.RiskExecute)
	}
}

func (r *reader) cd(args []word, dirs []string) after {
	if len(args) == 2 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) != 1 || args[0].computed || strings.HasPrefix(args[0].text, "-") || args[0].text == "" {
		return after{[]string{anywhere}, union(dirs, []string{anywhere})}
	}
	var to []string
	for _, dir := range dirs {
		switch p := args[0].text; {
		case filepath.IsAbs(p):
			to = union(to, []string{filepath.Clean(p)})
		case dir == anywhere:
			to = union(to, []string{anywhere})
		default:
			to = union(to, []string{filepath.Join(dir, p)})
		}
	}
	return after{to, union(dirs, to)}
}

// given records the paths among the arguments of a program whose use of them is
// unknown.
func (r *reader) given(args []word, dirs []string) {
	for _, a := range args {
		if a.glob {
			r.glob(a, dirs, event.PathUse{Given: true})
			continue
		}
		if a.computed {
			continue
		}
		if _, value, ok := strings.Cut(a.text, "="); ok {
			r.path(word{text: value}, dirs, event.PathUse{Given: true})
			r.givenContent(value, dirs)
		}
		r.givenContent(a.text, dirs)
		r.givenBehind(a, dirs)
		if !strings.HasPrefix(a.text, "-") && !strings.Contains(a.text, "://") && !strings.ContainsRune(a.text, '\n') && a.text != "" {
			r.path(a, dirs, event.PathUse{Given: true})
		}
	}
}

// givenContent records a file whose content an argument denotes, in a common notation
// (@file, or curl's <file), and a file in a URL.
func (r *reader) givenContent(text string, dirs []string) {
	name, isAddress := strings.CutPrefix(text, "file://")
	switch {
	case isAddress:
		if at := strings.IndexByte(name, '/'); at >= 0 {
			r.path(word{text: name[at:]}, dirs, event.PathUse{Given: true})
		}
		if strings.ContainsAny(name, "%{[") {
			r.unclear("which file " + trim(text) + " names, is not known")
		}
	case len(text) > 1 && (text[0] == '@' || text[0] == '<'):
		name, _, _ = strings.Cut(text[1:], ";")
		r.path(word{text: name}, dirs, event.PathUse{Given: true})
	}
}

// givenBehind records a possible path after short options in the same word, as in
// -uofile: it is unknown where the options end.
func (r *reader) givenBehind(a word, dirs []string) {
	if a.computed || len(a.text) < 3 || a.text[0] != '-' || a.text[1] == '-' || strings.Contains(a.text, "=") || !strings.ContainsAny(a.text, "/.") {
		return
	}
	for i := 2; i < min(5, len(a.text)); i++ {
		r.path(word{text: a.text[i:]}, dirs, event.PathUse{Given: true})
		if a.text[i] == '/' || a.text[i] == '.' {
			return
		}
	}
}

var shells = []string{"sh", "bash", "dash", "ash"}

// shellOptions matches the options of a shell that do not affect which commands it
// runs.
var shellOptions = newPattern(`^[-+][abefnuvxo]*$`)

// shell reads the command line that is an argument of a shell, with the shell's other
// arguments as unknown values. A shell that reads its commands from its input is
// unclear.
func (r *reader) shell(name string, args []word, dirs []string, depth int) {
	byText := false
	for i, a := range args {
		letters := strings.TrimLeft(a.text, "-+")
		switch option := len(letters) < len(a.text); {
		case i > 0 && strings.HasSuffix(args[i-1].text, "o") && len(args[i-1].text) > 1 && a.is("pipefail", "errexit", "nounset", "xtrace"):
		case option && !a.computed && letters != "" && shellOptions.MatchString(strings.NewReplacer("c", "", "l", "", "i", "").Replace(a.text)):
			byText = byText || strings.Contains(letters, "c")
			r.notOnlyLooks = r.notOnlyLooks || strings.ContainsAny(letters, "li") // it also runs its user's startup files
		case option, a.text == "", i > 0 && strings.HasSuffix(args[i-1].text, "o"):
			r.unclear("which commands " + name + " runs, is not known before it runs")
			return
		case byText:
			r.nested(a, dirs, depth)
			return
		case a.computed:
			r.unclear("which commands " + name + " runs, is computed when it runs")
			return
		default:
			r.atLeast(event.RiskExecute)
			r.given(args[i:], dirs)
			return
		}
	}
	r.unclear(name + " runs what it is given as input")
}

// nested reads a word as a separate command line.
func (r *reader) nested(w word, dirs []string, depth int) {
	if w.computed {
		r.unclear("which command " + trim(w.text) + " is, is computed when it runs")
		return
	}
	outer := r.depth
	r.line(w.text, dirs, depth+1)
	r.depth = outer
}

// opensFile reports whether a word before a redirection may be the variable that
// receives the number of the opened file, with an index: {x[i]}>file.
func opensFile(w word) bool {
	return w.computed && strings.HasPrefix(w.text, "{") && strings.HasSuffix(w.text, "}") && strings.Contains(w.text, "[")
}
