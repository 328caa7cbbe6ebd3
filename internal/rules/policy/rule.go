package policy

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Rule is a rule of the owner. It applies if all of its fields match. A rule that
// denies or asks applies if any part of a call matches; a rule that allows applies only
// if the whole call matches.
type Rule struct {
	Decision event.Decision `json:"decision"`
	// Tool is a tool's name; a star matches any characters.
	Tool string `json:"tool"`
	// Args are patterns for arguments by name; a star matches any characters.
	Args map[string]string `json:"args,omitempty"`
	Path Pattern           `json:"path,omitempty"`
	// Host is the name of a machine; "*.example.com" matches its subdomains.
	Host string `json:"host,omitempty"`
	// Command is the beginning of a simple command, word by word. A rule that allows
	// matches only this exact command, unless it ends in a star for further words.
	// Other rules match any further words.
	Command string `json:"command,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// String returns the rule as a file writes it.
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString("tools.rules: " + string(r.Decision) + " " + r.Tool)
	for _, f := range []struct{ key, value string }{{"path", string(r.Path)}, {"host", r.Host}, {"command", r.Command}} {
		if f.value != "" {
			b.WriteString(", " + f.key + " " + f.value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Args)) {
		b.WriteString(", " + name + "=" + r.Args[name])
	}
	return b.String()
}

// applies reports whether the rule matches a call. doubt names the unknown part of the
// call that may match a rule that denies or asks; it is empty if the rule is known to
// match.
func (r Rule) applies(c *event.ToolCall) (applies bool, doubt string) {
	if r.Decision == event.DecisionAllow {
		return r.permitsAll(c), ""
	}
	facts := factsOf(c)
	if !wild(r.Tool, c.Tool) || !r.args(c, false) || r.Host != "" && !slices.ContainsFunc(facts.Hosts, r.host) {
		return false, ""
	}
	doubts := make([]string, 0, 2)
	if r.Path != "" {
		at, doubt := r.touched(facts.Paths)
		if at < 0 {
			return false, ""
		}
		doubts = append(doubts, doubt)
	}
	if r.Command != "" {
		at, doubt := r.forbidden(facts.Commands)
		if at < 0 {
			return false, ""
		}
		doubts = append(doubts, doubt)
	}
	return true, strings.Join(slices.DeleteFunc(doubts, func(d string) bool { return d == "" }), "; ")
}

func factsOf(c *event.ToolCall) event.Facts {
	if c.Facts == nil {
		return event.Facts{}
	}
	return *c.Facts
}

// because returns the reason in a verdict of the rule.
func (r Rule) because(doubt string) string {
	switch {
	case doubt == "":
		return r.Reason
	case r.Reason == "":
		return "the rule could not be excluded: " + doubt
	}
	return r.Reason + "; the rule could not be excluded: " + doubt
}

// permitsAll reports whether a rule that allows covers the whole call.
func (r Rule) permitsAll(c *event.ToolCall) bool {
	facts := factsOf(c)
	narrow := r.Path != "" || r.Host != "" || r.Command != ""
	switch {
	case !wild(r.Tool, c.Tool), !r.args(c, true), narrow && len(facts.Unclear) > 0,
		r.Path != "" && !all(facts.Paths, r.within),
		r.Host != "" && !all(facts.Hosts, r.host):
		return false
	}
	// The rule must cover every command of the line, except those that change nothing.
	return r.Command == "" || slices.ContainsFunc(facts.Commands, r.covers) &&
		all(facts.Commands, func(c event.Command) bool { return c.ReadOnly || r.covers(c) })
}

// all reports whether fits holds for every element of a list that is not empty.
func all[T any](list []T, fits func(T) bool) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(v T) bool { return !fits(v) })
}

// within reports whether the rule covers a path and everything that is touched with it.
func (r Rule) within(p event.PathUse) bool {
	base := p.Base()
	return p.Alias || !p.Unknown && r.Path.Match(base) && (!p.Tree && !p.Pattern || r.Path.Match(base+"/\x00"))
}

// touched returns the index of the first path that the rule matches or may match, -1
// for none. A path that it certainly matches comes with an empty doubt.
func (r Rule) touched(paths []event.PathUse) (at int, doubt string) {
	at = -1
	for i, p := range paths {
		why := ""
		switch {
		case p.Unknown:
			why = "which file " + p.Path + " is, is computed when it runs"
		case !p.Pattern && r.Path.Guards(p.Path):
			return i, ""
		case !r.Path.parts().touches(p):
			continue
		case p.Pattern:
			why = p.Path + " may stand for a path that the rule names"
		default:
			why = "a path that the rule names may lie below " + p.Path
		}
		if at < 0 {
			at, doubt = i, why
		}
	}
	return at, doubt
}

func (r Rule) host(host string) bool { return wild(strings.ToLower(r.Host), host) }

// covers reports whether the rule covers a command. A program that either side names by
// a path is compared by the file that the path resolves to.
func (r Rule) covers(c event.Command) bool {
	pattern := strings.Fields(r.Command)
	if c.Computed || len(pattern) == 0 || len(c.Words) == 0 {
		return false
	}
	words := c.Words
	if strings.Contains(pattern[0], "/") {
		if c.Program == "" {
			return false
		}
		pattern[0], words = path.Clean(pattern[0]), append([]string{c.Program}, words[1:]...)
	}
	return fits(pattern, words, wild)
}

// forbidden returns the index of the first command that the rule matches or may match,
// -1 for none. A command that it certainly matches comes with an empty doubt.
func (r Rule) forbidden(commands []event.Command) (at int, doubt string) {
	at = -1
	for i, c := range commands {
		switch known := (event.Command{Words: c.Words, Program: c.Program}); {
		case !r.forbids(c):
		case !c.Computed && !anyCut(c.Words), r.forbids(known) && !anyCut(c.Words):
			return i, ""
		case at < 0 && c.Computed:
			at, doubt = i, "what "+strings.Join(c.Words, " ")+" is, is computed when it runs"
		case at < 0:
			at, doubt = i, "a word of "+c.Words[0]+" is too long to be compared"
		}
	}
	return at, doubt
}

func anyCut(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, event.WordCut) })
}

// forbids reports whether the rule may match a command: called by a path, with options
// between its words, with further words, or with words that are computed at run time or
// too long to be kept.
func (r Rule) forbids(c event.Command) bool {
	if len(c.Words) == 0 {
		return false
	}
	if c.Program != "" && c.Program != c.Words[0] {
		leads := event.Command{Words: append([]string{"/" + c.Program}, c.Words[1:]...), Computed: c.Computed}
		c.Program = ""
		return r.forbids(c) || r.forbids(leads)
	}
	computed := func(word string) bool { return c.Computed && strings.ContainsAny(word, "$`*?[{~") }
	may := func(pattern, word string) bool {
		return wild(pattern, word) || computed(word) || mayGoOn(pattern, word)
	}
	pattern, words := strings.Fields(r.Command), slices.Clone(c.Words)
	if len(pattern) > 0 && starsBelow(pattern[0]) && !strings.Contains(words[0], "/") && !computed(words[0]) && !strings.HasSuffix(words[0], event.WordCut) {
		return false // its name alone would match, as any program's name might
	}
	if n := len(pattern); n > 1 && pattern[n-1] == "*" {
		pattern = pattern[:n-1]
	}
	if len(pattern) > 0 {
		pattern[0] = path.Base(pattern[0])
	}
	words[0] = path.Base(words[0])
	if sub, ok := strings.CutPrefix(words[0], "git-"); ok && forbids(pattern, slices.Concat([]string{"git", sub}, words[1:]), may) {
		return true // git calls its own commands like this
	}
	return forbids(pattern, words, may)
}

// starsBelow reports whether a pattern matches programs in a directory of the workspace
// by a star in their names. Such programs are always called by a path.
func starsBelow(pattern string) bool {
	dir, name := path.Split(pattern)
	return dir != "" && !strings.ContainsAny(dir[:1], "/~*") && strings.Contains(name, "*")
}

// forbids reports whether a command may match a pattern with options anywhere between
// its words. Only the program knows which options take a value, so after an option any
// word may be the next one of the pattern.
func forbids(pattern, words []string, may func(pattern, word string) bool) bool {
	reached := make([]bool, len(words)+1)
	reached[0] = true
	for _, p := range pattern {
		next, after := make([]bool, len(words)+1), false
		for at, word := range words {
			after = after || reached[at] && strings.HasPrefix(word, "-")
			next[at+1] = (after || reached[at]) && may(p, word)
		}
		reached = next
	}
	return slices.Contains(reached, true)
}

// mayGoOn reports whether the full form of a truncated word may match.
func mayGoOn(pattern, word string) bool {
	kept, cut := strings.CutSuffix(word, event.WordCut)
	if !cut || len(word) < event.MaxWord {
		return false
	}
	beginning, _, open := strings.Cut(pattern, "*")
	return open && strings.HasPrefix(kept, beginning) || strings.HasPrefix(beginning, kept)
}

func fits(pattern, words []string, same func(pattern, word string) bool) bool {
	for i, p := range pattern {
		if p == "*" && i == len(pattern)-1 {
			return true
		}
		if i >= len(words) || !same(p, words[i]) {
			return false
		}
	}
	return len(pattern) == len(words)
}

// args matches top-level arguments by their text.
func (r Rule) args(c *event.ToolCall, allow bool) bool {
	if len(r.Args) == 0 {
		return true
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(c.Args, &given) != nil {
		return !allow
	}
	for name, pattern := range r.Args {
		raw, ok := given[name]
		if !ok {
			return false
		}
		text := string(raw)
		var s string
		if json.Unmarshal(raw, &s) == nil {
			text = s
		}
		if !wild(pattern, text) {
			return false
		}
	}
	return true
}

// MatchTool reports whether a pattern matches a tool's name; a star matches any
// characters.
func MatchTool(pattern, name string) bool { return wild(pattern, name) }

// wild matches a text against a pattern in which a star matches any characters.
func wild(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
