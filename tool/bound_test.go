package tool_test

import (
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlrun/pawl/tool"
)

// rows: HAR-6
func TestBoundKeepsHeadAndTailAndSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name, in string
		limit    int
		want     string
		cut      bool
	}{
		{"short", "abc", 3, "abc", false},
		{"no limit", strings.Repeat("a", 99), 0, strings.Repeat("a", 99), false},
		{"cut", "abcdefghij", 6, "abcd\n[… 4 characters left out …]\nij", true},
		{"one character", "abc", 1, "\n[… 2 characters left out …]\nc", true},
		{"counts characters, not bytes", "ääääää", 6, "ääääää", false},
		{"never cuts a character", "äöüßéèêë", 3, "äö\n[… 5 characters left out …]\në", true},
		{"not valid UTF-8", "\xff\xfe\xfd\xfc", 3, "\xff\xfe\n[… 1 characters left out …]\n\xfc", true},
	} {
		got, cut := tool.Bound(c.in, c.limit)
		if got != c.want || cut != c.cut {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, got, cut, c.want, c.cut)
		}
	}
}

func TestBase64IsLeftOutWholeRatherThanCut(t *testing.T) {
	data := make([]byte, 3_000)
	for i := range data {
		data[i] = byte(i * i)
	}
	text := base64.StdEncoding.EncodeToString(data) // 4,000 characters
	lines := strings.ReplaceAll(text, "/", `\/`) + `\r\n` + text
	for name, c := range map[string]struct {
		in, want string
		limit    int
	}{
		"in the middle":      {`{"name":"é","data":"` + text + `","size":3000}`, `{"name":"é","data":"` + "\n[… 4000 characters left out …]\n" + `","size":3000}`, 3_000},
		"two of them":        {`["` + text + `","` + text + `"]`, `["` + "\n[… 8003 characters left out …]\n" + `"]`, 6_000},
		"with escapes":       {`["` + lines + `"]`, `["` + "\n[… " + strconv.Itoa(len(lines)) + " characters left out …]\n" + `"]`, 6_000},
		"it fits":            {`["` + text + `"]`, `["` + text + `"]`, 4_004},
		"other words are":    {strings.Repeat("words ", 100), strings.Repeat("words ", 20) + "\n[… 420 characters left out …]\n" + strings.Repeat("words ", 10), 180},
		"one letter and on":  {strings.Repeat("x", 1_000), strings.Repeat("x", 20) + "\n[… 970 characters left out …]\n" + strings.Repeat("x", 10), 30},
		"it begins the text": {text + strings.Repeat(" word", 900), "\n[… " + strconv.Itoa(4_000+4_500-1_000) + " characters left out …]\n" + strings.Repeat(" word", 200), 3_000},
	} {
		if got, _ := tool.Bound(c.in, c.limit); got != c.want {
			t.Errorf("%s: %.300q, want %.300q", name, got, c.want)
		}
		// What was left out can be read from there on.
		if e, cut := tool.Cut(c.in, c.limit); cut && string([]rune(c.in)[:e.From]) != e.Head {
			t.Errorf("%s: reading goes on at %d behind %d characters", name, e.From, utf8.RuneCountInString(e.Head))
		}
	}
}

var note = regexp.MustCompile(`^\n\[… (\d+) characters left out …\]\n`)

func FuzzBound(f *testing.F) {
	f.Add("one two"+strings.Repeat("aB3", 100), 20)
	f.Add("hello world", 5)
	f.Add("äöü€😀", 2)
	f.Add("\xe2\xe2\x82\xac\xf0\x90\x80", 3)
	f.Add("", 1)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		out, cut := tool.Bound(s, limit)
		total := utf8.RuneCountInString(s)
		if !cut {
			if out != s || limit > 0 && total > limit {
				t.Fatalf("%q (limit %d) gave %q uncut", s, limit, out)
			}
			return
		}
		// A text may contain a note itself, so each of them may be the one.
		noted := false
		for i := range out {
			at := note.FindStringSubmatchIndex(out[i:])
			if at == nil || at[0] != 0 {
				continue
			}
			head, tail := out[:i], out[i+at[1]:]
			left, err := strconv.Atoi(out[i+at[2] : i+at[3]])
			shown := utf8.RuneCountInString(head) + utf8.RuneCountInString(tail)
			// More than necessary is left out where base64 is not cut.
			noted = noted || err == nil && strings.HasPrefix(s, head) && strings.HasSuffix(s, tail) && shown+left == total && shown <= limit
		}
		if !noted {
			t.Errorf("%q (limit %d) is not head and tail of %q with what is left out", out, limit, s)
		}
		if utf8.ValidString(s) && !utf8.ValidString(out) {
			t.Errorf("%q was cut within a character", s)
		}
	})
}
