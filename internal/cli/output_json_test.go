package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// A page or a model may hold what a terminal takes for a command; JSON escapes
// only the older half of it by itself.
func TestEventsDoNotSteerATerminal(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  gatedAgent,
		"script.yaml": "- text: \"a\\x9b2Jb\\u202ec\\U000e0041d\"\n",
	})
	p.exits(0, "run", "agent.yaml", "go")
	id := p.newest()
	for _, args := range [][]string{{"runs", "events", id}, {"runs", "events", id, "--view", "aldo"}, {"runs", "show", id, "--json"}} {
		y, s := p.atTerminal(nil, args...)
		f := s.wait()
		<-y.done
		seen := strings.ReplaceAll(y.seen(), "\r", "")
		if f.code != 0 || harmless(seen) != seen {
			t.Errorf("%v shows %q", args, seen)
		}
		if args[1] == "events" && len(args) == 3 {
			if piped := p.exits(0, args...).out; !strings.Contains(piped, "a\u009b2Jb") {
				t.Errorf("what is piped is not as it was: %q", piped)
			}
		}
	}
}

func FuzzEscapedJSONSaysTheSame(f *testing.F) {
	f.Add("a\x1b[31mb\u202Ec\u009bd\U000e0041\r\n\te")
	f.Fuzz(func(t *testing.T, s string) {
		line, err := json.Marshal(s)
		if err != nil {
			t.Skip()
		}
		shown := escapeJSON(string(line))
		var want, got string
		if json.Unmarshal(line, &want) != nil || json.Unmarshal([]byte(shown), &got) != nil || got != want || harmless(shown) != shown {
			t.Errorf("%q is shown as %s", s, shown)
		}
	})
}
