package fs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/tool/fs"
)

// grove is a workspace whose state is asked for.
type grove struct {
	t   testing.TB
	dir string
	ws  *fs.Workspace
}

func newGrove(t testing.TB) *grove {
	t.Helper()
	r := &grove{t: t, dir: t.TempDir()}
	for _, name := range []string{"main.go", "lib/a.go", "lib/b.go"} {
		r.write(name, "package "+name)
	}
	return r.open()
}

// open looks at the tree as another process would.
func (r *grove) open() *grove {
	r.t.Helper()
	ws, err := fs.Open(r.dir, fs.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = ws.Close() })
	return &grove{r.t, r.dir, ws}
}

func (r *grove) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *grove) state() string {
	r.t.Helper()
	s, err := r.ws.State(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// age sets a file's time, which tells the state when it was changed.
func (r *grove) age(name string, at time.Time) {
	r.t.Helper()
	if err := os.Chtimes(filepath.Join(r.dir, name), at, at); err != nil {
		r.t.Fatal(err)
	}
}

func TestTheStateOfAWorkspaceIsWhatItsFilesHold(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(r *grove)
		same   bool
	}{
		"nothing":                          {func(*grove) {}, true},
		"the same content again":           {func(r *grove) { r.write("main.go", "package main.go") }, true},
		"another time":                     {func(r *grove) { r.age("main.go", time.Unix(1, 0)) }, true},
		"there and back":                   {func(r *grove) { r.write("main.go", "x"); r.state(); r.write("main.go", "package main.go") }, true},
		"version control":                  {func(r *grove) { r.write(".git/index", "x") }, true},
		"the run's own journal":            {func(r *grove) { r.write(".pawl/journal.db", "x") }, true},
		"an empty directory":               {func(r *grove) { must(os.Mkdir(filepath.Join(r.dir, "empty"), 0o700)) }, true},
		"other content":                    {func(r *grove) { r.write("main.go", "package main") }, false},
		"other content of the same length": {func(r *grove) { r.write("main.go", "package main.og") }, false},
		"a new file":                       {func(r *grove) { r.write("new.go", "") }, false},
		"a file less":                      {func(r *grove) { must(os.Remove(filepath.Join(r.dir, "lib/a.go"))) }, false},
		"another name":                     {func(r *grove) { must(os.Rename(filepath.Join(r.dir, "lib/a.go"), filepath.Join(r.dir, "lib/c.go"))) }, false},
		"a permission":                     {func(r *grove) { must(os.Chmod(filepath.Join(r.dir, "main.go"), 0o700)) }, false},
		"a link":                           {func(r *grove) { must(os.Symlink("main.go", filepath.Join(r.dir, "link"))) }, false},
		"the end of a file too large to be read": {func(r *grove) {
			r.write("big", strings.Repeat("x", 300<<10))
			r.age("big", time.Unix(1, 0))
			r.state()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newGrove(t)
			before := r.state()
			c.change(r)
			if got := r.state() == before; got != c.same {
				t.Errorf("the state is the same: %t", got)
			}
			if r.state() != r.open().state() {
				t.Error("another process tells another state")
			}
		})
	}
}

func TestTwoFilesDoNotMakeOne(t *testing.T) {
	one, two := newGrove(t), newGrove(t)
	one.write("x", "ab")
	two.write("x", "a")
	two.write("y", "b")
	if one.state() == two.state() {
		t.Error("two trees have one state")
	}
}

// A file whose time is old and unchanged is not read again: the second look at
// a large tree costs its directories.
func TestWhatDidNotChangeIsNotReadAgain(t *testing.T) {
	r := newGrove(t)
	old := time.Now().Add(-time.Hour)
	r.age("main.go", old)
	before := r.state()
	r.write("main.go", "PACKAGE MAIN.GO")
	r.age("main.go", old)
	if r.state() != before {
		t.Error("a file with the same size and time was read again")
	}
	if r.open().state() == before {
		t.Error("the test changes nothing")
	}
}

func BenchmarkStateOf2000Files(b *testing.B) {
	r := newGrove(b)
	for i := range 2000 {
		name := fmt.Sprintf("d%d/f%d.go", i%50, i)
		r.write(name, strings.Repeat("x", 4000))
		r.age(name, time.Now().Add(-time.Hour))
	}
	r.state()
	for b.Loop() {
		r.state()
	}
}
