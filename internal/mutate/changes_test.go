package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAPercentageOfFewMutantsRefusesNoChange(t *testing.T) {
	for name, tt := range map[string]struct {
		t  tally
		ok bool
	}{
		"nothing changed":                         {tally{}, true},
		"none of a few":                           {tally{lived: 10, notCovered: 9}, true},
		"none of more":                            {tally{lived: 10, notCovered: 10}, false},
		"just enough of many":                     {tally{killed: 70, lived: 15, notCovered: 15}, true},
		"too few of many":                         {tally{killed: 69, lived: 31}, false},
		"what changes nothing is not counted":     {tally{killed: 14, lived: 30, harmless: 24}, true},
		"and does not make a few into many":       {tally{lived: 30, harmless: 11}, true},
		"what no test runs counts like survivors": {tally{killed: 20, notCovered: 20}, false},
	} {
		if err := tt.t.verdict(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOutcomesAreReadAndCounted(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("p", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("p/a.go", []byte("package p\n\tx > 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	g := &gremlins{page: &page{}, out: &out}
	var sum tally
	for _, line := range []string{
		"Starting...",
		"      KILLED CONDITIONALS_NEGATION at a.go:2:4",
		"   TIMED OUT INCREMENT_DECREMENT at a.go:2:4",
		"       LIVED CONDITIONALS_BOUNDARY at a.go:2:4",
		" NOT COVERED ARITHMETIC_BASE at a.go:9:1",
		"  NOT VIABLE ARITHMETIC_BASE at a.go:2:4",
		"     SKIPPED ARITHMETIC_BASE at a.go:2:4",
		"Killed: 1, Lived: 1, Not covered: 1",
	} {
		if m, ok := g.read("p", line); ok {
			sum.add(m, false)
			g.show(m)
		}
	}
	if want := (tally{killed: 2, lived: 1, notCovered: 1}); sum != want {
		t.Errorf("counted %+v", sum)
	}
	if want := "p/a.go:2:4: lived: CONDITIONALS_BOUNDARY: x > 0\np/a.go:9:1: not covered: ARITHMETIC_BASE: \n"; out.String() != want {
		t.Errorf("printed %q", out.String())
	}
}

// repository makes a repository of the commits given, each of which is the files that
// it writes, and enters it.
func repository(t *testing.T, commits ...map[string]string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Chdir(t.TempDir())
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_SYSTEM": os.DevNull, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
		"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com", "GOFLAGS": "",
	} {
		t.Setenv(name, value)
	}
	run := func(args ...string) {
		t.Helper()
		if _, err := git(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q", "-b", "main")
	for _, files := range commits {
		for name, text := range files {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run("add", "-A")
		run("commit", "-q", "--allow-empty", "-m", "x")
	}
}

func TestAChangeIsThatOfABranchOrOfTheLastCommits(t *testing.T) {
	first := map[string]string{"go.mod": "module " + module + "\n", "a/a.go": "package a\n", "b/b.go": "package b\n"}
	second := map[string]string{
		"a/a.go": "package a\n\nvar X = 1\n", "b/b_test.go": "package b\n", "root.go": "package pawl\n",
		"cmd/main.go": "package main\n\nfunc main() {}\n", "other/go.mod": "module other\n", "other/o.go": "package other\n",
	}
	check := func(t *testing.T, want ...string) {
		t.Helper()
		got, err := changed(t.Context(), base(t.Context()))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("changed since %s: %v, %v", base(t.Context()), got, err)
		}
	}
	t.Run("a branch", func(t *testing.T) {
		repository(t, first, map[string]string{"b/b.go": "package b\n\nvar Y = 1\n"}, second)
		git(t.Context(), "update-ref", "refs/remotes/origin/main", "HEAD~1")
		check(t, "a", ".")
	})
	t.Run("main itself", func(t *testing.T) {
		repository(t, first, second)
		git(t.Context(), "update-ref", "refs/remotes/origin/main", "HEAD")
		check(t, "a", ".")
	})
	t.Run("no origin", func(t *testing.T) {
		repository(t, first, second)
		check(t, "a", ".")
	})
	t.Run("more commits than are looked at", func(t *testing.T) {
		repository(t, slices.Concat([]map[string]string{first, second}, make([]map[string]string, commits))...)
		check(t)
	})
	t.Run("one commit", func(t *testing.T) {
		repository(t, first)
		check(t)
	})
}

func TestAChangeThatCannotBeHadIsNoFailure(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(t.TempDir()))
	g := &gremlins{page: &page{}, out: io.Discard}
	for _, since := range []string{"", "no-such-commit"} {
		if err := g.changes(context.Background(), since); err != nil {
			t.Errorf("since %q: %v", since, err)
		}
	}
}
