package shell_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/sandbox"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

func run(ctx context.Context, t tool.Tool, command string) (tool.Result, error) {
	raw, err := json.Marshal(map[string]any{"command": command})
	if err != nil {
		return tool.Result{}, err
	}
	return t.Run(ctx, tool.Call{ID: "c", Args: raw})
}

func good(t *testing.T, sh tool.Tool, command string) tool.Result {
	t.Helper()
	r, err := run(t.Context(), sh, command)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return r
}

func TestTheExitCodeAndTheOutputOfACommand(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		sh := newShell(shell.Options{Dir: t.TempDir()})
		for _, c := range []struct {
			command string
			code    int
			output  string
		}{
			{"echo out; echo err >&2", 0, "exit code: 0\nout\nerr\n"},
			{"true", 0, "exit code: 0\n"},
			{"echo no >&2; exit 3", 3, "exit code: 3\nno\n"},
			{"exit 255", 255, "exit code: 255\n"},
			{"kill -9 $$", 137, "exit code: 137 (signal: killed)\n"},
			{"kill -TERM $$", 143, "exit code: 143 (signal: terminated)\n"},
			{`sh -c 'kill -9 $$' 2>/dev/null; exit $?`, 137, "exit code: 137\n"},
			{`printf 'a\377b\342\202'`, 0, "exit code: 0\na\uFFFDb\uFFFD"},
			{"cat", 0, "exit code: 0\n"}, // input is empty, not missing
			{"read line || echo none", 0, "exit code: 0\nnone\n"},
			{`test "$PWD" = "$(pwd -P)" && echo same`, 0, "exit code: 0\nsame\n"},
			{"(: < /dev/tty) 2>/dev/null || echo no terminal", 0, "exit code: 0\nno terminal\n"},
		} {
			r := good(t, sh, c.command)
			if r.ExitCode == nil || *r.ExitCode != c.code || r.IsError != (c.code != 0) || r.Truncated {
				t.Errorf("%s: %+v", c.command, r)
			}
			if diff := gocmp.Diff(c.output, r.Output); diff != "" {
				t.Errorf("%s (-want +got)\n%s", c.command, diff)
			}
		}
		if r := good(t, sh, "/no/such/program"); *r.ExitCode != 127 || !r.IsError || r.ErrorType != event.ErrorTool {
			t.Errorf("%+v", r)
		}
	})
}

func TestCommandsThatCannotBeStarted(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		dir := filepath.Join(t.TempDir(), "work")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		sh := newShell(shell.Options{Dir: dir})
		bad := func(command string, kind event.ErrorType) {
			t.Helper()
			_, err := run(t.Context(), sh, command)
			if typed, ok := errors.AsType[*tool.Error](err); !ok || typed.Type != kind {
				t.Errorf("%.20q: %v", command, err)
			}
		}
		bad(" \n", event.ErrorInvalidArgs)
		bad("echo a\x00b", event.ErrorInvalidArgs)
		bad("echo "+strings.Repeat("x", 1<<20), event.ErrorInvalidArgs)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		bad("true", event.ErrorWorkspace)
	})
}

// rows: HAR-6
func TestACommandThatPrintsGigabytesCostsBoundedMemory(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		sh := newShell(shell.Options{Dir: t.TempDir()})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := good(t, sh, "echo first; yes | head -c 200000000; echo last")
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 6*shell.MaxOutput {
			t.Errorf("200 MB of output allocated %d bytes", spent)
		}
		if !r.Truncated || len(r.Output) > shell.MaxOutput+200 {
			t.Errorf("%d bytes, truncated %v", len(r.Output), r.Truncated)
		}
		dropped := 200000011 - shell.MaxOutput
		head := fmt.Sprintf("exit code: 0\n[200000011 bytes of output, of which %d in the middle are left out]\nfirst\ny\n", dropped)
		if !strings.HasPrefix(r.Output, head) || !strings.HasSuffix(r.Output, "\ny\nlast\n") ||
			strings.Count(r.Output, fmt.Sprintf("\n[… %d bytes left out …]\n", dropped)) != 1 {
			t.Errorf("%.200q", r.Output)
		}
	})
}

// rows: HAR-6
func TestAnOutputOfManyMegabytesIsKeptWhole(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		r := good(t, newShell(shell.Options{Dir: t.TempDir()}), fmt.Sprintf("yes | head -c %d", shell.MaxOutput))
		if want := "exit code: 0\n" + strings.Repeat("y\n", shell.MaxOutput/2); r.Truncated || r.Output != want {
			t.Errorf("%d of %d bytes, truncated %t", len(r.Output), len(want), r.Truncated)
		}
	})
}

// Where output is dropped, the cut goes through no secret: half of one would be
// found by nobody who looks for the whole.
func TestWhatIsDroppedLeavesNoHalfOfASecret(t *testing.T) {
	const secret = "correct-horse-battery-staple-0123456789"
	redact := func(s string) string { return strings.ReplaceAll(s, secret, "(a secret)") }
	sh := shell.New(shell.Options{Dir: t.TempDir()})
	args, err := json.Marshal(map[string]string{"command": "yes " + secret + " | head -c 40000000"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := sh.Run(t.Context(), tool.Call{ID: "c", Args: args, Redact: redact})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Truncated || len(r.Output) < shell.MaxOutput-1<<20 {
		t.Fatalf("%d bytes, truncated %t", len(r.Output), r.Truncated)
	}
	_, body, _ := strings.Cut(redact(r.Output), "left out]\n")
	head, tail, _ := strings.Cut(body, "\n[… ")
	number, tail, _ := strings.Cut(tail, " bytes left out …]\n")
	for _, kept := range []string{head, tail} {
		if rest := strings.Trim(strings.ReplaceAll(kept, "(a secret)", ""), "\n"); len(rest) > 8 {
			t.Errorf("%q is left of secrets", rest)
		}
	}
	if dropped, err := strconv.Atoi(number); err != nil || dropped+strings.Count(head+tail, "(a secret)")*len(secret)+
		strings.Count(head+tail, "\n") != 40000000 {
		t.Errorf("%q bytes are said to be left out", number)
	}
}

// fifo is a pipe that processes hold open, and how to wait until they are gone.
func fifo(t *testing.T, dir string) (name string, gone func()) {
	t.Helper()
	name = filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	// Opened for both, so that opening it waits for nobody; the second end is
	// given up once a command has said that it has the pipe too.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return name, func() {
		t.Helper()
		if err := f.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
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
				if d := time.Since(start); d > 5*time.Second {
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

func TestACallThatIsCancelledBeforeItStartsDoesNotRun(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		dir := t.TempDir()
		if r, err := run(ctx, newShell(shell.Options{Dir: dir}), "touch ran"); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
			t.Error("the command ran")
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
			if err := r.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
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
		for range 2 {
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
		}
		for range 4 {
			commands.Go(func() {
				for range 4 {
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

func TestCallsLeaveNothingOpenAndNobodyUnreaped(t *testing.T) {
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

// rows: HAR-64
func TestWhatTheToolDeclares(t *testing.T) {
	sh := shell.New(shell.Options{Dir: t.TempDir(), Timeout: time.Minute, MaxTimeout: 5 * time.Minute})
	set, err := tool.NewSet(sh)
	if err != nil {
		t.Fatal(err)
	}
	got := set.Resolve("c", llm.ToolCall{Name: "shell.exec", Args: json.RawMessage(`{"command":"go test\n./..."}`)})
	if got.Problem != nil || got.ReadOnly || got.Concurrent || got.Effect != event.EffectAtMostOnce || got.Describe != "run go test ./..." {
		t.Errorf("%+v", got)
	}
	if diff := gocmp.Diff([]event.Access{{Key: "*", Write: true}}, got.Access); diff != "" {
		t.Error(diff)
	}
	for args, want := range map[string]time.Duration{
		`{"command":"x"}`:                            time.Minute,
		`{"command":"x","timeout_seconds":2.5}`:      2500 * time.Millisecond,
		`{"command":"x","timeout_seconds":300}`:      5 * time.Minute,
		`{"command":"x","timeout_seconds":1e300}`:    5 * time.Minute,
		`{"command":"x","timeout_seconds":0}`:        time.Minute,
		`{"command":"x","timeout_seconds":-7}`:       time.Minute,
		`{"command":"x","timeout_seconds":1e-300}`:   1,
		fmt.Sprintf(`{"x":%d}`, math.MaxInt64):       time.Minute,
		`{"command":"x","timeout_seconds":"broken"}`: time.Minute,
	} {
		if d := sh.AttemptTimeout(json.RawMessage(args)); d != want {
			t.Errorf("%s: %s, want %s", args, d, want)
		}
	}
	if !strings.Contains(sh.Description, "after 60 seconds") || !strings.Contains(sh.Description, "at most 300") {
		t.Error(sh.Description)
	}
}

func TestCommandsSeeNoSecrets(t *testing.T) {
	env := []string{
		"PATH=/bin", "HOME=/home/u", "LC_ALL=C", "LANG=de_DE.UTF-8", "GOFLAGS=-mod=mod", "https_proxy=http://proxy:3128",
		"GOPROXY=https://user:pass@proxy.example.com,direct", "HTTPS_PROXY=http://u:p@proxy:1", "HTTP_PROXY=http://token@proxy:1",
		"OPENAI_API_KEY=sk-x", "GITHUB_TOKEN=x", "AWS_SECRET_ACCESS_KEY=x", "DB_PASSWORD=x", "SSH_AUTH_SOCK=/x", "MY_VARIABLE=x",
		"LC_SECRET=x", "CI=ghp_0123456789abcdef0123", "TERM=Bearer abcdefgh12345", "TZ=-----BEGIN RSA PRIVATE KEY-----",
		"PYTHONPATH=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x", "LANGUAGE=sk-ant-REDACTED-0123", "novalue",
	}
	want := []string{
		"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0",
		"PATH=/bin", "HOME=/home/u", "LC_ALL=C", "LANG=de_DE.UTF-8", "GOFLAGS=-mod=mod", "https_proxy=http://proxy:3128",
	}
	if diff := gocmp.Diff(want, shell.Environment(env)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	t.Setenv("PAWL_TEST_API_KEY", "leaked")
	t.Setenv("GOPROXY", "https://user:leaked@proxy.example.com")
	inEveryTier(t, func(t *testing.T, newShell maker) {
		if r := good(t, newShell(shell.Options{Dir: t.TempDir()}), "env; set"); strings.Contains(r.Output, "leaked") {
			t.Errorf("the command saw %s", r.Output)
		}
	})
}

func TestTheOutputIsAlwaysText(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		r := good(t, newShell(shell.Options{Dir: t.TempDir()}), "head -c 600000 /dev/urandom")
		if !utf8.ValidString(r.Output) || r.Truncated {
			t.Error("random bytes were taken for text")
		}
	})
}

func BenchmarkCommand(b *testing.B) {
	sh := shell.New(shell.Options{Dir: b.TempDir()})
	for b.Loop() {
		if _, err := run(b.Context(), sh, "true"); err != nil {
			b.Fatal(err)
		}
	}
}
