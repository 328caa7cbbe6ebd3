//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// The process that started a command may be gone before the command's start is
// reported. Processes that the command has started by then must not survive.
func TestSupervisorWithoutReaderStillEndsEverything(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	orders, control := pipe()
	heard, status := pipe()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	s := exec.Cmd{Path: "/proc/self/exe", Args: []string{"pawl", supervisorArg}, Env: []string{}, ExtraFiles: []*os.File{orders, status, null}}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{orders, status, heard} {
		f.Close()
	}
	script := `exec 3>fifo; (trap '' TERM HUP INT; echo up >&3; sleep 300; true) & wait`
	if err := json.NewEncoder(control).Encode(barePlan(Command{Args: []string{"/bin/sh", "-c", script}, Dir: dir})); err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	// Held open until the command has the other end.
	end, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	if err := in.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(in)
	if line, err := lines.ReadString('\n'); line != "up\n" {
		t.Fatalf("the command did not start: %q, %v", line, err)
	}
	end.Close()
	control.Close()
	if err := s.Wait(); err != nil {
		t.Errorf("the supervisor: %v", err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Errorf("something of the command is still there: %v", err)
	}
}

// In a namespace the process that finds the command reaped exits.
func TestCommandIsReapedAfterItsEndIsReported(t *testing.T) {
	for range 5000 {
		var said bytes.Buffer
		s := &supervisor{status: json.NewEncoder(&said)}
		looking, found := make(chan struct{}), make(chan bool)
		go func() {
			close(looking)
			for {
				s.mu.Lock()
				reaped, ended := s.reaped, said.Len() > 0
				s.mu.Unlock()
				if reaped {
					found <- ended
					return
				}
			}
		}()
		<-looking
		s.commandEnded(0)
		if !<-found {
			t.Fatal("nobody would say how the command ended")
		}
	}
}
