package fs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
)

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "%6d\tline %d\n", i, i)
	}
	return b.String()
}

func linesOf(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// The format of a file is named once, under the first page or the first that the run
// reads of it.
func TestReadNamesWhatLinesDoNotShow(t *testing.T) {
	p := newPlace(t, map[string]string{
		"bom": "\uFEFFa\r\nb\r\n", "mixed": "a\r\nb\nc\n", "some": "\u00e9\xff\n", "late": strings.Repeat("a\n", 70_000) + "\xfc\n",
	})
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"path": "bom", "offset": 2}, "     2\tb\n[UTF-8 with BOM, CRLF]\n"},
		{args{"path": "bom", "offset": 2}, "     2\tb\n"},
		{args{"path": "bom", "limit": 1}, "     1\ta\n[lines 1 to 1 of 2; read on with offset 2]\n[UTF-8 with BOM, CRLF]\n"},
		{args{"path": "mixed"}, "     1\ta\n     2\tb\n     3\tc\n[mixed line ends: CRLF and LF]\n"},
		{args{"path": "some"}, "     1\t\u00e9\uFFFD\n[not UTF-8 throughout: what is not is shown as \uFFFD, and fs.edit keeps it]\n"},
		{args{"path": "late", "offset": 70_001}, " 70001\t\u00fc\n[not UTF-8: shown and written as Latin-1]\n"},
	} {
		if diff := cmp.Diff(c.want, p.good("fs.read", c.args)); diff != "" {
			t.Errorf("%v (-want +got)\n%s", c.args, diff)
		}
	}
}

func TestReadGivesNumberedLinesInPages(t *testing.T) {
	p := newPlace(t, map[string]string{
		"ten.txt": linesOf(10), "empty.txt": "", "noend.txt": "a\nb", "crlf.txt": "a\r\nb\r\n", "blank.txt": "\n\n", "latin1.txt": "gr\xfc\xdfe\n",
	})
	for _, c := range []struct {
		name string
		args args
		want string
	}{
		{"whole", args{"path": "ten.txt"}, numbered(1, 10)},
		{"a page", args{"path": "ten.txt", "offset": 3, "limit": 2}, numbered(3, 4) + "[lines 3 to 4 of 10; read on with offset 5]\n"},
		{"the last page", args{"path": "ten.txt", "offset": 9, "limit": 2}, numbered(9, 10)},
		{"an offset of nothing", args{"path": "ten.txt", "offset": 0, "limit": 1}, numbered(1, 1) + "[lines 1 to 1 of 10; read on with offset 2]\n"},
		{"empty", args{"path": "empty.txt"}, "[the file is empty]\n"},
		{"no end of line at the end", args{"path": "noend.txt"}, "     1\ta\n     2\tb\n"},
		{"line ends of Windows", args{"path": "crlf.txt"}, "     1\ta\n     2\tb\n[CRLF]\n"},
		{"blank lines", args{"path": "blank.txt"}, "     1\t\n     2\t\n"},
		{"no UTF-8", args{"path": "latin1.txt"}, "     1\tgrüße\n[not UTF-8: shown and written as Latin-1]\n"},
	} {
		if diff := cmp.Diff(c.want, p.good("fs.read", c.args)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
	p.bad("fs.read", args{"path": "ten.txt", "offset": -1}, event.ErrorInvalidArgs, "offset is -1, and lines are counted from 1")
	p.bad("fs.read", args{"path": "ten.txt", "limit": -1}, event.ErrorInvalidArgs, "limit is -1")
	p.bad("fs.read", args{"path": "ten.txt", "offset": 11}, event.ErrorInvalidArgs, "ten.txt has 10 lines; there is no line 11")
}

func TestBinaryFilesAreNotShown(t *testing.T) {
	p := newPlace(t, map[string]string{
		"early": "ELF\x00", "late": strings.Repeat("text\n", 2000) + "\x00\n",
	})
	p.bad("fs.read", args{"path": "early"}, event.ErrorInvalidArgs, "binary file of 4 bytes")
	p.bad("fs.read", args{"path": "late", "offset": 1999}, event.ErrorInvalidArgs, "binary file")
}

// rows: HAR-6
func TestAPageIsNeverCutByTheBoundOfResults(t *testing.T) {
	p := newPlace(t, map[string]string{"long.txt": strings.Repeat(strings.Repeat("x", 99)+"\n", 5000)})
	seen, offset := 0, 1
	for offset > 0 {
		r, err := p.call("fs.read", args{"path": "long.txt", "offset": offset})
		if err != nil {
			t.Fatal(err)
		}
		if n := utf8.RuneCountInString(r.Output); n > 30_000 {
			t.Fatalf("a page of %d characters", n)
		}
		seen += strings.Count(r.Output, "\tx")
		last := r.Output[strings.LastIndex(strings.TrimSpace(r.Output), "\n")+1:]
		if _, err := fmt.Sscanf(last[strings.Index(last, ";")+1:], " read on with offset %d", &offset); err != nil {
			offset = 0
		}
		if r.Truncated != (offset > 0) {
			t.Fatalf("truncated is %v at %s", r.Truncated, last)
		}
	}
	if seen != 5000 {
		t.Errorf("the pages show %d of 5000 lines", seen)
	}
}

// TestAHugeFileCostsBoundedMemory reads a sparse file of 3 GB, which is one
// line, and lines behind a line of 40 MB.
//
// rows: HAR-6
func TestAHugeFileCostsBoundedMemory(t *testing.T) {
	p := newPlace(t, map[string]string{"line.txt": "first\n"})
	f, err := os.OpenFile(p.path("line.txt"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	block := strings.Repeat("äx", 1<<18)
	for range 50 {
		if _, err := f.WriteString(block); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString("\nlast\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	p.put("sparse", "")
	if err := os.Truncate(p.path("sparse"), 3<<30); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.bad("fs.read", args{"path": "sparse"}, event.ErrorInvalidArgs, "binary")
	got := p.good("fs.read", args{"path": "line.txt"})
	page := p.good("fs.read", args{"path": "line.txt", "limit": 1})
	runtime.ReadMemStats(&after)
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 4<<20 {
		t.Errorf("reading allocated %d bytes", spent)
	}
	for _, want := range []string{"     1\tfirst\n", "xä… [2000 of the line's 39321600 bytes]\n", "     3\tlast\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %d bytes: %q", want, len(got), got[len(got)-80:])
		}
	}
	if want := "     1\tfirst\n[lines 1 to 1 of a file of 39321612 bytes; read on with offset 2]\n"; page != want {
		t.Errorf("%q", page)
	}
	p.bad("fs.edit", args{"path": "line.txt", "old_string": "last", "new_string": "least"}, event.ErrorTool, "larger than the 33554432 bytes")
}

func TestReadingEndsWithItsContext(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"fs.read", "fs.glob", "fs.grep"} {
		a := everyTool(".")[name]
		if name == "fs.read" {
			a = args{"path": "a.txt"}
		}
		if _, err := p.callWith(ctx, name, a); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
