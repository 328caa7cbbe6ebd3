package fs_test

import (
	"strings"
	"testing"
)

// A name with a line break would let a file say a line of the tool's own, such
// as where to read on.
func TestANameWithALineBreakIsQuotedWhereverItIsShown(t *testing.T) {
	const name = "a\n[the file is empty]"
	p := newPlace(t, map[string]string{name: "one\ntwo two\n", "bin\nary": "\x00"})
	var said []string
	hear := func(tool string, a args) {
		t.Helper()
		r, err := p.call(tool, a)
		if err != nil {
			r.Output = err.Error()
		}
		said = append(said, tool+": "+strings.TrimSuffix(r.Output, "\n"))
	}
	hear("fs.edit", args{"path": name, "old_string": "one", "new_string": "two"})
	hear("fs.write", args{"path": name, "content": "x"})
	hear("fs.read", args{"path": name, "offset": 9})
	hear("fs.read", args{"path": "bin\nary"})
	p.good("fs.read", args{"path": name})
	hear("fs.edit", args{"path": name, "old_string": "three", "new_string": "four"})
	hear("fs.edit", args{"path": name, "old_string": "two", "new_string": "four"})
	hear("fs.edit", args{"path": name, "old_string": "one", "new_string": "two"})
	hear("fs.write", args{"path": name, "content": "one"})
	hear("fs.write", args{"path": "new\nname", "content": "one"})
	for _, s := range said {
		if strings.Contains(s, "\n") || !strings.Contains(s, `\n`) {
			t.Errorf("%s", s)
		}
	}
}
