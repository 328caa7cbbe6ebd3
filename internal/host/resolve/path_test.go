package resolve_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/resolve"
)

// place is a workspace behind a symbolic link, with links inside it and a
// directory beside it.
func place(t testing.TB) (dir string, ws resolve.Workspace) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(base, "work")
	for _, d := range []string{"work/.git", "work/src/deep", "beside"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"named": "work", "work/git": ".git", "work/src/up": "../.git", "work/abs": filepath.Join(dir, ".git"),
		"work/out": "../beside", "work/round": "round", "work/chain": "src/up", "work/dangling": ".git/new", "work/deep": "src/deep",
	} {
		if err := os.Symlink(target, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	ws, err = resolve.At(filepath.Join(base, "named"))
	if err != nil {
		t.Fatal(err)
	}
	return dir, ws.Confined()
}

func TestPathIsTheOneNameOfTheFile(t *testing.T) {
	dir, ws := place(t)
	beside := filepath.Join(filepath.Dir(dir), "beside")
	for p, want := range map[string]string{
		".":                                   ".",
		"":                                    ".",
		"a.txt":                               "a.txt",
		"./src//deep/../a":                    "src/a",
		"git/config":                          ".git/config",
		"src/up/config":                       ".git/config",
		"chain/hooks/pre-commit":              ".git/hooks/pre-commit",
		"abs/config":                          ".git/config",
		"dangling":                            ".git/new",
		"dangling/x":                          ".git/new/x",
		"deep/../up/config":                   ".git/config", // the parent of where the link leads
		"new/../git/config":                   ".git/config",
		"new/../src/up/../git/config":         ".git/config",
		dir + "/git/config":                   ".git/config",
		filepath.Dir(dir) + "/named/src/../a": "a",
		"out/x":                               "!" + beside + "/x",
		"../beside/x":                         "!" + beside + "/x",
		"..":                                  "!" + filepath.Dir(dir),
		dir + "-other":                        "!" + dir + "-other",
		"/etc/passwd":                         "!/etc/passwd",
		"round":                               "!" + dir + "/round",
		"a\x00b":                              "!" + dir + "/a\x00b",
	} {
		got := ws.Path(p)
		name, outside := strings.CutPrefix(want, "!")
		if got != (event.PathUse{Path: name, Outside: outside}) {
			t.Errorf("%q is %+v, want %s", p, got, want)
		}
	}
}

// FuzzPath: whatever a path is called, a file that can be opened by it is
// named by the system as it is named here.
func FuzzPath(f *testing.F) {
	for _, p := range []string{"a", "git/../x", "src/up/../../out", "./././", "deep/../../..", "round/x", "/../etc//passwd", "new/../git"} {
		f.Add(p)
	}
	dir, ws := place(f)
	f.Fuzz(func(t *testing.T, p string) {
		got := ws.Path(p)
		abs := p
		if !filepath.IsAbs(p) {
			abs = dir + "/" + p
		}
		real, err := os.Stat(abs)
		if err != nil {
			return
		}
		name := got.Path
		if !got.Outside {
			name = filepath.Join(dir, name)
		}
		if strings.HasPrefix(name, "/proc/") {
			return // a pipe's name there is none, and what a process has open changes
		}
		found, err := os.Lstat(name)
		if err != nil || !os.SameFile(real, found) {
			t.Errorf("%q was taken for %+v, which is another file (%v)", p, got, err)
		}
		if inside := strings.HasPrefix(name+"/", dir+"/"); inside == got.Outside {
			t.Errorf("%q: %+v", p, got)
		}
	})
}

// A rule may know a file by any of the names that lead to it.
// The system looks at no path of more than 4095 bytes, but who gets there step by step
// may find a link.
func TestAPathThatIsTooLongToBeLookedAtIsOutside(t *testing.T) {
	_, ws := place(t)
	if got := ws.Path(strings.Repeat(strings.Repeat("d", 200)+"/", 22) + "link"); !got.Outside {
		t.Error("a path that is too long is inside")
	}
	for _, p := range []string{strings.Repeat(strings.Repeat("d", 200)+"/", 10), strings.Repeat("d", 256)} {
		if got := ws.Path(p); got.Outside {
			t.Errorf("%.20s… of %d bytes is outside", p, len(p))
		}
	}
}

func TestAliasThroughLinksIsListedBesideTheFile(t *testing.T) {
	dir, ws := place(t)
	if err := os.Symlink("deep/..", filepath.Join(dir, "rises")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"cat src/a.go":              nil,
		"cat git/config":            {"t:git/config"},
		"cd git && cat config":      {"t:git/config"},
		"echo x > chain/config":     {"w:chain/config", "w:src/up/config"},
		"rm -r deep/../deep":        {"wt:deep"},
		"cat abs/x/../y":            {"t:abs/y"},
		"ls out":                    {"t:out"},
		"cp src/a.go deep/b.go":     {"w:deep/b.go", "w:deep/b.go/a.go"},
		"cat ../named/git/config":   {"t:git/config"},
		"tee dangling < round/file": {":round/file", "w:dangling"},
		"cat deep/../a.go":          nil, // src/a.go, and not the a.go beside the link
		"ls deep/..":                nil,
		"cat rises/a.go":            {"t:rises/a.go"},
	} {
		var got []string
		for _, p := range ws.Shell(line).Paths {
			if p.Alias {
				got = append(got, mark(p))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: other names are %q, want %q", line, got, want)
		}
	}
}

// Files that are named through a link are no more files for it.
func TestAsManyFilesMayBeNamedThroughALinkAsWithoutOne(t *testing.T) {
	_, ws := place(t)
	for _, dir := range []string{"src/deep/", "deep/"} {
		line := "cat"
		for i := range 200 {
			line += " " + dir + strconv.Itoa(i)
		}
		if f := ws.Shell(line); len(f.Unclear) > 0 {
			t.Errorf("200 files in %s: %q", dir, f.Unclear)
		}
		if f := ws.Shell(line + " " + dir + "more"); len(f.Unclear) == 0 {
			t.Errorf("201 files in %s are clear", dir)
		}
	}
}
