package fs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool/fs"
)

// everyTool are calls of all tools on one path.
func everyTool(path string) map[string]args {
	return map[string]args{
		"fs.read":  {"path": path},
		"fs.write": {"path": path, "content": "owned"},
		"fs.edit":  {"path": path, "old_string": "secret", "new_string": "owned"},
		"fs.list":  {"path": path},
		"fs.glob":  {"path": path, "pattern": "*"},
		"fs.grep":  {"path": path, "pattern": "secret"},
	}
}

func TestNoPathLeadsOutOfTheWorkspace(t *testing.T) {
	p := newPlace(t, map[string]string{"in.txt": "inside"})
	outside := filepath.Join(filepath.Dir(p.dir), "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(outside, "secret.txt")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	symlink(t, secret, p.path("abs-file"))
	symlink(t, "../outside/secret.txt", p.path("rel-file"))
	symlink(t, "../outside", p.path("dir"))
	symlink(t, "rel-file", p.path("chain"))
	symlink(t, "../outside/new.txt", p.path("dangling"))
	symlink(t, "/", p.path("root"))
	symlink(t, p.path("in.txt"), p.path("absolute-inside"))

	for _, path := range []string{
		"../outside/secret.txt", "a/../../outside/secret.txt", secret, "/etc/passwd", "..", "/", "abs-file", "rel-file",
		"dir/secret.txt", "dir", "chain", "dangling", "root/etc/passwd", "dir/new/deep.txt", "./../work/../outside/secret.txt",
		p.dir + "/../outside/secret.txt", p.dir + "-other/x",
	} {
		for name, a := range everyTool(path) {
			p.bad(name, a, event.ErrorOutsidePaths, "outside the workspace")
		}
	}
	if got := p.good("fs.read", args{"path": "absolute-inside"}); !strings.Contains(got, "inside") {
		t.Errorf("a link to a file of the workspace leads to %q", got)
	}
	p.bad("fs.glob", args{"pattern": "../outside/*"}, event.ErrorOutsidePaths, "outside")
	p.bad("fs.glob", args{"pattern": "dir/*"}, event.ErrorOutsidePaths, "outside")
	p.bad("fs.glob", args{"pattern": "/etc/*"}, event.ErrorOutsidePaths, "outside")
	if got := p.good("fs.glob", args{"pattern": "**/secret.txt"}); !strings.Contains(got, "no file matches") {
		t.Errorf("a search went through a link: %s", got)
	}
	if got := p.good("fs.grep", args{"pattern": "secret"}); !strings.Contains(got, "no line matches") {
		t.Errorf("a search went through a link: %s", got)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("the file outside was changed: %q, %v", b, err)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("a file was made outside: %v", entries)
	}
}

func TestNamesOfAFileInsideAreOne(t *testing.T) {
	p := newPlace(t, map[string]string{"a/b.txt": "one\n"})
	symlink(t, "a", p.path("dir"))
	symlink(t, "b.txt", p.path("a/link"))
	names := []string{"a/b.txt", "./a//b.txt", "a/../a/b.txt", p.path("a/b.txt"), "dir/b.txt", "a/link", "dir/link"}
	want := p.resolve("fs.read", args{"path": names[0]}).Access
	for _, name := range names {
		if got := p.resolve("fs.read", args{"path": name}).Access; len(got) != 1 || got[0] != want[0] {
			t.Errorf("%s is the resource %v, not %v", name, got, want)
		}
		p.good("fs.read", args{"path": name})
	}
	p.good("fs.edit", args{"path": "dir/link", "old_string": "one", "new_string": "two"})
	if got := p.content("a/b.txt"); got != "two\n" {
		t.Errorf("the file has %q", got)
	}
	if info, err := os.Lstat(p.path("a/link")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced by a file: %v, %v", info, err)
	}
}

func TestAWorkspaceThatIsNamedThroughALink(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "text"})
	alias := filepath.Join(filepath.Dir(p.dir), "alias")
	symlink(t, "work", alias)
	q := openPlace(t, alias, nil)
	for _, path := range []string{"a.txt", filepath.Join(alias, "a.txt"), p.path("a.txt")} {
		if got := q.good("fs.read", args{"path": path}); !strings.Contains(got, "text") {
			t.Errorf("%s: %s", path, got)
		}
	}
	if a, b := p.resolve("fs.read", args{"path": "a.txt"}).Access, q.resolve("fs.read", args{"path": "a.txt"}).Access; a[0] != b[0] {
		t.Errorf("one file is two resources: %v, %v", a, b)
	}
}

func TestAVanishedWorkspaceIsAnErrorOfItsOwn(t *testing.T) {
	for name, vanish := range map[string]func(pathFunc) error{
		"removed": func(p pathFunc) error { return os.RemoveAll(p.dir) },
		"renamed": func(p pathFunc) error { return os.Rename(p.dir, p.dir+".away") },
		"replaced": func(p pathFunc) error {
			if err := os.Rename(p.dir, p.dir+".away"); err != nil {
				return err
			}
			return os.Mkdir(p.dir, 0o755)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, map[string]string{"a.txt": "x"})
			if err := vanish(p); err != nil {
				t.Fatal(err)
			}
			for tool, a := range everyTool("a.txt") {
				p.bad(tool, a, event.ErrorWorkspace, "is gone or was replaced")
			}
		})
	}
}

func TestWhatIsNoRegularFileIsRefusedAndDoesNotHang(t *testing.T) {
	p := newPlace(t, map[string]string{"d/x": "", "f.txt": "text"})
	if err := syscall.Mkfifo(p.path("pipe"), 0o644); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	for _, c := range []struct{ path, says string }{{"pipe", "not a regular file"}, {"d", "is a directory"}} {
		p.bad("fs.read", args{"path": c.path}, event.ErrorInvalidArgs, c.says)
		p.bad("fs.write", args{"path": c.path, "content": "x"}, event.ErrorInvalidArgs, c.says)
		p.bad("fs.edit", args{"path": c.path, "old_string": "a", "new_string": "b"}, event.ErrorInvalidArgs, c.says)
	}
	p.bad("fs.grep", args{"path": "pipe", "pattern": "x"}, event.ErrorInvalidArgs, "not a regular file")
	p.bad("fs.list", args{"path": "f.txt"}, event.ErrorInvalidArgs, "not a directory")
	p.bad("fs.read", args{"path": "f.txt/x"}, event.ErrorNotFound, "a part of the path is a file")
	p.bad("fs.read", args{"path": "no/such"}, event.ErrorNotFound, "does not exist")
	p.bad("fs.read", args{"path": "a\x00b"}, event.ErrorInvalidArgs, "NUL")
	p.bad("fs.read", args{"path": strings.Repeat("x", 300)}, event.ErrorTool, "file name too long")
	p.bad("fs.read", args{"path": strings.Repeat("x", 5000)}, event.ErrorInvalidArgs, "longer than a path may be")
	symlink(t, "loop", p.path("loop"))
	p.bad("fs.read", args{"path": "loop"}, event.ErrorTool, "too many levels of symbolic links")
	if got := p.good("fs.grep", args{"pattern": "text"}); got != "f.txt:1:text\n" {
		t.Errorf("a search over a tree with a pipe gave %q", got)
	}
}

func TestOpeningWhatIsNoDirectoryFails(t *testing.T) {
	p := newPlace(t, map[string]string{"f": ""})
	for _, dir := range []string{p.path("f"), p.path("none")} {
		if _, err := fs.Open(dir, fs.Options{}); err == nil {
			t.Errorf("%s was opened as a workspace", dir)
		}
	}
}

// FuzzPaths gives every tool paths of any kind: whatever they are, nothing
// outside is shown or changed.
func FuzzPaths(f *testing.F) {
	p := newPlace(f, map[string]string{"a/b.txt": "inside"})
	parent := filepath.Dir(p.dir)
	if err := os.WriteFile(filepath.Join(parent, "secret"), []byte("TOPSECRET"), 0o644); err != nil {
		f.Fatal(err)
	}
	symlink(f, "..", p.path("up"))
	symlink(f, "/", p.path("root"))
	for _, seed := range []string{
		"a/b.txt", "../secret", "up/secret", "a/../../secret", "root" + parent + "/secret", parent + "/secret", "./up/./secret", "a\x00", "..\\secret", "up/work/../secret", "//" + parent + "/secret",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		q := p
		q.t = t
		if len(path) > 200 || strings.Count(path, "/") > 20 {
			return
		}
		left, err := os.ReadDir(p.dir) // by the input before
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range left {
			if e.Name() == "up" || e.Name() == "root" {
				continue
			}
			if err := os.RemoveAll(p.path(e.Name())); err != nil {
				t.Fatal(err)
			}
		}
		q.put("a/b.txt", "inside")
		for name, a := range everyTool(path) {
			if name == "fs.write" || name == "fs.edit" {
				continue
			}
			a["pattern"] = map[string]any{"fs.grep": "TOPSECRET", "fs.glob": "secret"}[name]
			if a["pattern"] == nil {
				delete(a, "pattern")
			}
			if r, err := q.call(name, a); err == nil && strings.Contains(r.Output, "TOPSECRET") {
				t.Errorf("%s %q gave %s", name, path, r.Output)
			}
		}
		if _, err := q.call("fs.write", args{"path": path, "content": "owned"}); err == nil {
			real, err := filepath.EvalSymlinks(q.path(path))
			if filepath.IsAbs(path) {
				real, err = filepath.EvalSymlinks(path)
			}
			if err == nil && !strings.HasPrefix(real, q.dir+"/") {
				t.Errorf("%q was written at %s", path, real)
			}
		}
		if b, err := os.ReadFile(filepath.Join(parent, "secret")); err != nil || string(b) != "TOPSECRET" {
			t.Fatalf("%q changed what is outside: %q, %v", path, b, err)
		}
	})
}

// A file with several names keeps them all when it is written, so a write is judged
// by the protected ones among them.
func TestLinkedFileIsWrittenInPlace(t *testing.T) {
	p := newPlace(t, map[string]string{"a": "mine\n"})
	for i, name := range []string{"b", "c"} {
		if err := os.Link(p.path("a"), p.path(name)); err != nil {
			t.Fatal(err)
		}
		p.good("fs.read", args{"path": name})
		content := fmt.Sprintf("%s %d\n", strings.Repeat("theirs", 3-2*i), i)
		p.good("fs.write", args{"path": name, "content": content})
		p.good("fs.edit", args{"path": name, "old_string": "theirs " + fmt.Sprint(i), "new_string": "ours"})
		if got := p.content("a"); got != strings.Replace(content, "theirs "+fmt.Sprint(i), "ours", 1) {
			t.Errorf("written as %s, a has %q", name, got)
		}
	}
	if facts := p.resolve("fs.write", args{"path": "b", "content": "x"}).Facts; len(facts.Unclear) == 0 {
		t.Error("a write that reaches names that are not known is clear")
	}
}

// A file that is a mount of its own cannot be replaced by another one.
func TestFileThatIsAMountIsWrittenInPlace(t *testing.T) {
	p := newPlace(t, map[string]string{"mounted": ""})
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "--bind", source, p.path("mounted")).CombinedOutput(); err != nil {
		t.Skipf("mounts cannot be made here: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", p.path("mounted")).Run() })
	p.good("fs.read", args{"path": "mounted"})
	for _, word := range []string{"one", "two"} {
		p.good("fs.edit", args{"path": "mounted", "old_string": word, "new_string": word + "!"})
	}
	p.good("fs.write", args{"path": "mounted", "content": p.content("mounted") + "three\n"})
	if b, err := os.ReadFile(source); err != nil || string(b) != "one!\ntwo!\nthree\n" {
		t.Errorf("the mounted file has %q, %v", b, err)
	}
}
