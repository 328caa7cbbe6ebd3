package shell_test

import (
	"os"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/tool/shell"
)

// A command that writes its own /tmp touches nothing outside. What is there of the
// machine's asks, because the sandbox would show it.
func TestFilesInATemporaryDirectoryOfTheSandboxAskNothing(t *testing.T) {
	there, err := os.CreateTemp("/tmp", "pawl-scratch-*")
	if err != nil {
		t.Skipf("no file can be made in /tmp: %v", err)
	}
	defer os.Remove(there.Name())
	defer there.Close()
	inside := shell.New(shell.Options{Dir: t.TempDir(), Inside: true, Scratch: true})
	shared := shell.New(shell.Options{Dir: t.TempDir(), Inside: true})
	for _, c := range []struct {
		name, line string
		scratch    bool
		want       event.Decision
	}{
		{"a new file", "echo x > /tmp/pawl-no-such-file", true, event.DecisionAllow},
		{"one in a new directory", "mkdir /var/tmp/pawl-no-such && touch /var/tmp/pawl-no-such/a", true, event.DecisionAllow},
		{"one that is there", "echo x > " + there.Name(), true, event.DecisionAsk},
		{"one elsewhere", "echo x > /opt/pawl-no-such-file", true, event.DecisionAsk},
		{"where /tmp is the machine's", "echo x > /tmp/pawl-no-such-file", false, event.DecisionAsk},
	} {
		tool := shared
		if c.scratch {
			tool = inside
		}
		args := []byte(`{"command":"` + c.line + `"}`)
		facts := tool.Facts(args)
		call := event.ToolCall{Tool: "shell.exec", Args: args, Facts: &facts}
		if v := (policy.Rules{Declared: true}).Decide(&call); v.Decision != c.want {
			t.Errorf("%s: %s by %s (%s), %+v", c.name, v.Decision, v.Rule, v.Reason, facts.Paths)
		}
	}
}
