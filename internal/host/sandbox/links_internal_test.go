package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree makes files below a new directory; "a = b" makes a another name of b.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		name, of, linked := strings.Cut(name, " = ")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if linked {
			err = os.Link(filepath.Join(dir, of), path)
		} else {
			err = os.WriteFile(path, []byte(name), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// dotGit protects .git and everything in it, and what ends with .pem.
type dotGit struct{}

func (dotGit) Protects(path string) bool {
	return path == ".git" || strings.HasPrefix(path, ".git/") || strings.HasSuffix(path, ".pem")
}
func (dotGit) Below(string) bool { return true }
func (dotGit) Named() []string   { return []string{".git/"} }

func TestOtherNamesOfClosedFilesAreFound(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  []string
	}{
		{name: "none", files: []string{".git/config", "a", "b = a"}},
		{name: "beside", files: []string{".git/config", "a = .git/config", "sub/b = .git/config", "c"}, want: []string{"a", "sub/b"}},
		{name: "within what is closed", files: []string{".git/x", ".git/y = .git/x", "a"}},
		{name: "both", files: []string{".git/x", ".git/y = .git/x", "a = .git/y"}, want: []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, c.files...)
			found, err := otherNames(dir, []string{filepath.Join(dir, ".git"), filepath.Join(dir, ".git/config")}, 100)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, path := range found {
				got = append(got, strings.TrimPrefix(path, dir+"/"))
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// A workspace is looked through only for names that are still missing: what is
// closed and has no other names costs no walk through the rest.
func TestAWorkspaceIsNotLookedThroughForNothing(t *testing.T) {
	dir := tree(t, append(strings.Fields("a b c d e f g h i j k l .git/x"), ".git/y = .git/x")...)
	if _, err := otherNames(dir, []string{filepath.Join(dir, ".git")}, 4); err != nil {
		t.Error(err)
	}
	if err := os.Link(filepath.Join(dir, ".git/x"), filepath.Join(dir, "m")); err != nil {
		t.Fatal(err)
	}
	_, err := otherNames(dir, []string{filepath.Join(dir, ".git")}, 8)
	if err == nil || !strings.Contains(err.Error(), "too many files to look through") {
		t.Errorf("a search that was given up says %v", err)
	}
}

func TestTheProtectedNamesOfAFileAreFound(t *testing.T) {
	dir := tree(t, ".git/config", ".git/hooks/run", "sub/key.pem", "free", "twin = free", "a = .git/hooks/run", "b = sub/key.pem", "same.pem = sub/key.pem", "other/deep/c = .git/hooks/run")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"free": nil, "twin": nil, ".git/config": nil, "none": nil, "sub": nil,
		"a": {".git/hooks/run"}, "b": {"same.pem", "sub/key.pem"}, "sub/key.pem": {"same.pem"},
	} {
		for _, workspace := range []string{dir, link} {
			got, err := NewOtherNames(workspace, dotGit{}).Of(path, false)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) > 0 || len(want) > 0 {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s in %s: -want +got\n%s", path, workspace, diff)
				}
			}
		}
	}
	for path, want := range map[string][]string{".": nil, "other": {".git/hooks/run"}, "sub": {"same.pem"}} {
		got, err := NewOtherNames(dir, dotGit{}).Of(path, true)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("below %s: %q, %v, want %q", path, got, err, want)
		}
	}
}
