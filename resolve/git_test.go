package resolve_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/resolve"
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

// Whoever packed a repository may have given it a configuration that makes git
// run a program when somebody only looks.
func TestGitOnlyLooksWhereTheRepositoryMakesItRunNothing(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		reads  bool
	}{
		"an ordinary one":              {"[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://a.test/x\n[branch \"main\"]\n\tremote = origin\n", true},
		"a monitor":                    {"[core]\n\tfsmonitor = ./x\n", false},
		"in capitals":                  {"[CORE]\n\tFSMonitor=./x\n", false},
		"a filter":                     {"[filter \"x\"]\n\tclean = ./x\n", false},
		"a converter":                  {"[diff \"x\"]\ntextconv=./x\n", false},
		"a pager":                      {"[pager]\n\tlog = ./x\n", false},
		"another file":                 {"[include]\n\tpath = ../x\n", false},
		"one that is too long":         {strings.Repeat("# nothing\n", 8<<10), false},
		"a monitor behind its section": {"[core] fsmonitor = ./x\n", false},
		"a remote for what is missing": {"[remote \"origin\"]\n\turl = .\n\tpromisor = true\n\tuploadpack = ./x\n", false},
		"a partial clone":              {"[extensions]\n\tpartialClone = origin\n", false},
		"a command for other refs":     {"[core]\n\talternateRefsCommand = ./x\n", false},
		"another working tree":         {"[core]\n\tworktree = ../y\n", false},
		"a setting of a newer git":     {"[core]\n\tnewMonitor = ./x\n", false},
		"a line that goes on":          {"[user]\n\tname = a \\\n[core]\n", false},
		"what cannot be read":          {"[core\n", false},
		"settings of other work": {"[http \"https://a.test\"]\n\tproxy = x\n[url \"git@a.test:\"]\n\tinsteadOf = https://a.test/\n[credential]\n\thelper = store\n" +
			"[alias]\n\tst = !x\n[gitflow \"prefix\"]\n\tfeature = f\n[receive]\n\tdenyCurrentBranch = warn\n[push]\n\tfollowTags\n[commit]\n\tgpgsign = true\n" +
			"[gpg]\n\tformat = ssh\n[feature]\n\tmanyFiles = true\n[notes]\n\tdisplayRef = x\n", true},
		"settings of looks": {"[status]\n\tshowUntrackedFiles = no\n[core]\n\texcludesfile = x\n\tattributesfile = y\n\tcommentchar = ;\n\twhitespace = cr-at-eol\n" +
			"\tsharedRepository = group\n\tcommitGraph = true\n[diff]\n\ttool = x\n\tcolorMoved = zebra\n[merge]\n\ttool = x\n[grep]\n\tlineNumber = true\n" +
			"[blame]\n\tignoreRevsFile = .git-blame-ignore-revs\n[tag]\n\tsort = -version:refname\n[extensions]\n\trelativeWorktrees = true\n", true},
		"large files":                 {"[lfs \"https://a.test/x\"]\n\taccess = basic\n\tlocksverify = true\n", true},
		"an extension of large files": {"[lfs \"extension.x\"]\n\tclean = ./x\n", false},
		"a program for signatures":    {"[gpg]\n\tprogram = ./x\n", false},
		"signatures that are checked": {"[log]\n\tshowSignature = true\n", false},
		"signatures of each commit":   {"[format]\n\tpretty = %G?\n", false},
		"an order by signatures":      {"[branch]\n\tsort = signature\n", false},
		"a file that blame shows":     {"[blame]\n\tignoreRevsFile = .env\n", false},
		"repositories within":         {"[submodule]\n\trecurse = true\n", false},
		"comments and a bare setting": {"# x\n[core] ; y\n\tbare\n[user]\n\tname = \"a ; b\"\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t, map[string]string{
				"repo/.git/config": c.config, "repo/sub/a": "", "tree/.git": "gitdir: ../repo/.git/worktrees/t\n", "repo/.git/worktrees/t/commondir": "../..\n",
			})
			for _, at := range []string{"repo", "repo/sub", "tree"} {
				ws, err := resolve.At(filepath.Join(dir, at))
				if err != nil {
					t.Fatal(err)
				}
				if got := ws.Shell("git status"); got.Commands[0].ReadOnly != c.reads {
					t.Errorf("in %s git status is read-only: %t", at, got.Commands[0].ReadOnly)
				}
			}
		})
	}
}

// What git is led to by other files than its configuration.
func TestGitOnlyLooksWhereNoOtherRepositoryOrHookHasASay(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		reads bool
	}{
		"an ordinary repository":          {map[string]string{".git/index": "DIRC\x00\x00\x81\xa4", "HEAD": "a file"}, true},
		"a hook that status runs":         {map[string]string{".git/hooks/post-index-change": "#!/bin/sh"}, false},
		"registered submodules":           {map[string]string{".gitmodules": ""}, false},
		"a repository in the index":       {map[string]string{".git/index": "DIRC\x00\x00\xe0\x00"}, false},
		"an index in two files":           {map[string]string{".git/sharedindex.1": ""}, false},
		"files that make up a repository": {map[string]string{"sub/HEAD": "", "sub/objects/x": "", "sub/config": "[core]\n\tfsmonitor = ./x\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.files[".git/config"], c.files["sub/a"] = "[core]\n\tbare = false\n", ""
			ws, err := resolve.At(filepath.Join(written(t, c.files), "sub"))
			if err != nil {
				t.Fatal(err)
			}
			if got := ws.Shell("git status"); got.Commands[0].ReadOnly != c.reads {
				t.Errorf("git status is read-only: %t", got.Commands[0].ReadOnly)
			}
		})
	}
}

// Whoever works in their home directory, or on the files that it links to, lets
// the model write what git is told by its user.
func TestGitOnlyLooksWhereItsUsersSettingsInTheWorkspaceMakeItRunNothing(t *testing.T) {
	const runs, quiet = "[core]\n\tfsmonitor = sh x\n", "[user]\n\tname = me\n"
	for name, c := range map[string]struct {
		files map[string]string
		line  string
		reads bool
	}{
		"nothing there":                   {nil, "git status", true},
		"quiet settings":                  {map[string]string{"work/.gitconfig": quiet}, "git status", true},
		"settings that run something":     {map[string]string{"work/.gitconfig": runs}, "git status", false},
		"the other file":                  {map[string]string{"work/.config/git/config": runs}, "git status", false},
		"behind a link":                   {map[string]string{"work/dots/git": runs, "work/.gitconfig -> dots/git": ""}, "git status", false},
		"settings that the line makes":    {nil, "cp a .gitconfig; git status", false},
		"a directory that the line makes": {nil, "cp -r sub .config; git status", false},
		"another file that it makes":      {nil, "cp a b; git status", true},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"work/.git/config": "[core]\n\tbare = false\n", "work/a": runs, "work/sub/git/config": runs}
			links := map[string]string{}
			for name, text := range c.files {
				if link, target, ok := strings.Cut(name, " -> "); ok {
					links[link] = target
				} else {
					files[name] = text
				}
			}
			home := filepath.Join(written(t, files), "work")
			for link, target := range links {
				if err := os.Symlink(target, filepath.Join(filepath.Dir(home), link)); err != nil {
					t.Fatal(err)
				}
			}
			ws, err := resolve.At(home)
			if err != nil {
				t.Fatal(err)
			}
			commands := ws.Configured(home, "").Shell(c.line).Commands
			if got := commands[len(commands)-1].ReadOnly; got != c.reads {
				t.Errorf("git status is read-only: %t", got)
			}
			elsewhere := ws.Configured(t.TempDir(), "").Shell("git status").Commands[0]
			if !elsewhere.ReadOnly {
				t.Error("another user's settings count")
			}
		})
	}
}

func TestDailyLooksOfGitAreLooks(t *testing.T) {
	_, ws := place(t)
	for _, line := range []string{
		"git status -sb", "git status --porcelain=v2 --branch", "git diff", "git diff --staged", "git diff --cached --stat", "git diff main...HEAD --name-only",
		"git diff --ours a", "git diff --theirs a", "git diff --base a", "git diff -U10 HEAD~1 -- a", "git log -1 --format=%H", "git log --oneline -n 20",
		"git log --graph --oneline --all --decorate", "git log -S foo -p -3", "git log --since='2 weeks ago' --author=me", "git log --follow -- a",
		"git log --use-mailmap", "git log --mailmap", "git show --stat HEAD", "git show HEAD:a", "git shortlog -sne", "git blame -w -C -L 1,20 a",
		"git ls-files -m -o --exclude-standard", "git ls-files -o --directory --no-empty-directory", "git ls-files -o --directory --empty-directory", "git describe --tags --always",
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

func TestASettingOfGitIsSafeRunsACommandOrIsAskedAbout(t *testing.T) {
	_, ws := place(t)
	for setting, want := range map[string]string{
		"color.ui=never": "", "COLOR.UI=never": "", "advice.statusHints=false": "", "core.quotePath=off": "", "commit.gpgSign=false": "",
		"log.showSignature=false": "", "safe.directory=/srv/x": "", "diff.renames": "",
		"core.pager=rm x": "rm x", "core.sshCommand=!rm x": "rm x", "credential.helper=rm x": "rm x", "pager.log=rm x": "rm x",
		"diff.exif.textconv=rm x": "rm x", "remote.origin.uploadpack=rm x": "rm x", "gpg.ssh.program=rm x": "rm x", "alias.l=!rm x": "rm x",
		"commit.gpgSign=true": "?", "commit.gpgSign": "?", "log.showSignature=falsehood": "?", "xcolor.ui=never": "?", "core.abbrevs=1": "?",
		"core.hooksPath=x": "?", "include.path=x": "?", "uploadpack.packObjectsHook=rm": "?", "core.worktree=/": "?", "url.ext::sh.insteadOf=x": "?",
	} {
		facts := ws.Shell("git -c '" + setting + "' diff")
		got := ""
		switch last := facts.Commands[len(facts.Commands)-1]; {
		case len(facts.Unclear) > 0:
			got = "?"
		case len(facts.Commands) > 1:
			got = strings.Join(last.Words, " ")
		}
		if got != want {
			t.Errorf("git -c %q is read as running %q, want %q", setting, got, want)
		}
	}
}

func TestWhatABisectionRunsIsRead(t *testing.T) {
	_, ws := place(t)
	for line, clear := range map[string]bool{
		"git bisect": true, "git bisect good": true, "git bisect start HEAD $old": true, "git bisect run go test ./...": true,
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
