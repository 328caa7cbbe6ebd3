package crash

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// thinDisk is a disk with less room than it reports: a file system in a sparse file, on
// another one that can be filled up. A write without room is an I/O error here, which a
// sync reports.
type thinDisk struct {
	t                  *testing.T
	dir, ballast, loop string
}

// newThinDisk mounts a thin disk on a directory.
func newThinDisk(t *testing.T, dir string) *thinDisk {
	t.Helper()
	under := t.TempDir()
	if err := syscall.Mount("none", under, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("needs the right to mount file systems: %v", err)
	}
	// The loop device gives its file up when everybody has left it.
	t.Cleanup(func() { unmount(t, under, syscall.MNT_DETACH) })
	image := filepath.Join(under, "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 16<<20)); err != nil {
		t.Fatal(err)
	}
	loop, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		t.Skipf("needs a loop device: %v", err)
	}
	d := &thinDisk{t: t, dir: dir, ballast: filepath.Join(under, "ballast"), loop: strings.TrimSpace(string(loop))}
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", d.loop).CombinedOutput(); err != nil {
			t.Errorf("detach %s: %v\n%s", d.loop, err, out)
		}
	})
	if out, err := exec.Command("mkfs.ext4", "-q", "-O", "^has_journal", d.loop).CombinedOutput(); err != nil {
		t.Skipf("needs mkfs.ext4: %v\n%s", err, out)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d.mount()
	t.Cleanup(func() { unmount(t, dir, syscall.MNT_DETACH) })
	return d
}

// mount has ext4 allocate written blocks for good. By default it marks new room as
// unwritten until the data has arrived; if that fails it keeps the mark, and a later
// successful write in the same place is lost with the system's memory, even of another
// process.
func (d *thinDisk) mount() {
	d.t.Helper()
	if err := syscall.Mount(d.loop, d.dir, "ext4", 0, "dioread_lock"); err != nil {
		d.t.Skipf("needs ext4: %v", err)
	}
}

func unmount(t *testing.T, dir string, flags int) {
	t.Helper()
	if err := syscall.Unmount(dir, flags); err != nil {
		t.Errorf("unmount %s: %v", dir, err)
	}
}

// breaks makes every write fail that needs new room.
func (d *thinDisk) breaks() {
	d.t.Helper()
	f, err := os.Create(d.ballast)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 1<<16))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatal(err)
	}
}

// mends gives the room back, and not what was lost.
func (d *thinDisk) mends() {
	d.t.Helper()
	if err := os.Remove(d.ballast); err != nil {
		d.t.Fatal(err)
	}
}

// forgets makes the system read from the disk what it remembers of it.
func (d *thinDisk) forgets() {
	d.t.Helper()
	unmount(d.t, d.dir, 0)
	d.mount()
}

// What the system remembers of a commit that its disk did not keep is read like
// any other, until it is forgotten.
func TestOnADiskThatFailsNothingThatWasPublishedIsLost(t *testing.T) {
	w := newWorld(t, `
- tool_calls:
    - {name: shell.exec, arguments: {command: "touch first; until [ -e go ]; do sleep 0.01; done; head -c 3000000 /dev/urandom | base64"}}
- tool_calls:
    - {name: shell.exec, arguments: {command: "touch second; sleep 60"}}
- text: done
`)
	disk := newThinDisk(t, w.path(".pawl"))
	var stderr bytes.Buffer
	cmd := w.command("run", "agent.yaml", "go")
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.await(t, "first")
	disk.breaks()
	w.write(t, "go", "")
	err := cmd.Wait()
	if said := stderr.String(); cmd.ProcessState.ExitCode() != 1 ||
		!strings.Contains(said, "the disk of the journal") || !strings.Contains(said, "pawl runs resume") {
		t.Fatalf("on a disk that fails: %v\n%s", err, said)
	}
	disk.mends()

	row, before, _ := w.theRun(t)
	var stdout bytes.Buffer
	cmd = w.command("runs", "resume", row.ID, "--json")
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.await(t, "second")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	disk.forgets()
	if now := keeps(t, w, before, stdout.Bytes()); len(now) == len(before) {
		t.Error("nothing was written by the process that went on")
	}
	if out, err := w.command("runs", "resume", row.ID).CombinedOutput(); err != nil || !strings.Contains(string(out), "done") {
		t.Errorf("resume: %v\n%s", err, out)
	}
	row, records, _ := w.theRun(t)
	results := 0
	for _, e := range decode(t, records) {
		if _, ok := e.Data.(event.ToolResult); ok {
			results++
		}
	}
	if row.State != journal.Ended || results != 2 {
		t.Errorf("the run is %s with %d results", row.State, results)
	}
}
