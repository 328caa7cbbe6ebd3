package fs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// repositoryFiles are a tree whose patterns are of every kind.
var repositoryFiles = map[string]string{
	".gitignore": "# comment\nnode_modules/\n*.log\n!keep.log\n/build\ndoc/*.txt\n**/cache\nlogs/**/old\nspace\\ \nbr{a,b}ce\n\\#hash\n\\!bang\n[ab].o\ntrailing   \nfoo/**\n",
	".git/HEAD":  "ref: refs/heads/main\n", ".git/config": "", ".git/info/exclude": "mine\n", ".git/objects/x": "", ".git/refs/x": "",
	"src/a.js": "needle", "src/.gitignore": "gen\n!*.log\n", "src/gen/b.js": "needle", "src/x.log": "needle",
	"node_modules/x/i.js": "needle", "node_modules/x/package.json": "needle", "sub/node_modules/y.js": "needle", "big.log": "needle", "keep.log": "needle",
	"build/out": "needle", "sub/build/in": "needle", "doc/a.txt": "", "doc/sub/b.txt": "", "deep/er/cache/c": "", "cache": "", "logs/a/b/old": "", "logs/old": "",
	"space ": "", "brace": "", "br{a,b}ce": "", "#hash": "", "!bang": "", "a.o": "", "c.o": "", "trailing": "", "mine": "", "foo/bar/x": "", "foo/y": "",
}

// What is found is what git says: files that it does not ignore.
func TestSearchLeavesOutWhatGitIgnores(t *testing.T) {
	p := newPlace(t, repositoryFiles)
	out, err := exec.Command("git", "-C", p.dir, "-c", "core.excludesFile=", "ls-files", "--others", "--exclude-standard", "-z").Output()
	if err != nil {
		t.Skipf("git is needed to compare with: %v", err)
	}
	want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	slices.Sort(want)
	var got []string
	for l := range strings.Lines(p.good("fs.glob", args{"pattern": "**"})) {
		if !strings.HasPrefix(l, "[") {
			got = append(got, strings.TrimSuffix(l, "\n"))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-git +fs.glob)\n%s", diff)
	}
}

func TestSearchSaysHowMuchGitIgnores(t *testing.T) {
	p := newPlace(t, repositoryFiles)
	const left = " that git ignores left out: "
	for _, c := range []struct {
		tool string
		args args
		want string
	}{
		{"fs.glob", args{"pattern": "{src,sub}/**/*.js"}, "src/a.js\n[6 files or directories" + left + "build/, deep/er/cache/, foo/bar/, …; a path or pattern that names one searches it]\n"},
		{"fs.glob", args{"pattern": "node_modules/**/*.js"}, "node_modules/x/i.js\n"},
		{"fs.glob", args{"pattern": "*.js", "path": "sub/node_modules"}, "sub/node_modules/y.js\n"},
		{"fs.glob", args{"pattern": "*.log"}, "keep.log\n[1 file or directory" + left + "big.log; a path or pattern that names one searches it]\n"},
		{"fs.glob", args{"pattern": "big.log"}, "big.log\n"},
		{"fs.glob", args{"pattern": "*", "path": "src"}, "src/.gitignore\nsrc/a.js\nsrc/x.log\n"},
		{"fs.grep", args{"pattern": "needle", "path": "src"}, "src/a.js:1:needle\nsrc/x.log:1:needle\n[1 file or directory" + left + "src/gen/; a path or pattern that names one searches it]\n"},
		{"fs.grep", args{"pattern": "needle", "include": "node_modules/**/*.js"}, "node_modules/x/i.js:1:needle\n"},
		{"fs.grep", args{"pattern": "needle", "path": "big.log"}, "big.log:1:needle\n"},
		{"fs.grep", args{"pattern": "needle", "path": "build"}, "build/out:1:needle\n"},
	} {
		got := p.good(c.tool, c.args)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %v (-want +got)\n%s", c.tool, c.args, diff)
		}
	}
}

// A workspace may be a directory of a repository, or a worktree, whose patterns lie
// elsewhere. Where there is no repository, patterns mean nothing.
func TestPatternsOfGitOutsideTheWorkspaceHold(t *testing.T) {
	top := t.TempDir()
	for name, content := range map[string]string{
		".gitignore": "*.log\n/pkg/out\n", ".git/info/exclude": "mine\n", "pkg/a.log": "", "pkg/mine": "", "pkg/out/x": "", "pkg/a.go": "", "pkg/pkg/out/y": "",
		"tree/.git": "gitdir: ../.git/worktrees/tree\n", ".git/worktrees/tree/commondir": "../..\n", "tree/mine": "", "tree/b.log": "",
		"pkg/other/.git": "gitdir: elsewhere\n", "pkg/other/c.log": "",
	} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{
		"pkg":  "a.go\nother/.git\nother/c.log\npkg/out/y\n[3 files or directories that git ignores left out: a.log, mine, out/; a path or pattern that names one searches it]\n",
		"tree": ".git\nb.log\n[1 file or directory that git ignores left out: mine; a path or pattern that names one searches it]\n",
	} {
		p := openPlace(t, filepath.Join(top, dir), nil)
		if diff := cmp.Diff(want, p.good("fs.glob", args{"pattern": "**"})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", dir, diff)
		}
	}
	p := newPlace(t, map[string]string{".gitignore": "*.log\n", "a.log": ""})
	if got := p.good("fs.glob", args{"pattern": "*.log"}); got != "a.log\n" {
		t.Errorf("without a repository: %q", got)
	}
}
