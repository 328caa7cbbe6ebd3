package control

import "strings"

// Driver is the readable part of a lease's owner: process and host.
func Driver(owner string) string {
	parts := strings.Split(owner, "/")
	if len(parts) != 4 {
		return owner
	}
	host, _, _ := strings.Cut(parts[0], ":")
	return "process " + parts[1] + " on " + host
}

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

func inner(name string) bool {
	switch name {
	case "agent", "attach", "control", "engine", "journal", "launch", "llm", "models", "pawl", "resolve", "sandbox", "secret", "server", "spec", "sqlite":
		return true
	}
	return false
}
