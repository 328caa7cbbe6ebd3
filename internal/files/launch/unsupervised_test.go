package launch_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

func TestARunSaysThatNothingEndsWhatCommandsLeaveBehind(t *testing.T) {
	said := func(w string) bool { return strings.Contains(w, "without a supervisor (this program did not call") }
	for tools, want := range map[string]bool{"[shell.exec]": true, "[fs.read]": false} {
		o := options(t)
		o.Sandbox = sandbox.Strongest(context.Background(), sandbox.Shim{}, "")
		started, _, _ := start(t, file(t, "tools: {allow: "+tools+"}"), o)
		if got := slices.ContainsFunc(started.Warnings, said); got != want {
			t.Errorf("with the tools %s it says %q", tools, started.Warnings)
		}
	}
}
