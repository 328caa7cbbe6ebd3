package resolve_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/resolve"
)

// tree is a workspace with the given entries: "a/" is a directory, "l -> a" a
// link, and everything else a file.
func tree(t *testing.T, entries ...string) (dir string, ws resolve.Workspace) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "work")
	for _, e := range entries {
		name, target, link := strings.Cut(e, " -> ")
		path := filepath.Join(dir, name)
		parent := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			parent = path
		}
		if err := os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		switch {
		case link:
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
		case parent != path:
			if err := os.WriteFile(path, nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	ws, err := resolve.At(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, ws.Confined()
}

// Each line writes outside the workspace by a link that is not there yet when
// the line is judged. Where a sandbox confines it, that holds the write.
func TestWriteThroughNewLinkIsNotInside(t *testing.T) {
	dir, _ := tree(t, "a/b/", "a/l -> ../x", "d/sub/l -> ../../x", "e/")
	ws, err := resolve.At(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"cd a/b && ln -s ../x ../../l && cd ../.. && echo y > l",
		"cd a/b && ln -s ../x ../../l; cd ../..; echo y | tee l/z",
		"cd a/b && ln -s ../x ../../ && cd ../.. && echo y > x",
		"cd a/b && ln -st ../.. ../x && cd ../.. && echo y > x",
		"cd a/b && ln -s --target-directory=../.. ../x && cd ../.. && echo y > x",
		"ln -s ../../a a/b/l && touch a/b/l/../../../x",
		"ln -s ../../a a/b/l && cd a/b/l && touch ../../../x",
		"ln -s a l && mkdir l/../../x",
		"cp -a a/l l && echo y > l",
		"cp -R a/l l && echo y > l",
		"cp --no-deref a/l l && echo y > l",
		"cp -a a/* . && echo y > l",
		"cp -r d/sub f && echo y > f/l",
		"mv a/l l && echo y > l",
		"mv a/l . && echo y > l",
		"mv d/sub f && touch f/l",
		"mkdir n && cd a && ln -s ../x ../n/l; cd ..; mv n/l k; echo y > k",
		"cp -at . a/l && echo y > l",
		"rmdir e && cp -a a/l e && echo y > e",
		"link a/l l && echo y > l",
		"ln a/l l && echo y > l",
		"(sleep 1; echo y > l) & cp -a a/l l",
		"for i in 1 2; do echo y > l; cp -a a/l l; done",
	} {
		f := ws.Shell(line)
		if len(f.Unclear) == 0 && !slices.ContainsFunc(f.Paths, func(p event.PathUse) bool { return p.Write && p.Outside }) {
			t.Errorf("%q is taken to write %v", line, marks(f))
		}
	}
}

// A link gives access to what it leads to, and that is judged where it is made.
func TestALinkIsFollowedFromWhereItLies(t *testing.T) {
	_, ws := tree(t, "a/b/")
	for _, c := range []struct{ line, names string }{
		{"cd a/b && ln -s ../.git ../l", "w:.git"},
		{"cd a/b && ln -s ../x ../..", "w!:x"},
		{"cp -s /etc/passwd l", "w!:/etc/passwd"},
		{"cp -l ../x l", "w!:x"},
		{"cp --link ../x l", "w!:x"},
		{"cp --symbolic-link /etc/passwd l", "w!:/etc/passwd"},
	} {
		f := ws.Shell(c.line)
		if !slices.ContainsFunc(f.Paths, func(p event.PathUse) bool {
			p.Tree = false
			return mark(p) == c.names || p.Outside && mark(event.PathUse{Path: filepath.Base(p.Path), Write: p.Write, Outside: true}) == c.names
		}) {
			t.Errorf("%q is taken to write %v, and not %s", c.line, marks(f), c.names)
		}
	}
}

func TestLinesThatMakeNoLinkElsewhereStayKnown(t *testing.T) {
	_, ws := tree(t, "a/b/", "a/file", "d/l -> ../a")
	for _, line := range []string{
		"cd a && ln -s file l",
		"ln -s a/file l; echo y > other",
		"cp -a d/l n && mkdir -p e && echo y > e/f",
		"mv d/l . && echo y > note",
		"mkdir -p n && mv n/made m && ls m",
		"mv a/* . && ls",
		"mkdir -p n/m && cp a/file n/m && echo y > n/m/file",
		"cp -r a n && touch n/file",
		"mv a/file f && echo y >> f",
		"mv a n && touch n/b/x",
		"cp a/* n && echo y > n/file",
		"cp d/l/file f && echo y > f",
		"cp a/file x; cp x z; echo y > z",
	} {
		f := ws.Shell(line)
		if slices.ContainsFunc(f.Paths, func(p event.PathUse) bool { return p.Write && p.Unknown }) || len(f.Unclear) > 0 {
			t.Errorf("%q is taken to write %v, unclear %q", line, marks(f), f.Unclear)
		}
	}
}
