package resolve

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used. There
// are dozens of them, and most processes read no command line: among them those
// that stand beside every command in a sandbox.
type pattern func() *regexp.Regexp

func newPattern(expr string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// MatchString reports whether a text fits.
func (p pattern) MatchString(s string) bool { return p().MatchString(s) }

// FindStringSubmatch gives what fits, and the groups in it.
func (p pattern) FindStringSubmatch(s string) []string { return p().FindStringSubmatch(s) }
