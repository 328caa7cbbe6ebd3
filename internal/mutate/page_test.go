package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const someRows = "| `a/b` | 4 | 3 | 1 | 1 | 0 | 75.0 | 2026-01-01 | 2s |\n| `c` | 1 | 1 | 0 | 0 | 0 | 100.0 | 2026-01-01 | 1s |\n"

const listed = "| `a/b.go` | `x` | not a row of this form | y |\n" +
	"| a/b.go | `len(x) > 0 \\|\\| y` | CONDITIONALS_BOUNDARY, INVERT_LOGICAL | y is true then |\n"

func testPage(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "mutation.md")
	if err := os.WriteFile(name, []byte("# Head\n\n"+figuresHead+someRows+"\nBetween.\n\n"+survivors+listed+"\nEnd.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFiguresReplaceThoseOfTheirPackageOnly(t *testing.T) {
	name := testPage(t)
	day := time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC)
	for range 2 { // the second time the page is what the first made of it
		p, err := readPage(name)
		if err != nil {
			t.Fatal(err)
		}
		p.set("a/b", tally{killed: 9, lived: 1, notCovered: 2}, day, 1500*time.Millisecond)
		p.set("b", tally{killed: 1}, day, time.Second)
		if err := p.write(name); err != nil {
			t.Fatal(err)
		}
	}
	want := "# Head\n\n" + figuresHead + "| `a/b` | 12 | 9 | 1 | 0 | 2 | 75.0 | 2026-11-28 | 2s |\n| `b` | 1 | 1 | 0 | 0 | 0 | 100.0 | 2026-11-28 | 1s |\n" +
		"| `c` | 1 | 1 | 0 | 0 | 0 | 100.0 | 2026-01-01 | 1s |\n\nBetween.\n\n" + survivors + listed + "\nEnd.\n"
	if got, _ := os.ReadFile(name); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAListedMutantIsHarmlessWhereItIsListed(t *testing.T) {
	p, err := readPage(testPage(t))
	if err != nil {
		t.Fatal(err)
	}
	const line = "\tif len(x) > 0 || y || z > 0 {"
	for name, tt := range map[string]struct {
		m    mutant
		want bool
	}{
		"at the operator":      {mutant{kind: "CONDITIONALS_BOUNDARY", file: "a/b.go", text: line, column: 12}, true},
		"of its other kind":    {mutant{kind: "INVERT_LOGICAL", file: "a/b.go", text: line, column: 16}, true},
		"of another kind":      {mutant{kind: "CONDITIONALS_NEGATION", file: "a/b.go", text: line, column: 12}, false},
		"further on":           {mutant{kind: "CONDITIONALS_BOUNDARY", file: "a/b.go", text: line, column: 26}, false},
		"in another file":      {mutant{kind: "CONDITIONALS_BOUNDARY", file: "a/c.go", text: line, column: 12}, false},
		"the code has changed": {mutant{kind: "CONDITIONALS_BOUNDARY", file: "a/b.go", text: "if len(x) > 1 || y", column: 11}, false},
	} {
		if got := p.harmless(tt.m); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A package or a file that has moved would lose its bound and its harmless mutants.
func TestThePageNamesPackagesAndCodeThatAreThere(t *testing.T) {
	const root = "../.."
	p, err := readPage(filepath.Join(root, "docs", "mutation.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.figures) == 0 || len(p.known) == 0 {
		t.Fatalf("the page has %d figures and %d mutants", len(p.figures), len(p.known))
	}
	for _, row := range p.figures {
		var cells []string
		for cell := range strings.SplitSeq(row, "|") {
			cells = append(cells, strings.Trim(cell, " `"))
		}
		if files, _ := filepath.Glob(filepath.Join(root, cells[1], "*_test.go")); len(files) == 0 {
			t.Errorf("%s has no tests", cells[1])
		}
		if share, err := strconv.ParseFloat(cells[7], 64); err != nil || share < 85 {
			t.Errorf("of the mutants of %s %s %% are killed, at least 85 are to be", cells[1], cells[7])
		}
	}
	for _, k := range p.known {
		if text, err := os.ReadFile(filepath.Join(root, k.file)); err != nil || !strings.Contains(string(text), k.code) {
			t.Errorf("%s has no %q: %v", k.file, k.code, err)
		}
	}
}
