package resolve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// evaluating are command lines by which some shell runs what stands in a file of
// the workspace, though every program in them only looks.
var evaluating = []string{
	`read -r x < one; [ -v "$x" ]`,
	`read -r x < one; [ -v a[x] ]`,
	`read -r x < one; [ ! -v a[x] ]`,
	`read -r x < several; [ $x -gt 3 ]`,
	`read -r x < several; test $x`,
	`read -r x < several; [ -n $x ]`,
	`read -r x < one; [ "$x" -gt 3 ]`,
	`read -r x < one; a[x]=1`,
	`read -r x < one; a=([x]=1)`,
	`read -r x < one; declare -i n=x`,
	`read -r x < one; typeset -i n; n=x`,
	`read -r x < set; declare "$x"`,
	`read -r x < set; export $x; ls`,
	`read -r x < path; export y=$x; ls`,
	`read -r x < one; echo $((x))`,
	`read -r x < one; echo $[x]`,
	`read -r x < one; echo ${b[x]}`,
	`read -r x < one; echo ${b:x}`,
	`read -r x < one; echo ${x@P}`,
	`read -r x < one; ls {b[x]}> out`,
	`read -r x < one; printf %d x`,
	`read -r x < one; printf %d "$x"`,
	`read -r x < one; printf '%*s' "$x" y`,
	`read -r x < one; printf '%s %d' a 1 b x`,
	`read -r x < several; printf '%s %d' $x 1`,
	`read -r x < one; [ -t x ]`,
	`read -r x < one; [ -t x -a y ]`,
	`read -r x < one; exit "$x"`,
	`read -r x < one; shift "$x"`,
	`read -r x < one; wait -p "$x"`,
	`read -r x < one; set -A b "$x"`,
	`[ $# -eq 0 ]`, `printf '%d of %d\n' 1 2`, `exit $?`, // numbers are not told from words that some shell computes
}

func TestALineBySomeShellRunsWhatAFileHoldsDoesNotOnlyLook(t *testing.T) {
	_, ws := tree(t, "one", "several", "set", "path")
	for _, line := range evaluating {
		f := ws.Shell(line)
		if f.Risk != event.RiskExecute && f.Risk != event.RiskUnknown {
			t.Errorf("%s is %s", line, f.Risk)
		}
		if !slices.ContainsFunc(f.Commands, func(c event.Command) bool { return !c.ReadOnly }) && len(f.Commands) > 0 {
			t.Errorf("%s: %+v", line, f.Commands)
		}
	}
}

// What bash, as /bin/sh, really runs among such lines and many harmless ones is
// never taken for looking. The list of what it runs is not ours.
func TestNothingThatBashEvaluatesIsTakenForLooking(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	dir := t.TempDir()
	sh := filepath.Join(dir, "sh")
	if err := os.Symlink(bash, sh); err != nil {
		t.Fatal(err)
	}
	_, ws := tree(t, "one", "several", "set", "path")
	ran := 0
	for _, line := range slices.Concat(evaluating, looking) {
		files := written(t, map[string]string{
			"one": "a[$(echo>hit)]\n", "several": "-v a[$(echo>hit)] -o 1\n", "set": "a[$(echo>hit)]=1\n", "path": "1 PATH=.\n",
		})
		cmd := exec.Command(sh, "-c", line)
		cmd.Dir = files
		_ = cmd.Run()
		if _, err := os.Stat(filepath.Join(files, "hit")); err != nil {
			continue
		}
		ran++
		if f := ws.Shell(line); f.Risk == event.RiskRead || f.Risk == event.RiskWrite {
			t.Errorf("bash runs what a file holds by %s, which is taken for %s", line, f.Risk)
		}
	}
	if ran < 8 {
		t.Errorf("bash ran something by %d lines only, so this shows nothing", ran)
	}
}

// looking are command lines that are known to change nothing.
var looking = []string{
	`read -r x < one; [ "$x" = y ]`,
	`read -r x < one; [ ! "$x" ]`,
	`read -r x < one; [ ! -f "$x" ] || [ -n "$x" ]`,
	`read -r x < one; printf '%s: %5.2s %%\n' "$x" y`,
	`while read -r a b; do echo "$a"; done < several`,
	`set -euo pipefail; ls`,
	`local x="$y"; readonly z=1; export a; exit 3`,
	`f=one; cat "$f"; exit 1`,
}

func TestWhatOnlyLooksIsTakenForThat(t *testing.T) {
	_, ws := tree(t, "one", "several")
	for _, line := range looking {
		if f := ws.Shell(line); f.Risk != event.RiskRead {
			t.Errorf("%s is %s: %+v", line, f.Risk, f)
		}
	}
}

// A shell with a language of its own reads words in ways that are not known
// here: zsh runs a command for *(e:'rm x':).
func TestShellsWithALanguageOfTheirOwnAreNotKnown(t *testing.T) {
	_, ws := tree(t, "a")
	for _, line := range []string{`zsh -c "ls *(e:'rm x':)"`, `ksh -c ls`, `fish -c ls`} {
		if f := ws.Shell(line); len(f.Unclear) == 0 {
			t.Errorf("%s is clear: %+v", line, f)
		}
	}
}
