package control

import "strings"

// Plain is an error as people read it: without the names of the packages that
// it came through before it says anything. Those of providers stay.
func Plain(err error) string {
	text := err.Error()
	for {
		name, rest, ok := strings.Cut(text, ": ")
		if !ok || !inner(name) {
			return text
		}
		text = rest
	}
}

// inner says that a name is that of a package whose errors begin with it.
func inner(name string) bool {
	switch name {
	case "agent", "attach", "budget", "compact", "conform", "control", "egress", "engine", "fs", "history", "journal", "launch", "llm",
		"memory", "models", "pawl", "resolve", "sandbox", "secret", "server", "spec", "sqlite", "tool", "transport":
		return true
	}
	return false
}
