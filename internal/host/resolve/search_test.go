package resolve_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// A program of the workspace is what the model made of it, also one that is
// called cat.
func TestAProgramOfTheWorkspaceIsNotTheOneThatItsNameStandsFor(t *testing.T) {
	dir, ws := tree(t, "bin/cat", "bin/cp", "venv/", "a")
	for _, c := range []struct {
		path, line string
		want       event.Risk
	}{
		{"WORK/bin:/bin", "cat a", event.RiskExecute},
		{"WORK/bin:/bin", "ls; cat a", event.RiskExecute},
		{"WORK/bin:/bin", "cp a b", event.RiskExecute},
		{"WORK/bin:/bin", "timeout 5 cat a", event.RiskExecute},
		{"WORK/bin:/bin", "sh -c 'cat a'", event.RiskExecute},
		{"WORK/bin:/bin", "/bin/cat a", event.RiskRead},
		{"WORK/bin:/bin", "ls a", event.RiskRead},
		{"/bin:WORK/bin", "cat a", event.RiskRead},
		{"WORK/venv:/bin", "cat a", event.RiskRead},
		{".:/bin", "cat a", event.RiskExecute},
		{":/bin", "cat a", event.RiskExecute},
		{"/bin", "cat a", event.RiskRead},
		{"", "cat a", event.RiskRead},

		{"WORK/venv:/bin", "cp a b", event.RiskWrite},
		{"WORK/venv:/bin", "cp a venv/cat && cat a", event.RiskExecute},
		{"WORK/venv:/bin", "install a venv && cat a", event.RiskExecute},
		{"WORK/venv:/bin", "cp a venv/cat", event.RiskExecute},
		{"WORK/venv/bin:/bin", "cp -r bin venv && cat a", event.RiskExecute},
		{"WORK/venv:/bin", "cp a venture", event.RiskWrite},
	} {
		f := ws.Searching(strings.ReplaceAll(c.path, "WORK", dir)).Shell(c.line)
		if f.Risk != c.want {
			t.Errorf("with PATH=%s, %q is %s, want %s", c.path, c.line, f.Risk, c.want)
		}
		looks := slices.ContainsFunc(f.Commands, func(c event.Command) bool { return c.ReadOnly })
		if looks && f.Risk == event.RiskExecute {
			t.Errorf("with PATH=%s, a command of %q is taken to change nothing", c.path, c.line)
		}
	}
}

// What a variable holds may be code: some shells run the commands in an index,
// an offset, a prompt or the name of a variable.
func TestAnExpansionThatMayRunSomethingIsNotTakenForLooking(t *testing.T) {
	_, ws := tree(t, "a")
	for line, want := range map[string]event.Risk{
		`x=$(cat a); echo ${x@P}`:     event.RiskExecute,
		`x=$(cat a); echo ${a[x]}`:    event.RiskExecute,
		`x=$(cat a); echo ${a:x}`:     event.RiskExecute,
		`x=$(cat a); echo ${a:0:x}`:   event.RiskExecute,
		`x=$(cat a); test -v "$x"`:    event.RiskExecute,
		`x=$(cat a); [ -v "$x" ]`:     event.RiskExecute,
		`x=-v; y=$(cat a); [ $x $y ]`: event.RiskExecute,
		`x=$(cat a); echo ${x:0:8}`:   event.RiskRead,
		`x=$(cat a); echo ${x#y}`:     event.RiskRead,
		`x=$(cat a); [ "$x" = y ]`:    event.RiskRead,
		`x=$(cat a); [ -n "$x" ]`:     event.RiskRead,
	} {
		f := ws.Shell(line)
		if f.Risk != want {
			t.Errorf("%s is %s, want %s", line, f.Risk, want)
		}
		if slices.ContainsFunc(f.Commands, func(c event.Command) bool { return c.ReadOnly }) != (want == event.RiskRead) {
			t.Errorf("%s: %+v", line, f.Commands)
		}
	}
}
