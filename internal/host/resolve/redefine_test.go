package resolve_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// A rule about a command or a path speaks of what a line does when it runs, so
// what a line makes of its own later words is read, or asked about.
func TestALineThatChangesWhatItsOwnCommandsMeanIsUnclear(t *testing.T) {
	_, ws := place(t)
	for line, unclear := range map[string]bool{
		"()0":                                        true,
		"cd() { :; }; cd src && rm x":                true,
		"env() { :; }; env rm x":                     true,
		"function cat { gzip \"$1\"; }; cat key":     true,
		"build() { go build ./...; }; build":         true,
		": ${CDPATH:=.git}; cd hooks && rm x":        true,
		": ${CDPATH=.git}; cd hooks && rm x":         true,
		"read CDPATH < f; cd hooks && rm x":          true,
		"read CDP\\ATH < f; cd hooks && rm x":        true,
		"read -r -p CDPATH line < f":                 true,
		"while read -r line; do echo $line; done":    false,
		"read $v < f":                                true,
		"getopts a CDPATH -a; cd hooks && rm x":      true,
		"getopts CDPATH opt":                         true,
		"printf -v CDPATH .git; cd hooks && rm x":    true,
		"printf -vCDPATH .git; cd hooks && rm x":     true,
		"wait -p CDPATH; cd hooks && rm x":           true,
		"v=CDPATH; export $v=.git; cd hooks":         true,
		"export CDP''ATH=.git; cd hooks && rm x":     true,
		"local -n v=CDPATH; v=.git; cd hooks":        true,
		"export GOFLAGS=-v out; readonly out=bin":    false,
		"git --exec-path=./own submodule":            true,
		"git --exec-path":                            false,
		"echo ${x:-CDPATH} && printf '%s\\n' a -v b": false,
	} {
		if f := ws.Shell(line); (len(f.Unclear) > 0) != unclear {
			t.Errorf("%s: unclear is %t, want %t (%v)", line, !unclear, unclear, f.Unclear)
		}
	}
}

func TestShellCommandsAreReadAfterAnyOptions(t *testing.T) {
	_, ws := place(t)
	for _, line := range []string{
		"sh -c 'rm x'", "bash -euo pipefail -c 'rm x'", "bash -eo pipefail -c 'rm x'", "bash -ceuo pipefail 'rm x'", "bash -o pipefail -c 'rm x'",
		"bash -c -o errexit 'rm x' a", "bash +c 'rm x'", "bash +e -c 'rm x' \"$a\"", "ionice -c3 rm x", "setarch x86_64 rm x", "taskset -c 0-3 rm x",
	} {
		f := ws.Shell(line)
		if removes := func(c event.Command) bool { return slices.Equal(c.Words, []string{"rm", "x"}) }; !slices.ContainsFunc(f.Commands, removes) || len(f.Unclear) > 0 {
			t.Errorf("%s is not known to run rm x: %+v", line, f)
		}
	}
	for _, line := range []string{
		"bash -O extglob -c 'rm x'", "bash +O extglob -c 'rm x'", "bash -o own -c 'rm x'", "bash -eo", "bash -co pipefail", "bash -s a", "bash - x",
		"bash --posix -c x", "bash $o -c 'rm x'", "bash -c", "prlimit --cpu 5 rm x", "strace -o out rm x",
	} {
		if f := ws.Shell(line); len(f.Unclear) == 0 {
			t.Errorf("%s: what it runs is taken as known: %+v", line, f)
		}
	}
	for line, looks := range map[string]bool{"sh -c 'cat a'": true, "bash -euo pipefail -c 'cat a'": true, "bash -lc 'cat a'": false, "bash -ic 'cat a'": false} {
		if f := ws.Shell(line); (f.Risk == event.RiskRead) != looks {
			t.Errorf("%s is %s, and only looks: %t", line, f.Risk, looks)
		}
	}
}

func TestAFileThatNoWordNamesForSureIsNotKnown(t *testing.T) {
	_, ws := place(t)
	for line, unknown := range map[string]bool{
		"cat /proc/self/cwd/.env": true, "cat < /dev/fd/../cwd/.env": true, "cat /proc/1/root/etc/x": true, "cat /proc/thread-self/cwd/.env": true,
		"echo x > /proc/self/cwd/key": true, "cat /proc/cpuinfo": false, "cat /proc/self/status": false, "cat /dev/stdin": false,
		`jq -n 'import "secret" as $s {search: "./"}; $s'`: true, `jq 'include "m"; .x' a`: true, "jq .important a": false,
	} {
		f := ws.Shell(line)
		if got := slices.ContainsFunc(f.Paths, func(p event.PathUse) bool { return p.Unknown }); got != unknown {
			t.Errorf("%s names a file that is not known: %t, want %t (%q)", line, got, unknown, marks(f))
		}
	}
}

// Git is judged by the repository that is there before a line runs.
func TestALookOfGitInALineThatMakesARepositoryMayDoAnything(t *testing.T) {
	dir, ws := tree(t, "a", "kit/config")
	if err := os.MkdirAll(filepath.Join(dir, "kit", "objects"), 0o755); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]event.Risk{
		"mkdir -p s/objects s/refs; printf '[core]' > s/config; echo ref > s/HEAD; cd s && git status": event.RiskExecute,
		"mkdir s; echo 'gitdir: ../kit' > s/.git; cd s && git log":                                     event.RiskExecute,
		"cp -r kit s; cd s && git diff":                                                                event.RiskExecute,
		"git status; echo '[core]' > .GIT/config":                                                      event.RiskExecute,
		"echo x > \"$f\"; git status":                                                                  event.RiskExecute,
		"echo x > a && git status":                                                                     event.RiskExecute,
		"mkdir src && git diff > src/change.patch":                                                     event.RiskExecute,
	} {
		if f := ws.Shell(line); f.Risk != want {
			t.Errorf("%s is %s, want %s", line, f.Risk, want)
		}
	}
}
