package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	// commits is how far a change reaches back where nothing else says it.
	commits = 10
	// A change is refused when it has this many mutants in packages with figures and a
	// smaller part of them is killed. Of few mutants a percentage says nothing, and the
	// code of other packages is tested from elsewhere, too.
	enough, least = 20, 70.0
)

// changes tries the lines that changed since a commit, each package for its part of
// the time that is left. Running out of time, or a package whose tests fail, is
// reported and is no failure.
func (g *gremlins) changes(ctx context.Context, since string) error {
	if since == "" {
		since = base(ctx)
	}
	if since == "" {
		fmt.Fprintln(g.out, "no mutants are tried: git knows no commits here")
		return nil
	}
	packages, err := changed(ctx, since)
	if err != nil {
		fmt.Fprintf(g.out, "no mutants are tried: what changed since %q cannot be had: %v\n", since, err)
		return nil
	}
	fmt.Fprintf(g.out, "mutants of what changed since %s: %d packages\n", since, len(packages))
	// Packages with figures first: their tests are fast, and leave time for the others.
	slices.SortStableFunc(packages, func(a, b string) int { return cmp.Compare(g.page.row(b), g.page.row(a)) })
	var sum tally
	for i, p := range packages {
		part, cancel := ctx, context.CancelFunc(func() {})
		if end, ok := ctx.Deadline(); ok {
			part, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(len(packages)-i))
		}
		t, err := g.try(part, p, since)
		cancel()
		if g.page.row(p) >= 0 {
			sum.killed, sum.lived, sum.notCovered, sum.harmless = sum.killed+t.killed, sum.lived+t.lived, sum.notCovered+t.notCovered, sum.harmless+t.harmless
		}
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			fmt.Fprintf(g.out, "./%s: the time for it is up, the rest of its mutants is not tried\n", p)
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			fmt.Fprintf(g.out, "./%s: not measured: %v\n", p, err)
		}
	}
	fmt.Fprintf(g.out, "of all that changed in packages with figures: %v\n", sum)
	return sum.verdict()
}

// verdict refuses a change of whose mutants too many go unnoticed.
func (t tally) verdict() error {
	judged := t.all() - t.harmless
	if judged < enough || 100*float64(t.killed) >= least*float64(judged) {
		return nil
	}
	return fmt.Errorf("%d of %d mutants of the changed lines are killed by the tests of their packages, at least %v %% are to be: "+
		"add tests for the lines above, or list what changes nothing in docs/mutation.md", t.killed, judged, least)
}

// base is what a change is compared with: where its branch left origin's main, and on
// main itself the commit before its last few, as far as this clone has them.
func base(ctx context.Context) string {
	head, _ := git(ctx, "rev-parse", "HEAD")
	if left, err := git(ctx, "merge-base", "HEAD", "origin/main"); err == nil && left != head {
		return left
	}
	last, _ := git(ctx, "rev-list", "--first-parent", fmt.Sprintf("--max-count=%d", commits+1), "HEAD")
	return last[strings.LastIndex(last, "\n")+1:]
}

// changed are the directories of the module's packages of which code changed since a
// commit. Package main is left out: gremlins does not find its tests.
func changed(ctx context.Context, since string) ([]string, error) {
	names, err := git(ctx, "diff", "--name-only", "--diff-filter=d", "--merge-base", since, "--", "*.go")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for name := range strings.Lines(names) {
		if name = strings.TrimSpace(name); !strings.HasSuffix(name, "_test.go") && !slices.Contains(dirs, "./"+path.Dir(name)) {
			dirs = append(dirs, "./"+path.Dir(name))
		}
	}
	if len(dirs) == 0 {
		return nil, nil
	}
	list, err := output(ctx, "go", append([]string{"list", "-e", "-f", `{{if and .Name (ne .Name "main")}}{{.ImportPath}}{{end}}`}, dirs...)...)
	if err != nil {
		return nil, err
	}
	var packages []string
	for line := range strings.Lines(list) {
		switch line = strings.TrimSpace(line); {
		case line == module:
			packages = append(packages, ".")
		case strings.HasPrefix(line, module+"/"):
			packages = append(packages, strings.TrimPrefix(line, module+"/"))
		}
	}
	return packages, nil
}

func git(ctx context.Context, args ...string) (string, error) { return output(ctx, "git", args...) }

func output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		why, _, _ := strings.Cut(string(exit.Stderr), "\n")
		err = fmt.Errorf("%s %s: %w: %s", name, args[0], err, why)
	}
	return strings.TrimSpace(string(out)), err
}
