package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

func TestAJournalThatCannotBeOpenedIsNamedWithTheNextStep(t *testing.T) {
	p := greeter(t)
	if err := os.Mkdir(filepath.Join(p.dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"agent.yaml/journal.db":    "not a directory",
		"dir":                      "not a journal",
		strings.Repeat("x", 300):   "name too long",
		"/proc/nowhere/journal.db": "no such file or directory",
	} {
		f := p.exits(exitUsage, "run", "agent.yaml", "hi", "--journal", path)
		f.clean(t, path, want, "--journal")
	}
	p.exits(0, "run", "agent.yaml", "hi", "--journal", "new/deep/journal.db")
}

func TestAJournalThatIsDeletedWhileARunGoesIsNamed(t *testing.T) {
	p := waiting(t)
	s := p.startWaiting()
	if err := os.RemoveAll(filepath.Join(p.dir, ".pawl")); err != nil {
		t.Fatal(err)
	}
	p.write("go", "")
	f := s.wait()
	f.clean(t, "the journal .pawl/journal.db was deleted or replaced while it was open")
	if f.code != exitFailed {
		t.Errorf("exit code %d", f.code)
	}
}

func TestAFullDiskIsNamedAndTheRunGoesOnWhenThereIsSpace(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  shellAgent,
		"script.yaml": shellTurn("head -c 1000000 /dev/urandom | base64") + shellTurn("echo again") + "- text: the end\n",
	})
	disk := filepath.Join(p.dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("needs the right to mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(disk, "ballast"), make([]byte, 7<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	f := p.exits(exitFailed, "run", "agent.yaml", "go", "--journal", "disk/journal.db")
	f.clean(t, "there is no space left for the journal disk/journal.db", "runs resume")
	if err := os.Remove(filepath.Join(disk, "ballast")); err != nil {
		t.Fatal(err)
	}
	list := p.exits(0, "runs", "--journal", "disk/journal.db")
	id, _, _ := strings.Cut(list.out, " ")
	if !strings.Contains(list.out, "  running, no process drives it  ") {
		t.Errorf("the list says %q of the run", list.out)
	}
	events := p.events(p.exits(0, "runs", "resume", id, "--journal", "disk/journal.db", "--json").out)
	if o := p.outcome(events); !o.OK || o.FinalOutput != "the end" {
		t.Errorf("outcome %+v", o)
	}
	if f := p.exits(0, "runs", "verify", id, "--journal", "disk/journal.db"); !strings.Contains(f.out, "journal checksum ok") {
		t.Errorf("verify says %q", f.out)
	}
}

// What is printed goes past, and its beginning and end are kept.
func TestAToolThatPrintsMoreThanThereIsMemoryForIsKeptInBounds(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": shellAgent,
		"script.yaml": shellTurn("head -c 400000000 /dev/zero | tr '\\\\0' x; echo; echo the end of it") +
			shellTurn("touch printed; while ! test -e measured; do sleep 0.1; done") + "  expect: {last: [the end of it]}\n- text: the end\n",
	})
	s := p.start("run", "agent.yaml", "go", "--json")
	p.eventually("all is printed", p.exists("printed"))
	// Not by its rusage: in that the memory of this process counts, from before the other program began.
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	p.write("measured", "")
	f := s.wait()
	events := p.events(f.out)
	if o := p.outcome(events); f.code != 0 || o.FinalOutput != "the end" {
		t.Fatalf("exit code %d, outcome %+v %+v", f.code, o, o.Error)
	}
	results := of[event.ToolResult](events)
	if len(results) != 2 || !results[0].Truncated {
		t.Errorf("the results are %+v", results)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(peak, &kib); err != nil || kib > 250<<10 {
		t.Errorf("the process held %d MiB, %v", kib>>10, err)
	}
	info, err := os.Stat(filepath.Join(p.dir, ".pawl", "journal.db"))
	if err != nil || info.Size() > 20<<20 {
		t.Errorf("the journal has %d bytes, %v", info.Size(), err)
	}
}

// A run that a full disk stopped is continued by its own server when there is space.
func TestARunWhoseJournalFilledUpGoesOnWhenThereIsSpace(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  shellAgent,
		"script.yaml": shellTurn("head -c 1000000 /dev/urandom | base64") + shellTurn("echo again") + "- text: the end\n",
	})
	disk := filepath.Join(p.dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("needs the right to mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	s := p.serveWith([]string{"--journal", "disk/journal.db"})
	if err := os.WriteFile(disk+"/ballast", make([]byte, 7<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	r := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "worker", "input": "go"}`)
	s.eventually("the run is left", func() bool { return strings.Contains(s.process.err.String(), "run left") })
	if err := os.Remove(disk + "/ballast"); err != nil {
		t.Fatal(err)
	}
	s.reaches(r.ID, journal.Ended)
	if o := s.outcome(s.journalled(r.ID)); !o.OK || o.FinalOutput != "the end" {
		t.Errorf("outcome %+v", o)
	}
	s.stop()
}
