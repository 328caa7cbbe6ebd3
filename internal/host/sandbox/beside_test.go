//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// paused is a command that prints a line before each of its reads, and goes on when it
// gets one.
type paused struct {
	t       *testing.T
	process *sandbox.Process
	input   *os.File
	lines   *bufio.Scanner
}

func pause(t *testing.T, b *sandbox.Box, c sandbox.Command) *paused {
	t.Helper()
	in, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	output, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); output.Close() })
	c.Input, c.Output = in, out
	process, err := b.Start(c)
	in.Close()
	out.Close()
	if err != nil {
		t.Fatal(err)
	}
	p := &paused{t, process, input, bufio.NewScanner(output)}
	p.await()
	return p
}

func (p *paused) await() {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatal("the command has ended early")
	}
}

func (p *paused) goOn() {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.input); err != nil {
		p.t.Fatal(err)
	}
}

// end lets the command run to its end, and returns the paths that it changed.
func (p *paused) end() string {
	p.t.Helper()
	p.goOn()
	<-p.process.Ended()
	end, err := p.process.Wait()
	if err != nil || end.Code != 0 {
		p.t.Errorf("%+v, %v", end, err)
	}
	var changed []string
	for _, c := range end.Changed {
		if !c.Undone {
			p.t.Errorf("%s is not undone", c.Path)
		}
		changed = append(changed, c.Path)
	}
	return strings.Join(changed, " ")
}

func TestACommandLeavesWhatWasApprovedForAnotherOne(t *testing.T) {
	const commit = `echo new > .git/index.lock && mv .git/index.lock .git/index && mkdir -p .git/objects/aa .git/worktrees/w && echo x > .git/objects/aa/b && echo x > .git/worktrees/w/commondir`
	f := project(t)
	f.withFiles(t, ".git/HEAD", ".git/objects/x", ".git/index", ".git/hooks/pre-commit")
	git := filepath.Join(f.workspace, ".git")
	// The boxes of a run's tools and those of its children are apart.
	beside, approved := open(t, sandbox.Landlock, f.policy), open(t, sandbox.Landlock, f.policy)
	expect := func(when string, names map[string]string) {
		t.Helper()
		got := map[string]string{}
		for name := range names {
			text, _ := os.ReadFile(filepath.Join(git, name))
			got[name] = strings.TrimSpace(string(text))
		}
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", when, diff)
		}
	}
	granted := func(line string) sandbox.Command {
		c := f.command(line)
		c.Grants = []sandbox.Grant{repository(git)}
		return c
	}
	whole := map[string]string{"index": "new", "objects/aa/b": "x", "worktrees/w/commondir": "x", "config": "here"}

	// The commit begins and ends while the other command runs.
	other := pause(t, beside, f.command(`echo at; read x`))
	if got := run(t, approved, granted(commit)); got.Code != 0 || len(got.Changed) > 0 {
		t.Errorf("%+v", got)
	}
	if changed := other.end(); changed != "" {
		t.Errorf("changed is %q", changed)
	}
	expect("behind a commit", whole)

	// The other command begins and ends while a commit runs, and changes what is not approved.
	over := pause(t, approved, granted(`echo at; read x; echo newer > .git/index; echo at; read x`))
	other = pause(t, beside, f.command(`echo at; read x; echo evil > .git/config; echo evil > .git/hooks/post-commit; echo evil > .git/worktrees/w/commondir; rm .git/hooks/pre-commit`))
	over.goOn()
	over.await()
	if changed := other.end(); changed != ".git/config .git/hooks/post-commit .git/hooks/pre-commit .git/worktrees/w/commondir" {
		t.Errorf("changed is %q", changed)
	}
	if changed := over.end(); changed != "" {
		t.Errorf("the approved command changed %q", changed)
	}
	expect("with another command", map[string]string{"index": "newer", "config": "here", "hooks/post-commit": "", "hooks/pre-commit": "here", "worktrees/w/commondir": "x"})

	// Nothing that is approved runs any more.
	other = pause(t, beside, f.command(`echo at; read x; echo evil > .git/index`))
	if changed := other.end(); changed != ".git/index" {
		t.Errorf("changed is %q", changed)
	}
	other = pause(t, beside, f.command(`echo at; read x`))
	if got := run(t, approved, f.command(commit)); len(got.Changed) == 0 {
		t.Errorf("%+v", got)
	}
	other.end()
	expect("without an approval", map[string]string{"index": "newer", "config": "here"})
}

// The other tiers also remove what a command creates at a path that was empty.
func TestACommandLeavesTheRepositoryThatAnotherOneMakes(t *testing.T) {
	inEach(t, func(t *testing.T, tier sandbox.Tier, f field) {
		f = project(t)
		git := filepath.Join(f.workspace, ".git")
		if err := os.RemoveAll(git); err != nil {
			t.Fatal(err)
		}
		b := open(t, tier, f.policy)
		other := pause(t, b, f.command(`echo at; read x`))
		initialize := f.command(`mkdir -p .git/hooks && echo x > .git/config && echo x > .git/hooks/sample`)
		initialize.Grants = []sandbox.Grant{repository(git)}
		if got := run(t, b, initialize); got.Code != 0 || len(got.Changed) > 0 {
			t.Errorf("%+v", got)
		}
		if changed := other.end(); changed != "" {
			t.Errorf("changed is %q", changed)
		}
		for _, name := range []string{"config", "hooks/sample"} {
			if text, err := os.ReadFile(filepath.Join(git, name)); string(text) != "x\n" {
				t.Errorf("%s holds %q, %v", name, text, err)
			}
		}
	})
}
