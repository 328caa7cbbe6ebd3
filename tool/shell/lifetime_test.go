package shell_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/tool/shell"
)

// fifo is a pipe that processes hold open, and how to wait until they are gone.
func fifo(t *testing.T, dir string) (name string, gone func()) {
	t.Helper()
	name = filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	// Opened for both, so that opening it does not block; the second end is closed once
	// a command has reported that it has the pipe too.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return name, func() {
		t.Helper()
		if err := f.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, f); err != nil {
			t.Errorf("a process of the command is still there: %v", err)
		}
	}
}

func TestNothingInTheBackgroundOutlivesTheCall(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		for name, command := range map[string]string{
			"holding the output":    "(trap '' TERM; exec sleep 300) 3>fifo & echo $!",
			"holding nothing":       "sleep 300 3>fifo >/dev/null 2>&1 & echo started",
			"deaf to signals":       "(trap '' TERM HUP INT; while :; do sleep 1; done) 3>fifo & echo started",
			"a whole chain":         "sh -c 'sh -c \"sleep 300; true\"; true' 3>fifo & echo started",
			"left by a killed boss": "sleep 300 3>fifo & kill -9 $$",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				_, gone := fifo(t, dir)
				start := time.Now()
				good(t, newShell(shell.Options{Dir: dir}), command)
				if d := time.Since(start); d > 2*time.Minute {
					t.Errorf("the call hung for %s", d)
				}
				gone()
			})
		}
	})
}

func TestAProcessThatLeavesTheGroupDoesNotHangTheCall(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	dir := t.TempDir()
	r := good(t, shell.New(shell.Options{Dir: dir}), `setsid sleep 20 & echo $! > pid; echo done`)
	if !strings.HasSuffix(r.Output, "done\n") {
		t.Errorf("%q", r.Output)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil {
		var pid int
		if _, err := fmt.Sscan(string(b), &pid); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestTimeoutAndCancelKillTheGroupAndKeepWhatWasPrinted(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		for name, c := range map[string]struct{ command, output string }{
			"at once":            {"echo partial; echo up >fifo; sleep 300 3>fifo", "partial\n"},
			"may clean up":       {"trap 'echo bye; exit 1' TERM; echo up >fifo; sleep 300 3>fifo & wait", "bye\n"},
			"deaf to signals":    {"trap '' TERM; echo partial; echo up >fifo; sleep 300 3>fifo", "partial\n"},
			"children are gone":  {"(trap '' TERM; sleep 300) 3>fifo & echo partial; echo up >fifo; wait", "partial\n"},
			"a flood of output":  {"echo up >fifo; yes 3>fifo", ""},
			"more than one pipe": {"echo up >fifo; (sleep 300 3>fifo | cat | cat); true", ""},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				fifoName, gone := fifo(t, dir)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				// The command says "up" into the pipe once it runs; then it is
				// cancelled.
				up := make(chan struct{})
				go func() {
					defer close(up)
					f, err := os.OpenFile(fifoName, os.O_RDONLY, 0)
					if err != nil {
						return
					}
					defer f.Close()
					_, _ = bufio.NewReader(f).ReadString('\n')
					cancel()
				}()
				r, err := run(ctx, newShell(shell.Options{Dir: dir}), c.command)
				<-up
				if !errors.Is(err, context.Canceled) || r.ExitCode != nil {
					t.Errorf("%+v, %v", r, err)
				}
				if c.output != "" && r.Output != c.output {
					t.Errorf("the output is %.100q, want %q", r.Output, c.output)
				}
				gone()
			})
		}
	})
}

// TestHelperProcess is not a test: it is the process that
// TestWhatACommandStartedDiesWithThisProcess kills.
func TestHelperProcess(t *testing.T) {
	command := os.Getenv("PAWL_TEST_COMMAND")
	if command == "" {
		t.Skip("only run as a helper")
	}
	o := shell.Options{Dir: cmp.Or(os.Getenv("PAWL_TEST_DIR"), os.TempDir())}
	o.Sandbox = box(t, sandbox.Tier(cmp.Or(os.Getenv("PAWL_TEST_TIER"), "none")), o.Dir)
	if os.Getenv("PAWL_TEST_BARE") != "" {
		o.Bare = bare(t)
	}
	_, _ = run(context.Background(), shell.New(o), command)
}

func TestWhatACommandStartedDiesWithThisProcess(t *testing.T) {
	for name, command := range map[string]string{
		"the command itself": "echo up >&3; exec sleep 300",
		"its children":       "echo up >&3; sleep 300; true",
		"without its guard":  "for p in $(cat /proc/$PPID/task/*/children); do [ $p = $$ ] || kill -9 $p; done; echo up >&3; exec sleep 300",
		"in the background":  "(trap '' TERM HUP INT; sleep 300; true) & echo up >&3; wait",
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			helper := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
			helper.Env = append(os.Environ(), "PAWL_TEST_COMMAND="+command)
			// Every process that the helper starts inherits this end of the
			// pipe, so its other end ends when the last of them is gone.
			helper.ExtraFiles = []*os.File{w}
			if err := helper.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if err := r.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(r)
			if line, err := in.ReadString('\n'); line != "up\n" {
				t.Fatalf("the command did not start: %q, %v", line, err)
			}
			if err := helper.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = helper.Wait()
			if _, err := io.Copy(io.Discard, in); err != nil {
				t.Errorf("a process outlived the killed one: %v", err)
			}
		})
	}
}

// TestACommandOutlivesTheThreadsOfThisProcess ends threads all the time while
// commands run: the kernel sends Pdeathsig when the starting thread ends.
func TestACommandOutlivesTheThreadsOfThisProcess(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		sh := newShell(shell.Options{Dir: t.TempDir()})
		stop := make(chan struct{})
		var churn, commands sync.WaitGroup
		churn.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var ends sync.WaitGroup
				ends.Go(runtime.LockOSThread) // never unlocked, so its thread ends with it
				ends.Wait()
			}
		})
		for range 4 {
			commands.Go(func() {
				for range 10 {
					if r, err := run(t.Context(), sh, "sleep 0.02; echo alive"); err != nil || *r.ExitCode != 0 {
						t.Errorf("%+v, %v", r, err)
					}
				}
			})
		}
		commands.Wait()
		close(stop)
		churn.Wait()
	})
}

func TestCallsLeaveNoOpenFilesAndNoZombies(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		sh := newShell(shell.Options{Dir: t.TempDir()})
		good(t, sh, "true")
		files, children := openFiles(t), childrenOf(t)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 5 {
					if r, err := run(t.Context(), sh, "echo x; sleep 300 & true"); err != nil || r.Output != "exit code: 0\nx\n" {
						t.Errorf("%+v, %v", r, err)
					}
				}
			})
		}
		all.Wait()
		if n := openFiles(t); n > files {
			t.Errorf("%d files are open, before it were %d", n, files)
		}
		if n := childrenOf(t); n > children {
			t.Errorf("%d children are left, before it were %d", n, children)
		}
	})
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	return len(entries)
}

func childrenOf(t *testing.T) int {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		t.Skip("no lists of children here")
	}
	n := 0
	for _, name := range lists {
		b, _ := os.ReadFile(name)
		n += len(strings.Fields(string(b)))
	}
	return n
}
