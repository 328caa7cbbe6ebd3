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

func TestEditNeedsAPriorRead(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "one two\n"})
	edit := args{"path": "a.txt", "old_string": "one", "new_string": "1"}
	p.bad("fs.edit", edit, event.ErrorConflict, "has not been read")
	p.good("fs.read", args{"path": "a.txt", "limit": 1})
	if got := p.good("fs.edit", edit); got != "a.txt: replaced 1 occurrence, the first at line 1" {
		t.Error(got)
	}
	p.good("fs.edit", args{"path": "a.txt", "old_string": "two", "new_string": "2"})
	if got := p.content("a.txt"); got != "1 2\n" {
		t.Errorf("the file has %q", got)
	}
}

// A formatter, a command of the run or a person may change a file between a read and
// an edit. Text that occurs once is replaced all the same, and the result says what
// else had changed.
func TestEditOfAFileThatHasChangedSaysWhatChanged(t *testing.T) {
	p := newPlace(t, map[string]string{"f.py": ""})
	for _, c := range []struct{ read, now, old, said string }{
		{"a = 1\nb = 2\nc = 3\n", "a=1\nb=2\nc = 3\n", "c = 3", "since it was read, 2 lines at line 1 had been replaced by:\n     1\ta=1\n     2\tb=2"},
		{"a\nb\n", "a\nb\nc\n", "b", "since it was read, these lines had been added:\n     3\tc"},
		{"a\nb\nc\nd\n", "a\nd\n", "a", "since it was read, 2 lines after line 1 had been removed"},
		{"a\n", "x\n" + strings.Repeat("y\n", 60), "x", "[21 more changed lines; read them with offset 41]"},
	} {
		p.put("f.py", c.read)
		p.good("fs.read", args{"path": "f.py"})
		p.put("f.py", c.now)
		if got := p.good("fs.edit", args{"path": "f.py", "old_string": c.old, "new_string": "new"}); !strings.Contains(got, c.said) {
			t.Errorf("%q; want it to say %q", got, c.said)
		}
		// What was shown was seen: the next edit has nothing to say.
		if got := p.good("fs.edit", args{"path": "f.py", "old_string": "new", "new_string": "newer"}); strings.Contains(got, "since") == !strings.Contains(c.said, "more changed") {
			t.Errorf("the next edit says %q", got)
		}
	}
	// What was not shown was not seen.
	p.bad("fs.write", args{"path": "f.py", "content": "mine"}, event.ErrorConflict, "has changed since it was read")
	p.put("f.py", "q\nq\n")
	p.bad("fs.edit", args{"path": "f.py", "old_string": "q", "new_string": "r"}, event.ErrorConflict, "has changed since it was read, and old_string occurs 2 times")
	p.bad("fs.edit", args{"path": "f.py", "old_string": "q", "new_string": "r", "replace_all": true}, event.ErrorConflict, "occurs 2 times in it now; read it again")
	p.bad("fs.edit", args{"path": "f.py", "old_string": "s", "new_string": "r"}, event.ErrorConflict, "occurs nowhere in it now; read it again")
}

// Another process has the digests that the journal keeps, and not the contents.
func TestEditAfterAResumeSaysThatTheFileHasChanged(t *testing.T) {
	p := newPlace(t, map[string]string{"f": "one\n", "g": "one\n"})
	for _, name := range []string{"f", "g"} {
		p.good("fs.read", args{"path": name})
	}
	resumed := openPlace(t, p.dir, nil)
	resumed.seen = p.seen
	if got := resumed.good("fs.edit", args{"path": "f", "old_string": "one", "new_string": "1"}); strings.Contains(got, "changed") {
		t.Error(got)
	}
	p.put("g", "one\ntwo\n")
	if got := resumed.good("fs.edit", args{"path": "g", "old_string": "one", "new_string": "1"}); !strings.Contains(got, "it had changed since it was read") {
		t.Error(got)
	}
	resumed.bad("fs.write", args{"path": "g", "content": ""}, event.ErrorConflict, "has changed since it was read")
}

func TestWriteKeepsTheFormatOfTheFile(t *testing.T) {
	for name, c := range map[string]struct{ old, content, want, says string }{
		"CRLF and BOM":           {"\uFEFFa\r\nb\r\n", "a\nc\n", "\uFEFFa\r\nc\r\n", "kept CRLF and the BOM"},
		"CRLF":                   {"a\r\nb\r\n", "a\nb\nc", "a\r\nb\r\nc", "kept CRLF"},
		"what it has already":    {"\uFEFFa\r\n", "\uFEFFb\r\n", "\uFEFFb\r\n", "wrote 6 bytes"},
		"plain":                  {"a\n", "b\r\n", "b\r\n", "wrote 3 bytes"},
		"mixed line ends":        {"a\r\nb\n", "c\nd\n", "c\nd\n", "wrote 4 bytes"},
		"Latin-1":                {"gr\xfc\xdfe\n", "Gr\u00fc\u00dfe\n", "Gr\xfc\xdfe\n", "kept Latin-1"},
		"Latin-1 with CRLF":      {"\xe9\r\n", "\u00e8\n", "\xe8\r\n", "kept CRLF and Latin-1"},
		"UTF-8 and something":    {"\u00e9\xff\n", "new\n", "new\n", "wrote 4 bytes"},
		"a UTF-8 text stays one": {"gr\u00fc\u00dfe\n", "\u4e16\n", "\u4e16\n", "wrote 4 bytes"},
	} {
		p := newPlace(t, map[string]string{"f": c.old})
		p.good("fs.read", args{"path": "f"})
		if got := p.good("fs.write", args{"path": "f", "content": c.content}); !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", name, got)
		}
		if got := p.content("f"); got != c.want {
			t.Errorf("%s: the file has %q, want %q", name, got, c.want)
		}
		// The run has seen what the file has now.
		p.good("fs.edit", args{"path": "f", "old_string": strings.TrimSpace(strings.TrimPrefix(c.content, "\uFEFF")), "new_string": "x"})
	}
	p := newPlace(t, map[string]string{"l": "\xe9\n", "m": "\u00e9\xff\n"})
	for name, says := range map[string]string{"l": "kept in Latin-1, which has no '\uFFFD'", "m": "would destroy them; use fs.edit"} {
		p.good("fs.read", args{"path": name})
		p.bad("fs.write", args{"path": name, "content": "\uFFFD\n"}, event.ErrorInvalidArgs, says)
	}
	p.bad("fs.edit", args{"path": "l", "old_string": "\u00e9", "new_string": "\u4e16"}, event.ErrorInvalidArgs, "which has no '\u4e16'")
	p.good("fs.edit", args{"path": "l", "old_string": "\u00e9", "new_string": "\u00e8"})
	if got := p.content("l"); got != "\xe8\n" {
		t.Errorf("the edited file has %q", got)
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
		{"one line of Windows becomes two", "a\r\nb\r\n", args{"old_string": "a", "new_string": "x\ny"}, "x\r\ny\r\nb\r\n", "", "replaced 1"},
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
	resumed.bad("fs.write", a, event.ErrorConflict, "has not been read in this run")
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

// TestUpdatesTakeTurns lets several workspaces of one process, each of which has read
// the file, edit it at once: no edit is lost silently.
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
	f.Add("\r\nb", "b", "\n", true)
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
		// The line ends and the encoding of a file stay, so what is written may differ.
		converted := strings.Contains(text, "\r\n") && strings.Contains(from+to, "\n") || !utf8.ValidString(text)
		r, err := q.call("fs.edit", args{"path": "f", "old_string": from, "new_string": to, "replace_all": all})
		got := q.content("f")
		switch {
		case err != nil && got != text:
			t.Errorf("a refused edit changed %q to %q", text, got)
		case err == nil && r.IsError:
			t.Errorf("%+v", r)
		case err == nil && !converted && strings.Contains(text, from) && got != strings.ReplaceAll(text, from, to):
			t.Errorf("%q with %q for %q became %q", text, to, from, got)
		}
	})
}
