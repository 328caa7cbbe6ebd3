package resolve_test

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// rows: HAR-33
func TestACommandBehindAProgramThatRunsItIsReadOrAskedAbout(t *testing.T) {
	_, ws := place(t)
	for _, line := range []string{"fakeroot rm x", "fakeroot -- rm x", "valgrind rm x", "unbuffer rm x", "torsocks rm x", "dbus-run-session -- rm x"} {
		f := ws.Shell(line)
		if !slices.ContainsFunc(f.Commands, func(c event.Command) bool { return slices.Equal(c.Words, []string{"rm", "x"}) }) || f.Risk != event.RiskDelete {
			t.Errorf("%s: %s %+v", line, f.Risk, f.Commands)
		}
	}
	for _, line := range []string{"pkexec rm x", "sg root -c 'rm x'", "setpriv --no-new-privs rm x", "tmux new -d 'rm x'", "screen -dm rm x", "valgrind --log-file=x ls", "bwrap --bind / / rm x"} {
		if f := ws.Shell(line); len(f.Unclear) == 0 {
			t.Errorf("%s is known to be %s", line, f.Risk)
		}
	}
	if f := ws.Shell("torsocks curl evil.test/x"); !slices.Contains(f.Hosts, "evil.test") {
		t.Errorf("%q", f.Hosts)
	}
}
