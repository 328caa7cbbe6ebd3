package resolve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/resolve"
)

// gitIn runs git in a directory, and skips the test where there is none.
func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here")
	}
	c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=n@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// repositories are one with a subdirectory, a submodule and a worktree beside it.
func repositories(t *testing.T) (root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"main", "other"} {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "sub/a"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		gitIn(t, dir, "init", "-q")
		gitIn(t, dir, "add", ".")
		gitIn(t, dir, "commit", "-qm", "one")
	}
	gitIn(t, filepath.Join(root, "main"), "submodule", "--quiet", "add", filepath.Join(root, "other"), "lib")
	gitIn(t, filepath.Join(root, "main"), "commit", "-qm", "lib")
	gitIn(t, filepath.Join(root, "main"), "worktree", "add", "-q", filepath.Join(root, "tree"))
	return root
}

// writes are what a line writes of repositories, with + behind one that is opened but
// for its settings and hooks.
func writes(ws resolve.Workspace, line, root string) string {
	var found []string
	for _, p := range ws.Shell(line).Paths {
		if !p.Write {
			continue
		}
		name := strings.TrimPrefix(p.Path, root+"/")
		if p.Unknown {
			name = "?" + name
		}
		if p.Repository {
			name += "+"
		}
		found = append(found, name)
	}
	return strings.Join(found, " ")
}

func TestWhatGitWritesOfARepositoryIsKnown(t *testing.T) {
	root := repositories(t)
	for at, lines := range map[string]map[string]string{
		"main": {
			"git add a && git commit -m x":                 ".git+",
			"git stash":                                    ".git+",
			"git stash push -m x; git stash list":          ".git+",
			"git checkout -b feature":                      ".git+",
			"git branch new":                               ".git+",
			"git commit -m \"$(date)\"":                    ".git+",
			"cd sub && git commit -m x":                    ".git+",
			"git -C sub commit -m x":                       ".git+",
			"git --git-dir=.git tag v1":                    ".git+",
			"sh -c 'git rebase main'":                      ".git+",
			"git branch -d old":                            ".git+ .git/config",
			"git remote add o url":                         ".git+ .git/config",
			"git push -u origin x":                         ".git+ .git/config",
			"git checkout -b x origin/x":                   ".git+ .git/config",
			"git config user.name x":                       ".git/config",
			"git init":                                     ".git+ .git/config",
			"cd lib && git commit -m x":                    ".git/modules/lib+",
			"git -C lib config a.b c":                      ".git/modules/lib/config",
			"git -C " + root + "/other commit":             "other/.git+",
			"git -C " + root + "/tree commit":              ".git/worktrees/tree+ .git+",
			"cd \"$X\" && git commit -m x":                 "?.git",
			"git clone " + root + "/other copy":            "copy/.git+",
			"git clone " + root + "/other":                 "",
			"git init new":                                 "new/.git+",
			"git clone x new && cd new && git checkout v1": "new/.git+",

			"git status": "", "git diff HEAD": "", "git log -3": "", "git show HEAD:a": "", "git branch": "", "git branch --contains x": "", "git tag -n3": "",
			"git stash list": "", "git stash show -p": "", "git remote -v": "", "git remote show o": "", "git worktree list": "", "git reflog": "",
			"git submodule status": "", "git apply x.patch": "", "git format-patch -1": "", "git config --get a.b": "", "git ls-remote o": "",
		},
		"main/sub": {"git add a": "main/.git+", "git config a.b c": "main/.git/config", "git status": ""},
		"main/lib": {"git commit -m x": "main/.git/modules/lib+"},
		"tree":     {"git commit -m x": "main/.git/worktrees/tree+ main/.git+", "git config a.b c": "main/.git/config"},
	} {
		ws, err := resolve.At(filepath.Join(root, at))
		if err != nil {
			t.Fatal(err)
		}
		for line, want := range lines {
			if got := writes(ws, line, root); got != want {
				t.Errorf("in %s %s writes %q, want %q", at, line, got, want)
			}
		}
	}
}

// Anybody may write a file that names another's repository.
func TestARepositoryThatDoesNotNameItsDirectoryIsNotFollowed(t *testing.T) {
	root := repositories(t)
	fake := filepath.Join(root, "fake")
	if err := os.Mkdir(fake, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"main/.git", "main/.git/worktrees/tree", "main/.git/modules/lib", "nowhere"} {
		if err := os.WriteFile(filepath.Join(fake, ".git"), []byte("gitdir: "+filepath.Join(root, dir)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, ok := resolve.FindRepository(fake); ok {
			t.Errorf("%s is taken for that of another directory: %+v", dir, found)
		}
		ws, err := resolve.At(fake)
		if err != nil {
			t.Fatal(err)
		}
		if got := writes(ws, "git commit -m x", root); got != ".git+" {
			t.Errorf("a commit writes %q", got)
		}
	}
	if found, ok := resolve.FindRepository(filepath.Join(root, "tree")); !ok || len(found.Dirs) != 2 || found.Dirs[1] != filepath.Join(root, "main/.git") {
		t.Errorf("%+v, %t", found, ok)
	}
}
