package main

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// invocation is how every command begins that is printed as a next step: with
// the flags that this one was given about its journal and its config file, so
// that the step works as it is pasted.
func (a *app) invocation() string {
	words := "pawl"
	if a.journalPath != defaultJournal() {
		words += " --journal " + shellWord(a.journalPath)
	}
	if a.configPath != "" {
		words += " --config " + shellWord(a.configPath)
	}
	return words
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
