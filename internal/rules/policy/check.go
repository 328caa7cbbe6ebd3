package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// A Report records one problem in an owner's file: the expected form, and a description
// of the problem.
type Report func(expected, format string, args ...any)

// Check reports an invalid pattern of paths, and one that can never match.
func (p Pattern) Check(report Report) {
	pattern := string(p)
	clean := path.Clean(pattern)
	switch {
	case !p.Valid():
		report("a pattern such as .git/** or **/*.pem", "%q is not a pattern", pattern)
	case strings.HasPrefix(pattern, "~"), clean == "..", strings.HasPrefix(clean, "../"):
		report("a pattern relative to the workspace, or an absolute one", "%q would match nothing", pattern)
	case strings.HasPrefix(pattern, "!"):
		report("patterns of what is meant", "%q would take nothing away", pattern)
	case alternatives(pattern):
		report("a pattern for each of them", "%q has alternatives, which are not known here", pattern)
	case strings.TrimSpace(pattern) != pattern:
		report("a pattern without them", "%q begins or ends with spaces", pattern)
	}
}

// alternatives reports whether a pattern contains alternatives such as {a,b}, which
// only fs.glob supports.
func alternatives(pattern string) bool {
	_, inside, open := strings.Cut(strings.ReplaceAll(pattern, "[{]", ""), "{")
	inside, _, closed := strings.Cut(inside, "}")
	return open && closed && strings.Contains(inside, ",")
}

// Check reports the parts of a rule that no call can match. at returns the report for a
// part, named as in a file. Check does not know which tools exist.
func (r Rule) Check(at func(key string) Report) {
	if r.Path != "" {
		r.Path.Check(at("path"))
	}
	if r.Command != "" {
		if why := noCommand(strings.Fields(r.Command)); why != "" {
			at("command")("the words that a command begins with, such as git push", "%q %s", r.Command, why)
		}
	}
	if r.Host != "" && !matchesHosts(r.Host) {
		at("host")("a host such as *.example.com, without a scheme or a port", "%q matches no host", r.Host)
	}
}

// noCommand returns why no command can match these words, or "". Such a rule would have
// no effect.
func noCommand(words []string) string {
	if len(words) == 0 {
		return "names no command"
	}
	if name, _, assigned := strings.Cut(words[0], "="); assigned && isVariable(name) {
		return "begins with a variable, which is no part of a command"
	}
	for _, word := range words {
		switch {
		case slices.Contains([]string{"&&", "||", "|", ";", "&", ">", ">>", "<"}, word):
			return "has " + word + " in it, and a rule is about one command of a line"
		case strings.ContainsAny(word[:1], "'\""):
			return "has quotes in it, and words are compared without theirs"
		}
	}
	return ""
}

// matchesHosts reports whether a pattern can match a host as calls name it. A rule that
// denies with another pattern would deny nothing.
func matchesHosts(pattern string) bool {
	host := strings.ToLower(strings.ReplaceAll(pattern, "*", "a"))
	canonical, err := egress.CanonicalHost(host)
	return err == nil && canonical == host
}

// isVariable reports whether a name is valid for an environment variable.
func isVariable(name string) bool {
	for i, c := range name {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
