package shell_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// gitOnly protects what decides what git runs.
type gitOnly struct{}

func (gitOnly) Protects(path string) bool { return path == ".git" || strings.HasPrefix(path, ".git/") }
func (gitOnly) Below(dir string) bool     { return dir == "." }
func (gitOnly) Named() []string           { return []string{".git/"} }

// approved runs a command by the facts that it was judged by.
func approved(t *testing.T, sh tool.Tool, command string) tool.Result {
	t.Helper()
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	facts := sh.Facts(args)
	r, err := sh.Run(t.Context(), tool.Call{ID: "c", Args: args, Facts: &facts})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// inEachTier runs a test in each tier and without one.
func inEachTier(t *testing.T, test func(t *testing.T, tier sandbox.Tier, in func(sandbox.Policy) tool.Tool)) {
	t.Setenv("GIT_AUTHOR_NAME", "n")
	for _, tier := range sandbox.Tiers() {
		t.Run(string(tier), func(t *testing.T) {
			needs(t, tier)
			test(t, tier, func(p sandbox.Policy) tool.Tool {
				t.Helper()
				p.Protected = gitOnly{}
				o := shell.Options{Dir: p.Workspace, Env: append(shell.Environment(os.Environ()),
					"GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=n@example.com", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=n@example.com")}
				if tier != sandbox.None {
					o.Sandbox = boxOf(t, tier, p)
				}
				return shell.New(o)
			})
		})
	}
}

func TestWhatWasApprovedOfGitIsDoneInEveryTier(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here")
	}
	inEachTier(t, func(t *testing.T, tier sandbox.Tier, in func(sandbox.Policy) tool.Tool) {
		root := t.TempDir()
		main := filepath.Join(root, "main")
		if err := os.MkdirAll(filepath.Join(main, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		do := func(dir string, commands ...string) {
			t.Helper()
			sh := in(sandbox.Policy{Workspace: dir, Readable: []string{root}})
			for _, command := range commands {
				if r := approved(t, sh, command); r.IsError || strings.Contains(r.Output, "fatal") || strings.Contains(r.Output, "warning") {
					t.Errorf("in %s %s: %s", dir, command, r.Output)
				}
			}
		}
		do(main, "git init -q .", "echo 1 > a && git add . && git commit -qm one", "git branch two && git checkout -q two",
			"echo 2 >> a; git stash -q && git stash pop -q && git commit -qam two", "git tag v1; git commit -q --amend -m three; git rebase -q master",
			"git config user.nick x && git remote add o /nowhere && git branch -m two three && git branch -D master",
			"git worktree add -q ../tree", "git status --short && git log --oneline | grep three")
		do(filepath.Join(main, "sub"), "echo 1 > b && git add b && git commit -qm sub", "echo 2 > b && git stash -q && git stash pop -q")
		do(filepath.Join(root, "tree"), "echo 1 > c && git add c && git commit -qm tree", "echo 2 > c && git commit -qam tree2", "git config user.nick y")
		if tier == sandbox.None {
			return
		}
		// An unapproved repository, or another command's, is not open.
		for dir, git := range map[string]string{"main": ".git", "main/sub": "../.git", "tree": main + "/.git"} {
			sh := in(sandbox.Policy{Workspace: filepath.Join(root, dir), Readable: []string{root}})
			for _, command := range []string{"python3 -c 'open(\"" + git + "/x\",\"w\")'", "git tag v2; sh -c 'cp /dev/null \"$0\"' " + git + "/hooks/post-commit"} {
				if r := approved(t, sh, command); !r.IsError || !strings.Contains(r.Output, "[closed by Pawl: ") {
					t.Errorf("in %s %s: %s", dir, command, r.Output)
				}
			}
		}
	})
}

func TestARefusalThatIsOursSaysSo(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier sandbox.Tier, in func(sandbox.Policy) tool.Tool) {
		root := t.TempDir()
		ws, outside := filepath.Join(root, "ws"), filepath.Join(root, "outside")
		for _, dir := range []string{ws + "/.git/objects", ws + "/.git/hooks", ws + "/shut", outside} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range []string{ws + "/.git/HEAD", ws + "/.git/config", ws + "/a", outside + "/key"} {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write := func(path string) string { return `f=` + path + `; sh -c 'echo x > "$0"' "$f"` }
		cannot := "echo " + "\"curl: (6) Could not resolve host: example.com\"; exit 6"
		for _, c := range []struct {
			name, command, want string
			policy              sandbox.Policy
			in                  sandbox.Tier // every tier by default
		}{
			{"a repository", write(".git/index"), "[closed by Pawl: .git/index is of a git repository, which is written with an approval (tools.permissions.git: ask)", sandbox.Policy{}, ""},
			{"by the shell itself", `for f in .git/index; do echo x > "$f"; done`, "[closed by Pawl: .git/index is of a git repository", sandbox.Policy{}, ""},
			{"its settings", write(".git/config"), "[closed by Pawl: .git/config decides which programs git runs", sandbox.Policy{}, ""},
			{"outside", write(outside + "/x"), "outside/x is outside the workspace (tools.permissions.filesystem: repo-readwrite)", sandbox.Policy{Readable: []string{outside}}, ""},
			{"read-only", write("a"), "[closed by Pawl: a, because tools.permissions.filesystem is repo-readonly", sandbox.Policy{Filesystem: sandbox.FilesystemReadOnly}, ""},
			{"a read", "cat " + outside + "/key", "outside/key is hidden from commands (tools.permissions.filesystem: repo-readwrite)", sandbox.Policy{}, sandbox.Landlock},
			{"beside a secret", "echo x > " + outside + "/x", "outside/x is in a directory with something hidden", sandbox.Policy{Hidden: []string{outside + "/key"}}, sandbox.Landlock},
			{"the network", cannot, "[closed by Pawl: the network (tools.permissions.network: none)", sandbox.Policy{}, ""},
			{"the network, without a word", "command -v curl >/dev/null || exit 6; curl -s http://example.invalid", "[closed by Pawl: the network", sandbox.Policy{}, ""},
			{"no network is closed", cannot, "", sandbox.Policy{Egress: egress.Rules{Network: egress.NetworkHost}}, ""},
			{"nothing is closed", "echo \"a: Permission denied\"; exit 1", "", sandbox.Policy{}, ""},
			{"by a script", "echo \".git/hooks/x: 1: tool: Permission denied\"; exit 1", "", sandbox.Policy{}, ""},
			{"by bash", "echo \".git/hooks/x: line 1: tool: Permission denied\"; exit 1", "", sandbox.Policy{}, ""},
			{"the machine's", "echo \"/proc/version: Permission denied\"; exit 1", "", sandbox.Policy{}, ""},
			{"it did well", "echo \"cannot write .git/x: Read-only file system\"", "", sandbox.Policy{}, ""},
		} {
			if c.in != "" && c.in != tier {
				continue
			}
			c.policy.Workspace = ws
			if tier == sandbox.None {
				c.want = ""
			}
			sh := in(c.policy)
			for range 2 {
				out := approved(t, sh, c.command).Output
				lines := strings.Split(strings.TrimSpace(out), "\n")
				if last := lines[len(lines)-1]; !strings.Contains(last, c.want) || (c.want == "") == strings.Contains(out, "[closed by Pawl") || strings.Count(out, "[closed by Pawl") > 1 {
					t.Errorf("%s: %s, want at its end %q", c.name, out, c.want)
				}
			}
		}
	})
}
