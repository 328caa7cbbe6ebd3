//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// withFiles puts files into the workspace of a field.
func (f field) withFiles(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(f.workspace, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("here\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// repository is a grant of a directory of git's.
func repository(path string) sandbox.Grant {
	return sandbox.Grant{Path: path, Tree: true, Repository: true}
}

func TestAnOpenRepositoryIsWrittenButForWhatGitRuns(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		if tier == sandbox.Landlock {
			f = project(t) // in which nothing can be made beside what is hidden
		}
		f.withFiles(t, ".git/HEAD", ".git/objects/x", ".git/index", ".git/hooks/pre-commit", ".git/modules/lib/HEAD", ".git/modules/lib/objects/x",
			".git/modules/lib/config", ".git/worktrees/w/commondir")
		b := open(t, tier, f.policy)
		git := filepath.Join(f.workspace, ".git")
		all := repository(git)
		config := sandbox.Grant{Path: filepath.Join(git, "config")}
		for _, c := range []struct {
			command string
			grants  []sandbox.Grant
			open    bool
		}{
			{`echo new > .git/index.lock && mv .git/index.lock .git/index`, []sandbox.Grant{all}, true},
			{`rm .git/index && mkdir -p .git/refs/heads && echo x > .git/refs/heads/config`, []sandbox.Grant{all}, true},
			{`echo x > .git/index`, nil, false},
			{`echo x > .git/index`, []sandbox.Grant{config}, false},
			{`echo x > .git/config`, []sandbox.Grant{all}, false},
			{`echo x > .git/lock && mv .git/lock .git/config`, []sandbox.Grant{all}, false},
			{`mv .git .gone && mkdir .git && echo x > .git/config`, []sandbox.Grant{all}, false},
			{`echo x > .git/hooks/post-commit`, []sandbox.Grant{all}, false},
			{`rm -r .git/hooks`, []sandbox.Grant{all}, false},
			{`mkdir evil && echo "$PWD/evil" > .git/commondir`, []sandbox.Grant{all}, false},
			{`echo x > .git/modules/lib/config`, []sandbox.Grant{all}, false},
			{`mv .git/modules/lib .git/modules/other && mkdir .git/modules/lib && echo x > .git/modules/lib/config`, []sandbox.Grant{all}, false},
			{`echo x > .git/worktrees/w/commondir`, []sandbox.Grant{all}, false},
			{`echo more > .git/config.lock && mv .git/config.lock .git/config`, []sandbox.Grant{all, config}, true},
			{`echo more > .git/config.lock && mv .git/config.lock .git/config`, []sandbox.Grant{config}, true},
			{`echo x > .git/hooks/post-commit`, []sandbox.Grant{all, {Path: filepath.Join(git, "hooks/post-commit")}}, true},
			{`echo x > .git/hooks/beside`, []sandbox.Grant{all, {Path: filepath.Join(git, "hooks/post-commit")}}, false},
			{`echo x > .git/modules/lib/index`, []sandbox.Grant{repository(filepath.Join(git, "modules/lib"))}, true},
			{`echo x > .git/modules/lib/config`, []sandbox.Grant{repository(filepath.Join(git, "modules/lib"))}, false},
			{`echo x > .git/index`, []sandbox.Grant{repository(filepath.Join(git, "modules/lib"))}, false},
		} {
			command := f.command(c.command)
			command.Grants = c.grants
			if got := run(t, b, command); got.held() == c.open {
				t.Errorf("%s with %v: %+v, want it open: %t", c.command, c.grants, got, c.open)
			}
		}
	})
}

// The repository of a worktree lies outside the workspace.
func TestARepositoryOutsideTheWorkspaceIsOpenedAlike(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		git := filepath.Join(filepath.Dir(f.workspace), "outside", "repo.git")
		f.withFiles(t, "../outside/repo.git/HEAD", "../outside/repo.git/objects/x", "../outside/repo.git/config", "../outside/repo.git/hooks/h")
		for _, standing := range []bool{false, true} {
			if standing { // by a setting of its owner, for every command
				f.policy.Open = []sandbox.Grant{repository(git)}
			}
			b := open(t, tier, f.policy)
			for command, open := range map[string]bool{
				`echo x > "$OUT/repo.git/index.lock" && mv "$OUT/repo.git/index.lock" "$OUT/repo.git/index"`: true,
				`echo x > "$OUT/repo.git/config"`:             false,
				`echo x > "$OUT/repo.git/hooks/post-commit"`:  false,
				`mv "$OUT/repo.git/hooks" "$OUT/repo.git/h2"`: false,
				`echo "$PWD" > "$OUT/repo.git/commondir"`:     false,
				`echo x > "$OUT/beside"`:                      false,
			} {
				c := f.command(command)
				if !standing {
					if got := run(t, b, c); !got.held() {
						t.Errorf("%s without a grant: %+v", command, got)
					}
					c.Grants = []sandbox.Grant{repository(git)}
				}
				if got := run(t, b, c); got.held() == open {
					t.Errorf("%s: %+v, want it open: %t", command, got, open)
				}
			}
			for _, name := range []string{"config", "hooks/h"} {
				if text, err := os.ReadFile(filepath.Join(git, name)); string(text) != "here\n" {
					t.Errorf("%s holds %q, %v", name, text, err)
				}
			}
		}
	})
}

// Programs write a file by putting another in its place, and take it away.
func TestGrantedEntryOfProtectedDirectoryIsReplaceable(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		if tier == sandbox.Landlock {
			f = project(t)
		}
		at := func(name string) sandbox.Grant { return sandbox.Grant{Path: filepath.Join(f.workspace, name)} }
		tree := func(name string) sandbox.Grant {
			return sandbox.Grant{Path: filepath.Join(f.workspace, name), Tree: true}
		}
		b := open(t, tier, f.policy)
		for _, c := range []struct {
			command string
			grants  []sandbox.Grant
			open    bool
		}{
			{`sed -i s/here/there/ later/a && grep -q there later/a`, []sandbox.Grant{at("later/a")}, true},
			{`rm later/a`, []sandbox.Grant{at("later/a")}, true},
			{`mv later/a later/c`, []sandbox.Grant{at("later/a"), tree("later/c")}, true},
			{`mkdir -p later/n/m && echo x > later/n/m/x`, []sandbox.Grant{at("later/n/m"), at("later/n/m/x")}, true},
			{`rm -r later/deep`, []sandbox.Grant{tree("later/deep")}, true},
			{`rm -r later`, []sandbox.Grant{tree("later")}, true},
			{`rm sub/key.pem`, []sandbox.Grant{at("sub/key.pem")}, true},
			{`echo x > later/b`, []sandbox.Grant{at("later/a")}, false},
			{`rm later/b`, []sandbox.Grant{at("later/new")}, false},
			{`echo x > later/other`, []sandbox.Grant{at("later/new")}, false},
			{`echo x > later/deep/other`, []sandbox.Grant{at("later/a")}, false},
		} {
			f.withFiles(t, "later/a", "later/b", "later/deep/x", "sub/key.pem")
			command := f.command(c.command)
			command.Grants = c.grants
			if got := run(t, b, command); got.held() == c.open {
				t.Errorf("%s: %+v, want it open: %t", c.command, got, c.open)
			}
			if err := os.RemoveAll(filepath.Join(f.workspace, "later")); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestNothingIsShownWhereSomethingProtectedIsNot(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		if tier == sandbox.Landlock {
			f = project(t)
		}
		for _, name := range []string{".git", ".pawl"} {
			if err := os.RemoveAll(filepath.Join(f.workspace, name)); err != nil {
				t.Fatal(err)
			}
		}
		b := open(t, tier, f.policy)
		before := strings.Join(names(t, f.workspace), " ")
		for range 2 {
			got := run(t, b, f.command(`ls -A | tr '\n' ' '; for f in .git .pawl later soon/file; do test ! -e $f || echo $f is shown; done`))
			if strings.TrimSpace(got.output) != before || len(got.Changed) > 0 {
				t.Errorf("%+v, want %s", got, before)
			}
			// What a command makes there all the same is taken away.
			got = run(t, b, f.command(`mkdir -p .git/hooks .pawl later && touch later/x made && echo x > soon/file`))
			if len(got.Changed) != 4 {
				t.Errorf("%+v", got)
			}
			for _, c := range got.Changed {
				if _, err := os.Stat(c.Kept); !c.Undone || err != nil {
					t.Errorf("%+v is not undone, or not kept: %v", c, err)
				}
			}
			if err := os.Remove(filepath.Join(f.workspace, "made")); err != nil {
				t.Error(err)
			}
			if now := strings.Join(names(t, f.workspace), " "); now != before {
				t.Errorf("left is %s, want %s", now, before)
			}
		}
		c := f.command(`mkdir -p .git/hooks && echo x > .git/config`)
		c.Grants = []sandbox.Grant{repository(filepath.Join(f.workspace, ".git"))}
		if got := run(t, b, c); got.held() {
			t.Errorf("a repository that a decision lets be made: %+v", got)
		}
	})
}
