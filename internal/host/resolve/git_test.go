package resolve_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/resolve"
)

// written is a new directory that holds these files, by their paths.
func written(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Git runs what the repository configures, so a git command that only reads has unknown
// effects if no sandbox confines it, or if a command may have made the repository.
func TestGitOnlyLooksInTheRepositoryOfAConfinedWorkspace(t *testing.T) {
	dir := written(t, map[string]string{
		"repo/.git/config": "", "repo/src/a": "", "repo/own/.git/config": "", "repo/bare/HEAD": "", "repo/bare/objects/x": "", "repo/home/.gitconfig": "",
		"repo/bare/src/a": "", "outer/.git/config": "", "outer/.gitmodules": "",
	})
	for _, c := range []struct {
		at, line string
		looks    bool
	}{
		{"repo", "git status", true},
		{"repo/src", "git status", true},
		{"repo", "cd src && git status", true},
		{"repo", "cd own && git status", false},
		{"repo", "cd bare && git status", false},
		{"repo", "cd bare/src && git status", false},
		{"repo", "cd \"$x\" && git status", false},
		{"repo", "git -C own status", false},
		{"repo", "git --git-dir=bare status", false},
		{"repo", "mkdir n; git status", false},
		{"repo/bare", "git status", false},
		{"outer", "git status", false},
	} {
		ws, err := resolve.At(filepath.Join(dir, c.at))
		if err != nil {
			t.Fatal(err)
		}
		if got := ws.Confined("", dir).Shell(c.line).Risk == event.RiskRead; got != c.looks {
			t.Errorf("in %s %s only looks: %t", c.at, c.line, got)
		}
		for name, other := range map[string]resolve.Workspace{"no sandbox": ws, "settings in the workspace": ws.Confined(filepath.Join(dir, c.at, "home"))} {
			if got := other.Shell(c.line).Risk; got == event.RiskRead || got == event.RiskWrite {
				t.Errorf("with %s %s is %s", name, c.line, got)
			}
		}
	}
}

func TestDailyLooksOfGitAreLooks(t *testing.T) {
	_, ws := place(t)
	for _, line := range []string{
		"git status -sb", "git status --porcelain=v2 --branch", "git diff", "git diff --staged", "git diff --cached --stat", "git diff main...HEAD --name-only",
		"git diff -U10 HEAD~1 -- a", "git log -1 --format=%H", "git log --oneline -n 20",
		"git log --graph --oneline --all --decorate", "git log -S foo -p -3", "git log --since='2 weeks ago' --author=me", "git log --follow -- a",
		"git show --stat HEAD", "git show HEAD:a", "git shortlog -sne", "git blame -w -C -L 1,20 a",
		"git ls-files -m -o --exclude-standard", "git describe --tags --always",
		"git rev-parse --abbrev-ref HEAD", "git rev-list --count HEAD", "git cat-file -p HEAD:a", "git grep -n /api", "git branch -vv", "git remote -v", "git stash list",
	} {
		f := ws.Shell(line)
		if f.Risk != event.RiskRead {
			t.Errorf("%s is %s (%v)", line, f.Risk, f.Unclear)
		}
		for _, p := range f.Paths {
			if p.Outside {
				t.Errorf("%s reads %s", line, p.Path)
			}
		}
	}
}

// Options of git may be cut short.
func TestAnOptionThatMakesGitRunSomethingIsSeenCutShort(t *testing.T) {
	_, ws := place(t)
	for _, line := range []string{"git grep --op=x a", "git grep -nOx a", "git diff --ext-d", "git log --textc", "git diff --outp=x"} {
		if got := ws.Shell(line); got.Commands[0].ReadOnly {
			t.Errorf("%s: it is taken for a look", line)
		}
	}
}

func TestASettingOfGitIsSafeOrAskedAbout(t *testing.T) {
	_, ws := place(t)
	for setting, safe := range map[string]bool{
		"color.ui=never": true, "COLOR.UI=never": true, "advice.statusHints=false": true, "core.quotePath=off": true, "commit.gpgSign=false": true,
		"safe.directory=/srv/x": true, "diff.renames": true, "core.pager=cat": true,
		"core.pager=rm x": false, "core.sshCommand=!rm x": false, "credential.helper=rm x": false, "pager.log=rm x": false, "alias.l=!rm x": false,
		"commit.gpgSign=true": false, "commit.gpgSign": false, "xcolor.ui=never": false, "core.abbrevs=1": false,
		"core.hooksPath=x": false, "include.path=x": false, "core.worktree=/": false, "url.ext::sh.insteadOf=x": false,
	} {
		if f := ws.Shell("git -c '" + setting + "' diff"); (len(f.Unclear) == 0) != safe {
			t.Errorf("git -c %q is known to run nothing: %t", setting, !safe)
		}
	}
}

func TestWhatABisectionRunsIsAskedAbout(t *testing.T) {
	_, ws := place(t)
	for line, clear := range map[string]bool{
		"git bisect": true, "git bisect good": true, "git bisect start HEAD $old": true, "git bisect run go test ./...": false,
		"git bisect run": false, "git bisect $what": false, "git bisect run $what": false,
	} {
		if got := ws.Shell(line); (len(got.Unclear) == 0) != clear {
			t.Errorf("%s: unclear %q", line, got.Unclear)
		}
	}
}

// Only what may show what files hold or held is a reading of all of them.
func TestWhatShowsFilesOfARepositoryIsKnownUnderEveryNameOfIt(t *testing.T) {
	ws, err := resolve.At(written(t, map[string]string{".git/config": "[core]\n\tbare = false\n", "a": ""}))
	if err != nil {
		t.Fatal(err)
	}
	ws = ws.Confined()
	for line, all := range map[string]bool{
		"git archive HEAD": true, "git bundle create - HEAD": true, "git reflog -p": true, "git stash list -p": true, "git stash show": true,
		"git status -v": true, "git status -sv": true, "git status --verb": true, "git status $x": true, "git commit -av": true, "git commit --dry-run -v": true,
		"git rebase --show-current-patch": true, "git --no-pager grep x": true, "git -P grep x": true, "git -C . grep x": true, "git difftool": true,
		"git commit $x": true,
		"git reflog":    false, "git stash list": false, "git stash -u": false, "git status -s -uno": false, "git commit -mv": false, "git commit -m \"$x\"": false,
		"git rebase main": false, "git --no-pager log -p -- a": false, "git -c color.ui=never diff -- a": false, "git --no-pager grep x -- a": false,
	} {
		if got := slices.Contains(marks(ws.Shell(line)), "t:."); got != all {
			t.Errorf("%s reads all files: %t, want %t (%v)", line, got, all, marks(ws.Shell(line)))
		}
	}
}
