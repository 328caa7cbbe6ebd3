package fs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

func TestEditNeedsAPriorReadOfWhatIsThere(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "one two\n"})
	edit := args{"path": "a.txt", "old_string": "one", "new_string": "1"}
	p.bad("fs.edit", edit, event.ErrorConflict, "has not been read")
	p.good("fs.read", args{"path": "a.txt", "limit": 1})
	p.put("a.txt", "one two three\n")
	p.bad("fs.edit", edit, event.ErrorConflict, "has changed since it was read")
	if got := p.content("a.txt"); got != "one two three\n" {
		t.Errorf("a refused edit changed the file to %q", got)
	}
	p.good("fs.read", args{"path": "a.txt"})
	if got := p.good("fs.edit", edit); got != "a.txt: replaced 1 occurrence, the first at line 1" {
		t.Error(got)
	}
	p.good("fs.edit", args{"path": "a.txt", "old_string": "two", "new_string": "2"})
	if got := p.content("a.txt"); got != "1 2 three\n" {
		t.Errorf("the file has %q", got)
	}
}

func TestWhatAnEditReplaces(t *testing.T) {
	for _, c := range []struct {
		name, text string
		args       args
		want       string
		kind       event.ErrorType
		says       string
	}{
		{"once", "a b a", args{"old_string": "b", "new_string": "c"}, "a c a", "", "replaced 1 occurrence, the first at line 1"},
		{"twice is ambiguous", "a\na\n", args{"old_string": "a", "new_string": "c"}, "", event.ErrorConflict, "occurs 2 times"},
		{"all", "x\na\na\n", args{"old_string": "a", "new_string": "c", "replace_all": true}, "x\nc\nc\n", "", "replaced 2 occurrences, the first at line 2"},
		{"deleting", "a b", args{"old_string": " b", "new_string": ""}, "a", "", "replaced 1"},
		{"not there", "a\n", args{"old_string": "b", "new_string": "c"}, "", event.ErrorConflict, "does not occur"},
		{"other white space", "x\n\tif a {\n", args{"old_string": "  if a {\n    b", "new_string": "c"}, "", event.ErrorConflict, "Its first line occurs at line 2"},
		{"nothing to replace", "a", args{"old_string": "", "new_string": "c"}, "", event.ErrorInvalidArgs, "must be some text"},
		{"the same", "a", args{"old_string": "a", "new_string": "a"}, "", event.ErrorInvalidArgs, "differs from new_string"},
		{"line ends of Windows", "a\r\nb\r\nc\r\n", args{"old_string": "a\nb\n", "new_string": "x\ny\nz\n"}, "x\r\ny\r\nz\r\nc\r\n", "", "replaced 1"},
		{"bytes that are no UTF-8 stay", "\xff a \xfe", args{"old_string": "a", "new_string": "b"}, "\xff b \xfe", "", "replaced 1"},
		{"a bomb", strings.Repeat("a", 1<<20), args{"old_string": "a", "new_string": strings.Repeat("b", 1<<20), "replace_all": true}, "", event.ErrorInvalidArgs, "grow beyond"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, map[string]string{"f": c.text})
			p.good("fs.read", args{"path": "f"})
			c.args["path"] = "f"
			if c.kind != "" {
				p.bad("fs.edit", c.args, c.kind, c.says)
				c.want = c.text
			} else if got := p.good("fs.edit", c.args); !strings.Contains(got, c.says) {
				t.Errorf("said %q", got)
			}
			if got := p.content("f"); got != c.want {
				t.Errorf("the file has %.200q, want %.200q", got, c.want)
			}
		})
	}
}

func TestWriteCreatesAndReplacesOnlyWhatWasRead(t *testing.T) {
	p := newPlace(t, map[string]string{"old.txt": "old"})
	if got := p.good("fs.write", args{"path": "new/dir/a.txt", "content": "text"}); got != "new/dir/a.txt: created with 4 bytes" {
		t.Error(got)
	}
	if got := p.content("new/dir/a.txt"); got != "text" {
		t.Errorf("the new file has %q", got)
	}
	p.bad("fs.write", args{"path": "old.txt", "content": "new"}, event.ErrorConflict, "has not been read")
	p.good("fs.read", args{"path": "old.txt"})
	p.good("fs.write", args{"path": "old.txt", "content": "new"})
	// What the model wrote itself it has seen.
	p.good("fs.edit", args{"path": "old.txt", "old_string": "new", "new_string": "newer"})
	p.good("fs.write", args{"path": "new/dir/a.txt", "content": ""})
	p.put("old.txt", "changed by somebody")
	p.bad("fs.write", args{"path": "old.txt", "content": "mine"}, event.ErrorConflict, "has changed since")
	if got := p.content("old.txt"); got != "changed by somebody" {
		t.Errorf("a refused write changed the file to %q", got)
	}
	p.bad("fs.write", args{"path": "old.txt/under", "content": "x"}, event.ErrorNotFound, "a part of the path is a file")
	p.bad("fs.write", args{"path": ".", "content": "x"}, event.ErrorInvalidArgs, "is a directory")
}

func TestAFileOfMoreThan32MBIsNotWritten(t *testing.T) {
	p := newPlace(t, nil)
	write, _ := p.set.Lookup("fs.write")
	content := `{"path":"big","content":"` + strings.Repeat("x", 32<<20+1) + `"}`
	if _, err := write.Run(t.Context(), tool.Call{Args: json.RawMessage(content)}); err == nil || !strings.Contains(err.Error(), "at most 33554432") {
		t.Errorf("%v", err)
	}
}

// TestWritingAgainAfterACrashIsSafe is what fs.write's effect class promises:
// a new process knows nothing of what was read.
func TestWritingAgainAfterACrashIsSafe(t *testing.T) {
	p := newPlace(t, nil)
	a := args{"path": "a.txt", "content": "text"}
	p.good("fs.write", a)
	resumed := openPlace(t, p.dir, nil)
	if got := resumed.good("fs.write", a); got != "a.txt: has already these 4 bytes" {
		t.Error(got)
	}
	resumed = openPlace(t, p.dir, nil)
	p.put("a.txt", "somebody's work")
	resumed.bad("fs.write", a, event.ErrorConflict, "since this run was started or resumed")
}

func TestAReplacedFileKeepsItsModeAndLeavesNothingBehind(t *testing.T) {
	p := newPlace(t, map[string]string{"run.sh": "echo a\n"})
	if err := os.Chmod(p.path("run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	owner := 0
	if os.Geteuid() == 0 {
		owner = 12345
		if err := os.Chown(p.path("run.sh"), owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := os.Stat(p.path("run.sh"))
	p.good("fs.read", args{"path": "run.sh"})
	p.good("fs.edit", args{"path": "run.sh", "old_string": "a", "new_string": "b"})
	after, err := os.Stat(p.path("run.sh"))
	if err != nil || after.Mode() != 0o750 {
		t.Errorf("mode %v, %v", after.Mode(), err)
	}
	if os.SameFile(before, after) {
		t.Error("the file was written in place; a reader could have seen half of it")
	}
	if owner != 0 && int(after.Sys().(*syscall.Stat_t).Uid) != owner {
		t.Error("root took the file from its owner")
	}
	p.bad("fs.edit", args{"path": "run.sh", "old_string": "nowhere", "new_string": "b"}, event.ErrorConflict, "does not occur")
	p.good("fs.write", args{"path": "new.sh", "content": "x"})
	entries, _ := os.ReadDir(p.dir)
	if len(entries) != 2 {
		t.Errorf("the directory has %v", entries)
	}
}

func TestAFileThatMayNotBeWrittenIsNotReplaced(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everything")
	}
	p := newPlace(t, map[string]string{"a.txt": "a"})
	if err := os.Chmod(p.path("a.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	p.good("fs.read", args{"path": "a.txt"})
	p.bad("fs.edit", args{"path": "a.txt", "old_string": "a", "new_string": "b"}, event.ErrorTool, "permission denied")
}

// TestUpdatesTakeTurns lets several workspaces of one process, each of which
// has read the file, edit it at once: nobody's edit is lost in silence.
func TestUpdatesTakeTurns(t *testing.T) {
	p := newPlace(t, map[string]string{"f": strings.Repeat(".", 64)})
	var done atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		q := openPlace(t, p.dir, nil)
		all.Go(func() {
			for range 4 {
				for range 100 {
					if _, err := q.call("fs.read", args{"path": "f"}); err != nil {
						continue
					}
					content, err := os.ReadFile(q.path("f"))
					if err != nil {
						continue
					}
					next := strings.Replace(string(content), ".", fmt.Sprint(i), 1)
					if _, err := q.call("fs.edit", args{"path": "f", "old_string": string(content), "new_string": next}); err == nil {
						done.Add(1)
						break
					}
				}
			}
		})
	}
	all.Wait()
	if got := 64 - strings.Count(p.content("f"), "."); int64(got) != done.Load() || got == 0 {
		t.Errorf("%d edits were said to be done, the file has %d", done.Load(), got)
	}
}

func TestAFileThatAnotherProgramLocksIsAConflict(t *testing.T) {
	p := newPlace(t, map[string]string{"f": "a"})
	f, err := os.Open(p.path("f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Skip(err)
	}
	p.good("fs.read", args{"path": "f"})
	edit := args{"path": "f", "old_string": "a", "new_string": "b"}
	synctest.Test(t, func(t *testing.T) {
		p := p
		p.t = t
		p.bad("fs.edit", edit, event.ErrorConflict, "locked by another program")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.callWith(ctx, "fs.edit", edit); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for a lock outlived its context: %v", err)
		}
	})
	if got := p.content("f"); got != "a" {
		t.Errorf("the file has %q", got)
	}
}

func TestAFullOrReadOnlyDirectoryLeavesTheFileWhole(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everything")
	}
	p := newPlace(t, map[string]string{"d/f": "a"})
	if err := os.Chmod(p.path("d"), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(p.path("d"), 0o755) })
	p.good("fs.read", args{"path": "d/f"})
	p.bad("fs.edit", args{"path": "d/f", "old_string": "a", "new_string": "b"}, event.ErrorTool, "permission denied")
	p.bad("fs.write", args{"path": "d/g", "content": "x"}, event.ErrorTool, "permission denied")
	if got := p.content("d/f"); got != "a" {
		t.Errorf("the file has %q", got)
	}
}

func FuzzEdit(f *testing.F) {
	f.Add("a\r\nb\r\n", "a\nb", "c\nd", true)
	f.Add("one two", "one", "1", false)
	f.Add("", "x", "y", false)
	f.Add("aaaa", "aa", "a", true)
	p := newPlace(f, nil)
	f.Fuzz(func(t *testing.T, text, from, to string, all bool) {
		q := p
		q.t = t
		if !utf8.ValidString(from + to) {
			return // JSON carries no such text
		}
		if err := os.WriteFile(filepath.Join(q.dir, "f"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := q.call("fs.read", args{"path": "f"}); err != nil {
			return
		}
		r, err := q.call("fs.edit", args{"path": "f", "old_string": from, "new_string": to, "replace_all": all})
		got := q.content("f")
		switch {
		case err != nil && got != text:
			t.Errorf("a refused edit changed %q to %q", text, got)
		case err == nil && r.IsError:
			t.Errorf("%+v", r)
		case err == nil && strings.Contains(text, from) && got != strings.ReplaceAll(text, from, to):
			t.Errorf("%q with %q for %q became %q", text, to, from, got)
		}
	})
}
