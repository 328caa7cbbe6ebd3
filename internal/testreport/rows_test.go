package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestARowCountsWhenATestOfItsRanAndWasNotSkipped(t *testing.T) {
	page := filepath.Join(t.TempDir(), "requirements.md")
	if err := os.WriteFile(page, []byte(`## Loops

| row | what must hold | tests |
| --- | --- | --- |
| A-1 | passes | `+"`..TestRoot`"+` |
| A-2 | is skipped | `+"`a/b.TestSkipped`"+` |
| A-3 | one of two passes | `+"`a/b.TestSkipped`, `a/b.TestSome`"+` |
| A-4 | all that it has is skipped | `+"`a/b.TestNothing`"+` |
| A-5 | fails | `+"`a/b.TestFails`"+` |
| A-6 | was not run | `+"`a/b.TestElsewhere`"+` |
| A-7 | has none | not yet |
`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r := newReport(&out, &out)
	for _, rec := range []record{
		{Action: "pass", Package: module, Test: "TestRoot"},
		{Action: "skip", Package: module + "/a/b", Test: "TestSkipped"},
		{Action: "skip", Package: module + "/a/b", Test: "TestSome/one"},
		{Action: "pass", Package: module + "/a/b", Test: "TestSome/other"},
		{Action: "pass", Package: module + "/a/b", Test: "TestSome"},
		{Action: "skip", Package: module + "/a/b", Test: "TestNothing/one"},
		{Action: "pass", Package: module + "/a/b", Test: "TestNothing"},
		{Action: "fail", Package: module + "/a/b", Test: "TestFails"},
	} {
		r.result(rec, nil)
	}
	out.Reset()
	if err := r.uncounted(&out, page); err != nil {
		t.Fatal(err)
	}
	want := "2 of 7 rows of " + page + " count: a test of theirs ran and was not skipped\n5 rows do not count: A-2 A-4 A-5 A-6 A-7\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
