package launch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal/memory"
)

// The test is end to end: the engine hashes the workspace after each edit of real
// files, and the rule sees only the journal.
func TestARunThatEditsToNoEffectIsStuckAndOneThatGetsOnIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		step   func(n int) string
		reason event.Reason
		cycles int
	}{
		"what is written is there already": {func(n int) string {
			return fmt.Sprintf("{name: fs.write, arguments: {path: %c.txt, content: same}}", 'a'+n%3)
		}, event.ReasonStuck, 20},
		"what is written is new": {func(n int) string {
			return fmt.Sprintf("{name: fs.write, arguments: {path: a.txt, content: '%d'}}", n)
		}, event.ReasonFinalAnswer, 31},
		"commands that look at different things": {func(n int) string {
			return fmt.Sprintf("{name: shell.exec, arguments: {command: 'expr %d + 1; sort -o x.txt x.txt'}}", n)
		}, event.ReasonFinalAnswer, 31},
		"a command that edits and restores": {func(n int) string {
			return fmt.Sprintf("{name: shell.exec, arguments: {command: 'echo %d > x.txt; echo 0 > x.txt'}}", n)
		}, event.ReasonStuck, 18},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.Workspace = t.TempDir()
			if err := os.WriteFile(filepath.Join(o.Workspace, "x.txt"), []byte("0\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var script strings.Builder
			for n := range 30 {
				fmt.Fprintf(&script, "- tool_calls: [%s]\n", c.step(n))
			}
			script.WriteString("- text: done\n")
			path := filepath.Join(t.TempDir(), "s.yaml")
			if err := os.WriteFile(path, []byte(script.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			o.Model = "scripted/" + path
			started, _, env := start(t, file(t, "tools: {allow: [fs.write, shell.exec], approvals: {shell.exec: never}}"), o)
			_, events := run(t, memory.New(nil), started, env)
			if got := outcome(t, events); got.Reason != c.reason || got.Cycles != c.cycles {
				t.Errorf("ended with %s %s after %d cycles: %+v", got.Reason, got.Kind, got.Cycles, got)
			}
		})
	}
}
