package cli

import (
	"os"
	"os/exec"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// invocation is how every command begins that is printed as a next step: with
// the flags that this one was given about its journal and its config file, so
// that the step works as it is pasted.
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

// program is how a shell finds this program: as pawl where that is it, else as it
// was called, else by its path.
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

// shellWord is a path as a shell takes it, and as no command takes it for a flag.
func shellWord(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	if q, err := syntax.Quote(path, syntax.LangBash); err == nil {
		return q
	}
	return path
}
