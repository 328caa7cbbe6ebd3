package cli

import (
	"os"
	"os/exec"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// invocation returns the beginning of every command that is printed as a next step,
// with this command's flags for the journal and the config file, so that the step
// works when it is pasted.
func (a *app) invocation() string {
	words := shellWord(program(a.arg0))
	if usual, err := followed(defaultJournal()); err != nil || a.journalPath != usual {
		words += " --journal " + shellWord(a.journalPath)
	}
	if a.configPath != "" {
		words += " --config " + shellWord(a.configPath)
	}
	return words
}

// program returns how a shell finds this program: as pawl if that is it, or else by
// the name or path that it was called with.
func program(called string) string {
	self, err := os.Executable()
	if err != nil || called == "" {
		return "pawl"
	}
	for _, name := range []string{"pawl", called} {
		if found, err := exec.LookPath(name); err == nil && sameFile(found, self) {
			return name
		}
	}
	return self
}

// shellWord quotes a path for a shell so that no command mistakes it for a flag.
func shellWord(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	if q, err := syntax.Quote(path, syntax.LangBash); err == nil {
		return q
	}
	return path
}
