//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// project is a workspace as people have it: a repository, and nothing hidden.
func project(t *testing.T) field {
	t.Helper()
	f := newField(t)
	for _, name := range []string{"other", ".pawl/journal.db"} {
		if err := os.RemoveAll(filepath.Join(f.workspace, name)); err != nil {
			t.Fatal(err)
		}
	}
	f.policy.Hidden = nil
	return f
}

// written is what a tree holds: modes, contents, and where links lead.
func written(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(content)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " " + to
		}
		rel, err := filepath.Rel(root, path)
		found[rel] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// At the top of a workspace there is something protected in the layout that
// everybody has.
func TestCommandsWorkAtTheTopOfTheWorkspace(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		f = project(t)
		got := run(t, open(t, tier, f.policy), f.command(`touch new-file && mkdir new-dir && ls -la >/dev/null && echo more >> free && mv new-file new-dir/ && rm -r new-dir && cat .git/config`))
		if got.Code != 0 || len(got.Changed) != 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestChangeOfProtectedPathIsReportedAndUndone(t *testing.T) {
	closed := ".git .git/new"
	if os.Geteuid() != 0 {
		closed = ".git .git/config" // what cannot be listed counts as removed
	}
	for command, want := range map[string]string{
		`echo x > .git/config`:                         ".git/config",
		`echo x >> .git/config; chmod 755 .git/config`: ".git/config",
		`touch .git/config`:                            "",
		`rm .git/config`:                               ".git/config",
		`rm -r .git`:                                   ".git",
		`mv .git away`:                                 ".git",
		`mkdir -p .git/hooks/a && echo x > .git/hooks/a/x`:     ".git/hooks",
		`rm .git/config && ln -s ../free .git/config`:          ".git/config",
		`rm -r .git && ln -s open .git`:                        ".git",
		`rm .git/config && mkdir -p .git/config/a`:             ".git/config",
		`echo x > .git/new && chmod 000 .git`:                  closed,
		`ln .git/config linked && echo x > linked`:             ".git/config",
		`echo x > new.pem`:                                     "new.pem",
		`mkdir later && echo x > later/file`:                   "later",
		`mv sub away`:                                          "away/key.pem sub/key.pem",
		`rm -r sub && ln -s "$OUT" sub`:                        "sub/key.pem",
		`rm -r sub && echo x > sub`:                            "sub/key.pem",
		`(sleep 1; echo x > .git/config) & echo y > .git/late`: ".git/late",
	} {
		t.Run(command, func(t *testing.T) {
			f := project(t)
			outside := filepath.Join(filepath.Dir(f.workspace), "outside")
			there := written(t, outside)
			held := map[string]map[string]string{}
			for _, name := range []string{".git", "sub/key.pem", "deep", "open"} {
				held[name] = written(t, filepath.Join(f.workspace, name))
			}
			got := run(t, open(t, sandbox.Landlock, f.policy), f.command(command))
			var changed []string
			undone := true
			for _, c := range got.Changed {
				changed = append(changed, c.Path)
				undone = undone && c.Undone
			}
			if list := strings.Join(changed, " "); list != want {
				t.Errorf("told as changed is %q, want %q", list, want)
			}
			if blocked := strings.Contains(command, "sub && ln") || strings.Contains(command, "> sub"); blocked == undone && want != "" {
				t.Errorf("%+v", got.Changed) // where another thing has the directory's name, nothing is put in it
			} else if !blocked {
				for name, was := range held {
					if diff := cmp.Diff(was, written(t, filepath.Join(f.workspace, name))); diff != "" {
						t.Errorf("%s is not as it was (-want +got)\n%s", name, diff)
					}
				}
			}
			if diff := cmp.Diff(there, written(t, outside)); diff != "" {
				t.Errorf("outside of the workspace (-want +got)\n%s", diff)
			}
		})
	}
}

// Another program may have changed it while the command ran.
func TestWhatIsUndoneIsKept(t *testing.T) {
	f := project(t)
	got := run(t, open(t, sandbox.Landlock, f.policy), f.command(`echo hours of work > .git/config`))
	if len(got.Changed) != 1 || !got.Changed[0].Undone {
		t.Fatalf("%+v", got)
	}
	if text, err := os.ReadFile(got.Changed[0].Kept); string(text) != "hours of work\n" {
		t.Errorf("kept is %q, %v", text, err)
	}
}

// A repository may be too large to be copied before each command. What is small
// beside it is put back all the same.
func TestTooLargeChangeIsReportedAndKept(t *testing.T) {
	for name, fill := range map[string]func(dir string) error{
		"by its files": func(dir string) error {
			for i := range 1_001 {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		},
		"by its bytes": func(dir string) error { return os.WriteFile(filepath.Join(dir, "pack"), make([]byte, 16<<20+1), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			f := project(t)
			if err := fill(filepath.Join(f.workspace, ".git")); err != nil {
				t.Fatal(err)
			}
			b := open(t, sandbox.Landlock, f.policy)
			if got := run(t, b, f.command(`cat .git/* > /dev/null; echo x > free`)); len(got.Changed) != 0 {
				t.Errorf("nothing was changed: %+v", got)
			}
			got := run(t, b, f.command(`echo same size > .git/config; echo x > sub/key.pem`))
			want := []sandbox.Change{{Path: ".git/config"}, {Path: "sub/key.pem", Undone: true}}
			if diff := cmp.Diff(want, got.Changed, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Kept" }, cmp.Ignore())); diff != "" {
				t.Errorf("changed (-want +got)\n%s", diff)
			}
			if text, err := os.ReadFile(filepath.Join(f.workspace, ".git/config")); string(text) != "same size\n" {
				t.Errorf("%q, %v", text, err)
			}
			if got := run(t, b, f.command(`for i in $(seq 200); do echo x > .git/more$i; done`)); len(got.Changed) != 1 || got.Changed[0].Path != ".git" || got.Changed[0].Undone {
				t.Errorf("more changes than can be told one by one: %+v", got.Changed)
			}
		})
	}
}

// A look at a repository writes its index anew where that is stale.
func TestALookAtARepositoryChangesNothingInIt(t *testing.T) {
	f := project(t)
	if err := os.RemoveAll(filepath.Join(f.workspace, ".git")); err != nil {
		t.Fatal(err)
	}
	b := open(t, sandbox.Landlock, f.policy)
	make := f.command(`command -v git && git init -q . && git add free && git -c user.name=x -c user.email=x@x.test commit -qm first`)
	make.Grants = []sandbox.Grant{{Path: filepath.Join(f.workspace, ".git"), Tree: true}}
	was := written(t, filepath.Join(f.workspace, "sub"))
	got := run(t, b, make)
	if diff := cmp.Diff(was, written(t, filepath.Join(f.workspace, "sub"))); diff != "" {
		t.Errorf("what nobody touched (-want +got)\n%s", diff)
	}
	if got.output == "" {
		t.Skip("there is no git here")
	} else if got.Code != 0 || len(got.Changed) != 0 {
		t.Fatalf("%+v", got)
	}
	if got := run(t, b, f.command(`touch -d 2001-01-01 free && git status --short && git diff && git log -p > /dev/null && git diff HEAD`)); got.Code != 0 || len(got.Changed) != 0 {
		t.Errorf("%+v", got)
	}
}
