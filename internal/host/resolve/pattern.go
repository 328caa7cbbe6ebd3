package resolve

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled on first use. There are dozens of
// them, and most processes read no command line, including those that supervise
// commands in a sandbox.
type pattern func() *regexp.Regexp

func newPattern(expr string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// MatchString reports whether a text matches.
func (p pattern) MatchString(s string) bool { return p().MatchString(s) }

// FindStringSubmatch returns the match and its groups.
func (p pattern) FindStringSubmatch(s string) []string { return p().FindStringSubmatch(s) }
