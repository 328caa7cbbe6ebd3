package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

// clean says that an error is for a person: one thing, no stack.
func (f finished) clean(t *testing.T, words ...string) {
	t.Helper()
	if strings.Contains(f.err, "goroutine ") || strings.Contains(f.err, "panic:") {
		t.Errorf("a stack trace: %s", f.err)
	}
	for _, w := range words {
		if !strings.Contains(f.err, w) {
			t.Errorf("stderr does not say %q: %s", w, f.err)
		}
	}
}

func TestARunWhoseOutputCannotBeWrittenParksAndSaysSo(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	p := waiting(t)
	cmd := p.command("run", "agent.yaml", "work", "--json")
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = full, &stderr
	_ = cmd.Run()
	f := finished{code: cmd.ProcessState.ExitCode(), err: stderr.String()}
	f.clean(t, "write the output", "no space left", "pawl runs show")
	if f.code != exitFailed {
		t.Errorf("exit code %d", f.code)
	}
	id := p.newest()
	if r := p.row(id); r.State != journal.Parked {
		t.Errorf("the run is %s", r.State)
	}
	p.write("go", "")
	if f := p.exits(0, "runs", "resume", id); f.out != "the end\n" {
		t.Errorf("resume prints %q", f.out)
	}
}

// A script that reads what is right from stdout must not take silence for it.
func TestAFindingThatCannotBeWrittenIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	p := waiting(t)
	for _, args := range [][]string{{"check", "agent.yaml"}, {"check", "agent.yaml", "--json"}, {"check", "agent.yaml", "--explain", "shell.exec ls"}} {
		cmd := p.command(args...)
		var stderr strings.Builder
		cmd.Stdout, cmd.Stderr = full, &stderr
		_ = cmd.Run()
		f := finished{code: cmd.ProcessState.ExitCode(), err: stderr.String()}
		f.clean(t, "no space left")
		if f.code == 0 {
			t.Errorf("%v: exit code 0", args)
		}
	}
}

func TestAWorkspaceThatVanishedIsNamedOnResume(t *testing.T) {
	p := waiting(t)
	work := filepath.Join(p.dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	s := p.start("run", "agent.yaml", "work", "--workspace", "work")
	p.eventually("the call started", p.exists("work/started"))
	if err := s.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	s.wait()
	if err := os.RemoveAll(work); err != nil {
		t.Fatal(err)
	}
	id := p.newest()
	f := p.exits(exitUsage, "runs", "resume", id) // as when no run begins
	f.clean(t, work)
	// Nothing is lost: the run is as it was.
	if r := p.row(id); r.State != journal.Parked || r.Owner != "" {
		t.Errorf("the run is %s, driven by %q", r.State, r.Owner)
	}
}

func TestADamagedEventIsNamedByWhateverReadsIt(t *testing.T) {
	p := greeter(t)
	p.exits(0, "run", "agent.yaml", "hi")
	id := p.newest()
	p.sql("UPDATE commits SET body = substr(body, 1, 40) WHERE 3 BETWEEN seq - events + 1 AND seq")
	for _, args := range [][]string{{"runs", "show", id}, {"runs", "events", id}, {"run", "--continue", id, "more"}} {
		f := p.pawl(args...)
		if f.code != exitFailed && f.code != exitUsage {
			t.Errorf("%v: exit code %d", args, f.code)
		}
		f.clean(t, "event")
	}
}

// Its run could not be resumed, and the sandbox could not find it.
func TestADirectoryThatNoJournalCanNameIsNoWorkspace(t *testing.T) {
	p := greeter(t)
	if err := os.Mkdir(filepath.Join(p.dir, "w\xff"), 0o755); err != nil {
		t.Skipf("there is no such name here: %v", err)
	}
	if err := os.Symlink("w\xff", filepath.Join(p.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"w\xff", "link"} {
		p.exits(exitUsage, "run", "agent.yaml", "hi", "--workspace", dir).clean(t, "--workspace", "not valid UTF-8", "rename it")
	}
}
