package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const switches = `package p

const kib = 1 << 10

var limit = 4 * kib

func ran(n int) int {
	switch {
	case n > 1, n < 0:
		return 1
	default:
		return 0
	}
}

func didNot(n int) int {
	switch {
	case n > 1:
		return 1
	}
	return 0
}
`

func TestConditionsOfCasesAndPackageValuesAreCovered(t *testing.T) {
	ran := []span{{[2]int{7, 22}, [2]int{8, 9}}, {[2]int{11, 10}, [2]int{12, 11}}}
	more, err := uncounted("p.go", []byte(switches), ran)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(switches, "\n")
	for code, want := range map[string]bool{"4 * kib": true, "n > 1, n < 0": true, "n < 0": true, "case n > 1:": false, "return 0": false} {
		for i, line := range lines {
			column := strings.Index(line, code) + 1
			if column == 0 {
				continue
			}
			covered := false
			for _, s := range more {
				covered = covered || s.contains([2]int{i + 1, column})
			}
			if covered != want {
				t.Errorf("line %d, %s: covered %t", i+1, code, covered)
			}
		}
	}
}

// The profile keeps what it has, and a file none of which ran has no more covered
// than its values.
func TestAProfileGetsTheMissingPartsOfEachFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.go", "b.go"} {
		if err := os.WriteFile(name, []byte(switches), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was := "mode: set\n" + module + "/a.go:7.22,8.9 1 1\n" + module + "/a.go:9.20,10.11 1 0\n" + module + "/b.go:7.22,8.9 1 0\n"
	profile := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(profile, []byte(was), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := addUncounted(profile); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	added, kept := strings.CutPrefix(string(got), was)
	if !kept || strings.Count(added, "/a.go:") != 3 || strings.Count(added, "/b.go:") != 2 || !strings.Contains(added, "/a.go:9.7,9.19 1 1\n") {
		t.Errorf("got\n%s", got)
	}
}
