package stop

import "strings"

// Report receives an error in one key of a condition: what is expected there, and the
// problem.
type Report func(key, expected, format string, args ...any)

// keys are the keys of conditions besides the kind, with descriptions of their values.
var keys = [...][2]string{{"text", "the text to look for"}, {"tool", "the name of a tool"}, {"match", "exit_code, contains, or both"}}

// Check reports the problems of a condition from any source. It does not check whether
// the tool exists.
func (c Condition) Check(report Report) {
	switch choices := strings.Join(c.Kind.Choices(), ", "); {
	case c.Kind == "":
		report("kind", "one of "+choices, "is missing")
		return
	case !c.Kind.Known():
		report("kind", "one of "+choices, "is %q", string(c.Kind))
		return
	}
	given := map[string]bool{"text": c.Text != "", "tool": c.Tool != "", "match": c.Match != Match{}}
	for _, key := range keys {
		switch needs := c.Kind.Needs(key[0]); {
		case needs && !given[key[0]]:
			report(key[0], key[1], "is missing")
		case !needs && given[key[0]]:
			report(key[0], "no such key", "a %s condition does not have it", c.Kind)
		}
	}
	if code := c.Match.ExitCode; code != nil && (*code < 0 || *code > 255) {
		report("match.exit_code", "0 to 255", "is %v", *code)
	}
}
