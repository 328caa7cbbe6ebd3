package sandbox_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// adopt is a program that adopts orphans, and says what it finds wrong.
func adopt(shim sandbox.Shim) error {
	shim = shim.Adopt()
	box := sandbox.Strongest(context.Background(), shim, sandbox.None).Bare()
	if box == nil {
		return fmt.Errorf("it cannot supervise itself")
	}
	own := exec.Command("sh", "-c", "read -r line; exit 7")
	hold, err := own.StdinPipe()
	if err != nil {
		return err
	}
	if err := own.Start(); err != nil {
		return err
	}

	// One that a killed supervisor left is killed with what it started.
	dir, err := os.MkdirTemp("", "orphans-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	p, err := box.Start(sandbox.Command{
		Args: []string{"/bin/sh", "-c", `setsid sh -c 'echo up; sleep 300; true' & until [ -e go ]; do sleep 0.01; done; kill -9 $PPID; sleep 300`},
		Dir:  dir, Env: os.Environ(), Output: w,
	})
	if err != nil {
		return err
	}
	w.Close()
	if _, err := r.Read(make([]byte, 8)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		return err
	}
	<-p.Ended()
	if _, err := p.Wait(); err == nil {
		return fmt.Errorf("the supervisor was not killed")
	}
	if err := r.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("what it left is still there: %v", err)
	}
	// An orphan that ends by itself is waited for.
	if err := exec.Command("sh", "-c", "(sleep 0.1; exit 3) >/dev/null 2>&1 &").Run(); err != nil {
		return err
	}
	// A process that this program started itself is not an orphan.
	for end := time.Now().Add(2 * time.Minute); strings.Count(children(), " ") != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("the children are %q, and should be %d alone", children(), own.Process.Pid)
		}
	}
	hold.Close()
	if err := own.Wait(); own.ProcessState.ExitCode() != 7 {
		return fmt.Errorf("a process of its own ended as %v", err)
	}
	return nil
}

// children are the processes below this one, each followed by a space.
func children() string {
	var all strings.Builder
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, name := range lists {
		b, _ := os.ReadFile(name)
		all.Write(b)
	}
	return all.String()
}

func TestOrphansFallToAProgramThatAdoptsThem(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no orphans are adopted here")
	}
	out, err := exec.Command(os.Args[0], "adopt").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
