package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// unclear asks about a call whose actions or written files are unknown, because a rule
// might forbid them. It does not ask if nothing depends on the answer: a sandbox
// enforces the protected paths anyway, or the owner configured that the tool never
// asks, protects no path, and has no rule about only some calls of the tool.
func (r Rules) unclear(c *event.ToolCall) []Verdict {
	if c.Facts == nil {
		return nil
	}
	why := slices.Clone(c.Facts.Unclear)
	reads := false
	for _, p := range c.Facts.Paths {
		if p.Unknown && p.Write {
			why = append(why, "which file "+p.Path+" is, is computed when it runs")
		}
		reads = reads || p.Unknown
	}
	if matchesAny(r.GateProtected, c.Tool) && (reads || len(why) > 0) {
		return []Verdict{{
			Decision: event.DecisionAsk, Rule: "tools.approvals." + c.Tool + ": protected_paths",
			Reason: strings.Join(append(why, "the call may touch what is protected"), "; "),
		}}
	}
	if len(why) == 0 {
		return nil
	}
	switch forbids := r.mightForbid(c); {
	case forbids != "":
		why = append(why, "so it might be what a rule is about ("+forbids+")")
	case c.Facts.Sandboxed, r.NeverAsks(c.Tool) && len(r.Protected) == 0:
		return nil
	}
	return []Verdict{{Decision: event.DecisionAsk, Rule: "unclear", Reason: strings.Join(why, "; ")}}
}

// mightForbid returns the first rule that might deny or ask because of an unknown part
// of a call, "" for none. Without a sandbox a program may do what a rule forbids to
// another tool.
func (r Rules) mightForbid(c *event.ToolCall) string {
	for _, rule := range r.Rules {
		about := wild(rule.Tool, c.Tool) && (rule.Path != "" || rule.Host != "" || rule.Command != "")
		if rule.Decision != event.DecisionAllow && (about || !c.Facts.Sandboxed) {
			return rule.String()
		}
	}
	return ""
}

// files applies the bound on files to the calls that run on this machine. The read-only
// bound denies every one that is not known to do nothing but read the workspace.
func (r Rules) files(c *event.ToolCall) []Verdict {
	deny := func(why string) []Verdict {
		return []Verdict{{Decision: event.DecisionDeny, Rule: r.ruleOfFiles(), Reason: why}}
	}
	switch {
	case c.Facts == nil, c.Facts.Remote, reaches(c):
	case r.Filesystem == FilesystemNone:
		return deny("the run has no access to files")
	case r.Filesystem != FilesystemReadOnly:
	case !harmless(c):
		return deny("the call is not known to change nothing")
	case !within(c):
		return deny("the call is not known to read the workspace alone")
	case len(c.Facts.Commands) > 0 && !r.Declared:
		return deny("commands run only where tools.allow names the tool")
	}
	return nil
}

// shortName matches the short names of at most eight and three characters that Windows
// file systems give to long names. GIT~1 is a short name of .git, also on Linux if such
// a file system is mounted.
var shortName = regexp.MustCompile(`^([^.~]{1,6})~[0-9]{1,6}(?:\.([^.]{1,3}))?$`)

// matchesShort reports whether a part of a pattern matches a folded part of a path, or
// may match the long name behind a short name.
func matchesShort(pattern, name string) bool {
	if ok, _ := path.Match(pattern, name); ok {
		return true
	}
	if !strings.Contains(name, "~") {
		return false // this check is ten times as fast as the expression
	}
	m := shortName.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	base, extension := strings.TrimLeft(pattern, "."), ""
	if dot := strings.LastIndexByte(base, '.'); dot >= 0 {
		base, extension = base[:dot], base[dot+1:]
	}
	return mayShorten(extension, m[2], 3) && (mayShorten(base, m[1], 6) || hashed(base, m[1]))
}

// mayShorten reports whether a short name may abbreviate a match of the pattern. A
// wildcard may stand for any text.
func mayShorten(pattern, name string, length int) bool {
	if strings.ContainsAny(pattern, `*?[\`) {
		return true
	}
	plain := []rune(strings.NewReplacer(" ", "", ".", "").Replace(pattern))
	return string(plain[:min(len(plain), length)]) == name
}

// hashed reports whether a short name consists of two characters and a checksum, as
// file systems use when several long names begin alike.
func hashed(pattern, name string) bool {
	return len(name) == 6 && len(pattern) > 2 && strings.HasPrefix(name, pattern[:2]) && strings.Trim(name[2:], "0123456789abcdef") == ""
}
