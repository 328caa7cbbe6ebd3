package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// The statuses that gremlins gives to a mutant.
const (
	killed     = "KILLED"
	timedOut   = "TIMED OUT"
	lived      = "LIVED"
	notCovered = "NOT COVERED"
)

// mutant is a change of one operator, and what became of it.
type mutant struct {
	status, kind string
	// file is relative to the module, and text is its line without what surrounds it.
	file, text   string
	line, column int
}

// tally counts the mutants of a package by their status. Those that do not compile
// and those of lines that were not asked for are not counted.
type tally struct {
	killed, lived, notCovered int
	// harmless are those of the lived that the page lists as changing nothing.
	harmless int
}

func (t *tally) add(m mutant, harmless bool) {
	switch m.status {
	case killed, timedOut: // a test that does not end has noticed the change
		t.killed++
	case lived:
		t.lived++
		if harmless {
			t.harmless++
		}
	case notCovered:
		t.notCovered++
	}
}

func (t tally) all() int { return t.killed + t.lived + t.notCovered }

// share is the part of all mutants that is killed, in percent.
func (t tally) share() float64 {
	if t.all() == 0 {
		return 100
	}
	return 100 * float64(t.killed) / float64(t.all())
}

func (t tally) String() string {
	return fmt.Sprintf("killed %d, lived %d (%d of them change nothing), not covered %d: %.1f %%", t.killed, t.lived, t.harmless, t.notCovered, t.share())
}

// gremlins runs the tool of this name.
type gremlins struct {
	tool string
	// dir has the go command that stands in for the real one, and what the tool writes.
	dir  string
	env  []string
	page *page
	out  io.Writer
}

func newGremlins(tool string, p *page) (*gremlins, error) {
	tool, err := filepath.Abs(tool)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	real, err := exec.LookPath("go")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	g := &gremlins{tool: tool, dir: dir, page: p, out: os.Stdout}
	// Some tests start themselves as another user, who must reach their directories.
	if err := errors.Join(os.Chmod(dir, 0o755), os.Symlink(self, filepath.Join(dir, "go"))); err != nil {
		g.close()
		return nil, err
	}
	// Without its own directory in the result, what a copy of the module compiles to is
	// what the module itself does, and comes from the cache. The tests of another run
	// must not: their time bounds that of the mutants. Neither do those tests run that
	// take long to measure how time grows.
	flags := os.Getenv("GOFLAGS") + " -trimpath -buildvcs=false -vet=off -count=1 -short -ldflags=-w"
	g.env = append(os.Environ(), realGo+"="+real, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "TMPDIR="+dir, "GOFLAGS="+flags,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=diff.relative", "GIT_CONFIG_VALUE_0=true") // names as gremlins compares them
	return g, nil
}

func (g *gremlins) close() { os.RemoveAll(g.dir) }

var outcome = regexp.MustCompile(`^\s*(KILLED|TIMED OUT|LIVED|NOT COVERED) ([A-Z_]+) at (\S+):(\d+):(\d+)$`)

// try mutates a package, or only its lines that changed since a commit, and prints
// each mutant that no test notices. When its time is up it returns what is known
// with the context's error.
func (g *gremlins) try(ctx context.Context, pkg, since string) (tally, error) {
	fmt.Fprintf(g.out, "mutate ./%s\n", pkg)
	// Nothing a busy machine does may pass for a test that does not end.
	args := []string{"unleash", "--timeout-coefficient", "10", "--exclude-files", "/"}
	if since != "" {
		args = append(args, "--diff", since)
	}
	cmd := exec.CommandContext(ctx, g.tool, args...)
	cmd.Dir, cmd.Env = pkg, g.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return tally{}, err
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return tally{}, err
	}
	var t tally
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m, ok := g.read(pkg, lines.Text()); ok {
			t.add(m, g.page.harmless(m))
			g.show(m)
		} else {
			fmt.Fprintln(&said, lines.Text())
		}
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		err = ctx.Err()
	} else if err != nil {
		err = fmt.Errorf("%w\n%s", err, strings.TrimSpace(said.String()))
	}
	if err == nil || t.all() > 0 {
		fmt.Fprintf(g.out, "./%s: %v\n", pkg, t)
	}
	return t, err
}

// read reads a line of gremlins, whose files are relative to the package.
func (g *gremlins) read(pkg, line string) (mutant, bool) {
	f := outcome.FindStringSubmatch(line)
	if f == nil {
		return mutant{}, false
	}
	m := mutant{status: f[1], kind: f[2], file: path.Join(pkg, f[3])}
	m.line, _ = strconv.Atoi(f[4])
	m.column, _ = strconv.Atoi(f[5])
	if source, err := os.ReadFile(m.file); err == nil {
		if all := strings.Split(string(source), "\n"); m.line <= len(all) {
			m.text = all[m.line-1]
		}
	}
	return m, true
}

// show prints a mutant that no test notices and that changes something.
func (g *gremlins) show(m mutant) {
	if m.status == killed || m.status == timedOut || g.page.harmless(m) {
		return
	}
	fmt.Fprintf(g.out, "%s:%d:%d: %s: %s: %s\n", m.file, m.line, m.column, strings.ToLower(m.status), m.kind, strings.TrimSpace(m.text))
}
