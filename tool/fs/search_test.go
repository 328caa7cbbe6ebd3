package fs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
)

var tree = map[string]string{
	"README.md": "# Title\n", "main.go": "package main\n\nfunc main() {}\n", ".env": "A=1\n", "cmd/a/main.go": "package main // a\n",
	"cmd/b/main.go": "package main // b\n", "cmd/b/main_test.go": "package main // test\n", "docs/x/y/z.md": "deep Title\n",
	".git/config": "package git\n", "sub/.git/HEAD": "package git\n", ".pawl/journal.db": "package journal\n", "we ird[1].txt": "odd\n",
}

func TestListShowsADirectory(t *testing.T) {
	p := newPlace(t, tree)
	symlink(t, "README.md", p.path("link"))
	want := strings.Join([]string{
		".env (4 bytes)", ".git/", ".pawl/", "README.md (8 bytes)", "cmd/", "docs/", "link -> README.md", "main.go (29 bytes)", "sub/", "we ird[1].txt (4 bytes)", "",
	}, "\n")
	for _, a := range []args{{}, {"path": "."}, {"path": p.dir}} {
		if diff := cmp.Diff(want, p.good("fs.list", a)); diff != "" {
			t.Errorf("%v (-want +got)\n%s", a, diff)
		}
	}
	if err := os.Mkdir(p.path("nothing"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := p.good("fs.list", args{"path": "nothing"}); got != "[the directory is empty]\n" {
		t.Error(got)
	}
	p.bad("fs.list", args{"path": "nowhere"}, event.ErrorNotFound, "nowhere does not exist")
}

func TestGlobFindsFilesByTheirPath(t *testing.T) {
	p := newPlace(t, tree)
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"pattern": "**/*.go"}, "cmd/a/main.go cmd/b/main.go cmd/b/main_test.go main.go"},
		{args{"pattern": "*.go"}, "main.go"},
		{args{"pattern": "./*.go"}, "main.go"},
		{args{"pattern": "*"}, ".env README.md main.go we ird[1].txt"},
		{args{"pattern": "cmd/*/main.go"}, "cmd/a/main.go cmd/b/main.go"},
		{args{"pattern": "cmd/**"}, "cmd/a/main.go cmd/b/main.go cmd/b/main_test.go"},
		{args{"pattern": "**"}, ".env README.md cmd/a/main.go cmd/b/main.go cmd/b/main_test.go docs/x/y/z.md main.go we ird[1].txt"},
		{args{"pattern": "**/y/**"}, "docs/x/y/z.md"},
		{args{"pattern": "{main,cmd/b/*}.go"}, "cmd/b/main.go cmd/b/main_test.go main.go"},
		{args{"pattern": "cmd/[!a]/main.go"}, "cmd/b/main.go"},
		{args{"pattern": "[A-Z]*.m?"}, "README.md"},
		{args{"pattern": `we ird\[1\].txt`}, "we ird[1].txt"},
		{args{"pattern": "*.go", "path": "cmd/b"}, "cmd/b/main.go cmd/b/main_test.go"},
		{args{"pattern": "**/*.go", "path": p.path("cmd/a")}, "cmd/a/main.go"},
		{args{"pattern": p.path("cmd/a/*.go")}, "cmd/a/main.go"},
		{args{"pattern": ".git/*"}, ".git/config"},
		{args{"pattern": "*.rs"}, "[no file matches *.rs]"},
	} {
		got := strings.TrimSpace(strings.ReplaceAll(p.good("fs.glob", c.args), "\n", " "))
		if got != c.want {
			t.Errorf("%v found\n%s, want\n%s", c.args, got, c.want)
		}
	}
	p.bad("fs.glob", args{"pattern": "{a"}, event.ErrorInvalidArgs, "a { is not closed")
	p.bad("fs.glob", args{"pattern": "[a"}, event.ErrorInvalidArgs, "a [ is not closed")
	p.bad("fs.glob", args{"pattern": "[z-a]"}, event.ErrorInvalidArgs, "invalid character class range")
	p.bad("fs.glob", args{"pattern": strings.Repeat("*a", 501)}, event.ErrorInvalidArgs, "at most 1000")
	p.bad("fs.glob", args{"pattern": "no/such/*.go"}, event.ErrorNotFound, "no/such does not exist")
}

func TestGrepGivesPathLineAndText(t *testing.T) {
	p := newPlace(t, tree)
	p.put("bin", "package\x00")
	p.put("big.txt", strings.Repeat("package\n", 200_000))
	left := "[1 files above 1048576 bytes were not searched]\n[1 binary files were not searched]\n"
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"pattern": "^package main"}, "cmd/a/main.go:1:package main // a\ncmd/b/main.go:1:package main // b\ncmd/b/main_test.go:1:package main // test\nmain.go:1:package main\n" + left},
		{args{"pattern": "func", "path": "main.go"}, "main.go:3:func main() {}\n"},
		{args{"pattern": "package main$", "path": "."}, "main.go:1:package main\n" + left},
		{args{"pattern": "title"}, "[no line matches]\n" + left},
		{args{"pattern": "(?i)title", "include": "*.md"}, "README.md:1:# Title\ndocs/x/y/z.md:1:deep Title\n"},
		{args{"pattern": "package", "include": "cmd/*/main.go"}, "cmd/a/main.go:1:package main // a\ncmd/b/main.go:1:package main // b\n"},
		{args{"pattern": "package", "path": "cmd", "include": "b/*_test.go"}, "cmd/b/main_test.go:1:package main // test\n"},
		{args{"pattern": "git", "path": ".git"}, ".git/config:1:package git\n"},
	} {
		if diff := cmp.Diff(c.want, p.good("fs.grep", c.args)); diff != "" {
			t.Errorf("%v (-want +got)\n%s", c.args, diff)
		}
	}
	p.bad("fs.grep", args{"pattern": "("}, event.ErrorInvalidArgs, "no RE2 regular expression")
	p.bad("fs.grep", args{"pattern": `(?=a)`}, event.ErrorInvalidArgs, "no RE2 regular expression")
	p.bad("fs.grep", args{"pattern": strings.Repeat("a", 1001)}, event.ErrorInvalidArgs, "at most 1000")
	p.bad("fs.grep", args{"pattern": "x", "path": "big.txt"}, event.ErrorInvalidArgs, "files above 1048576 are not searched")
	p.bad("fs.grep", args{"pattern": "x", "path": "bin"}, event.ErrorInvalidArgs, "binary")
	p.bad("fs.grep", args{"pattern": "x", "path": "nowhere"}, event.ErrorNotFound, "does not exist")
}

// rows: HAR-6
func TestSearchesAreCapped(t *testing.T) {
	p := newPlace(t, nil)
	for i := range 600 {
		p.put(fmt.Sprintf("d%d/f%03d.txt", i%3, i), strings.Repeat("x", 100)+"needle"+strings.Repeat("ä", 4000)+"\n")
	}
	for name, c := range map[string]struct {
		args args
		most int
		note string
	}{
		"fs.glob": {args{"pattern": "**/*.txt"}, 500, "[the first 500; there are more, so use a narrower pattern]\n"},
		"fs.grep": {args{"pattern": "needle"}, 200, "there are more, so use a narrower pattern or path]\n"},
	} {
		r, err := p.call(name, c.args)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(r.Output, ".txt"); n > c.most || n < 50 || !r.Truncated || !strings.HasSuffix(r.Output, c.note) {
			t.Errorf("%s: %d lines, truncated %v: %.300s", name, n, r.Truncated, r.Output)
		}
		if n := utf8.RuneCountInString(r.Output); n > 30_000 {
			t.Errorf("%s: %d characters", name, n)
		}
		if again := p.good(name, c.args); again != r.Output {
			t.Errorf("%s: the order changes", name)
		}
	}
	for i := range 501 {
		p.put(fmt.Sprintf("many/%d", i), "")
	}
	if got := p.good("fs.list", args{"path": "many"}); !strings.HasSuffix(got, "[500 of 501 entries; fs.glob finds names]\n") {
		t.Errorf("%.300s", got)
	}
}

// FuzzGlob holds our patterns against path.Match, where that knows them.
// A search that did not look everywhere must not read as one that found nothing.
func TestASearchSaysWhatLiesTooDeepForIt(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "x", strings.Repeat("d/", 250) + "leaf.txt": "needle"})
	const note = "[1 directories could not be read, or not whole]"
	for pattern, want := range map[string]bool{"**/*.txt": true, "d/**": true, "*.txt": false, "d/*/*.txt": false} {
		if got := p.good("fs.glob", args{"pattern": pattern}); strings.Contains(got, note) != want {
			t.Errorf("glob %s: %q", pattern, got)
		}
	}
	if got := p.good("fs.grep", args{"pattern": "needle"}); !strings.Contains(got, note) {
		t.Errorf("grep: %q", got)
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{
		{"*.go", "a.go"}, {"a/?", "a/b"}, {"[a-c]x", "bx"}, {"[^a]", "b"}, {`\*`, "*"}, {"a*b*c", "aXbYc"}, {"[]a]", "]"}, {"[a\\-z]", "-"},
		{"*{", "x"}, {"é?", "éü"}, {"[--0]", "."}, {"a[", "a"},
	} {
		f.Add(s[0], s[1])
	}
	p := newPlace(f, nil)
	f.Fuzz(func(t *testing.T, pattern, name string) {
		q := p
		q.t = t
		if len(name) > 100 || name == "" || strings.ContainsAny(name, "/\x00\n\r") || name == "." || name == ".." || !utf8.ValidString(name) || !utf8.ValidString(pattern) {
			return
		}
		if strings.ContainsAny(name, "\"\x7f") || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
			return // shown quoted
		}
		if err := os.WriteFile(q.path(name), nil, 0o644); err != nil {
			return
		}
		defer os.Remove(q.path(name))
		r, err := q.call("fs.glob", args{"pattern": pattern})
		if strings.ContainsAny(pattern, "{}/!") || strings.Contains(pattern, "**") {
			return // path.Match reads these otherwise
		}
		want, matchErr := path.Match(pattern, name)
		if matchErr != nil || err != nil || pattern == "" {
			return
		}
		if got := strings.HasPrefix(r.Output, name+"\n"); got != want {
			t.Errorf("%q matches %q: %v, path.Match says %v (%q)", pattern, name, got, want, r.Output)
		}
	})
}

func FuzzGrep(f *testing.F) {
	f.Add("a+", "caat\n\r\nä", "*.txt")
	f.Add("", "", "")
	f.Add("(?s).*", "\xff\xfe\x01", "**/f*")
	p := newPlace(f, nil)
	f.Fuzz(func(t *testing.T, pattern, text, include string) {
		q := p
		q.t = t
		q.put("f.txt", text)
		r, err := q.call("fs.grep", args{"pattern": pattern, "include": include})
		if err == nil && (!utf8.ValidString(r.Output) || utf8.RuneCountInString(r.Output) > 30_000) {
			t.Errorf("%q over %q gave %q", pattern, text, r.Output)
		}
	})
}

func BenchmarkGrep(b *testing.B) {
	p := newPlace(b, nil)
	for i := range 200 {
		p.put(fmt.Sprintf("d%d/f%d.txt", i%10, i), strings.Repeat("some text of a usual length, without what is sought\n", 200))
	}
	for b.Loop() {
		p.good("fs.grep", args{"pattern": "need[l]e"})
	}
}

// A few characters of a pattern can keep the search of one line busy for minutes.
func TestASearchEndsWithItsCall(t *testing.T) {
	p := newPlace(t, map[string]string{"one": strings.Repeat("x", 1<<20), "many": strings.Repeat(strings.Repeat("x", 4000)+"\n", 250)})
	for _, file := range []string{"one", "many"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if r, err := p.callWith(ctx, "fs.grep", args{"pattern": ".{0,1000}z", "path": file}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %q, %v", file, r.Output, err)
		}
	}
}
