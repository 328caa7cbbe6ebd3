package shell_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

var (
	shim sandbox.Shim
	// machine is what this machine can do.
	machine = sync.OnceValue(func() *sandbox.Machine { return sandbox.Detect(context.Background(), shim) })
)

func TestMain(m *testing.M) {
	shim = sandbox.Main()
	cache, err := os.MkdirTemp("", "cache-*")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", cache)
	code := m.Run()
	os.RemoveAll(cache)
	os.Exit(code)
}

// maker makes the tool under test.
type maker func(shell.Options) tool.Tool

// inEveryTier holds the tool to the same behaviour without a sandbox and in
// each tier.
func inEveryTier(t *testing.T, test func(*testing.T, maker)) {
	tiers := sandbox.Tiers()
	if os.Getenv("PAWL_ONE_TIER") != "" { // what races is the same in each
		tiers = tiers[:1]
	}
	for _, tier := range tiers {
		t.Run(string(tier), func(t *testing.T) {
			needs(t, tier)
			test(t, func(o shell.Options) tool.Tool {
				t.Helper()
				o.Sandbox = box(t, tier, o.Dir)
				return shell.New(o)
			})
		})
	}
	t.Run("bare", func(t *testing.T) {
		test(t, func(o shell.Options) tool.Tool {
			t.Helper()
			o.Bare = bare(t)
			return shell.New(o)
		})
	})
}

// bare is the box that holds nothing but ends what a command started.
func bare(t *testing.T) *sandbox.Box {
	t.Helper()
	b := machine().Bare()
	if b == nil {
		t.Skip("this program cannot supervise itself here")
	}
	return b
}

// box opens a box for a workspace; nil for no sandbox.
func box(t *testing.T, tier sandbox.Tier, workspace string) *sandbox.Box {
	t.Helper()
	if tier == sandbox.None {
		return nil
	}
	return boxOf(t, tier, sandbox.Policy{Workspace: workspace})
}

// needs skips a test where a tier does not work.
func needs(t *testing.T, tier sandbox.Tier) {
	t.Helper()
	for _, f := range machine().Findings() {
		if f.Tier == tier && !f.Works {
			t.Skipf("the tier %s does not work here: %s", tier, f.Why)
		}
	}
}

// boxOf opens a box under a policy.
func boxOf(t *testing.T, tier sandbox.Tier, p sandbox.Policy) *sandbox.Box {
	t.Helper()
	needs(t, tier)
	b, err := machine().Open(tier, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// boxed are the tiers that hold something.
var boxed = slices.DeleteFunc(sandbox.Tiers(), func(t sandbox.Tier) bool { return t == sandbox.None })

// What outlives its call could decide about the next one.
func TestAProcessThatLeavesTheGroupDiesInABox(t *testing.T) {
	for _, tier := range sandbox.Tiers() {
		t.Run(string(tier), func(t *testing.T) {
			dir := t.TempDir()
			_, gone := fifo(t, dir)
			sh := shell.New(shell.Options{Dir: dir, Sandbox: box(t, tier, dir), Bare: bare(t)})
			if r := good(t, sh, `setsid sh -c 'trap "" TERM HUP INT; sleep 300 & sleep 300' 3>fifo >/dev/null 2>&1 & echo done`); *r.ExitCode != 0 {
				t.Errorf("%+v", r)
			}
			gone()
		})
	}
}

// A command that nothing restricts may kill its supervisor. What gets away so
// does not hold up the call.
func TestACommandThatKillsItsSupervisorEndsItsCall(t *testing.T) {
	dir := t.TempDir()
	sh := shell.New(shell.Options{Dir: dir, Bare: bare(t), Timeout: 4 * time.Minute})
	start := time.Now()
	_, err := run(t.Context(), sh, `setsid sh -c 'echo $$ >pid; exec sleep 300' & while [ ! -s pid ]; do sleep 0.01; done; kill -9 $PPID; sleep 300`)
	if took := time.Since(start); took > 2*time.Minute {
		t.Errorf("it took %s: %v", took, err)
	}
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(pid))); err == nil {
		_ = syscall.Kill(n, syscall.SIGKILL)
	}
}

func TestWhatASandboxHoldsDiesWithThisProcess(t *testing.T) {
	for _, tier := range sandbox.Tiers() {
		for name, command := range map[string]string{
			"the command itself": "exec 3>fifo; echo up >&3; exec sleep 300",
			"in the background":  "exec 3>fifo; (trap '' TERM HUP INT; sleep 300; true) & echo up >&3; wait",
			"in another session": `exec 3>fifo; setsid sh -c 'setsid sh -c "echo up >&3; exec sleep 300" & exec sleep 300' & wait`,
		} {
			t.Run(string(tier)+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				box(t, tier, dir) // skips where there is no such tier
				name, gone := fifo(t, dir)
				helper := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
				helper.Env = append(os.Environ(), "PAWL_TEST_COMMAND="+command, "PAWL_TEST_TIER="+string(tier), "PAWL_TEST_DIR="+dir, "PAWL_TEST_BARE=1")
				if err := helper.Start(); err != nil {
					t.Fatal(err)
				}
				up, err := os.Open(name)
				if err != nil {
					t.Fatal(err)
				}
				defer up.Close()
				if line, err := bufio.NewReader(up).ReadString('\n'); line != "up\n" {
					t.Fatalf("the command did not start: %q, %v", line, err)
				}
				if err := helper.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = helper.Wait()
				gone()
			})
		}
	}
}

func TestWhatWasLetThroughMayBeWritten(t *testing.T) {
	for _, tier := range boxed {
		t.Run(string(tier), func(t *testing.T) {
			dir, elsewhere := t.TempDir(), t.TempDir()
			sh := shell.New(shell.Options{Dir: dir, Sandbox: box(t, tier, dir)})
			for name, command := range map[string]string{
				"named":    "echo x > " + elsewhere + "/named",
				"computed": "f=" + elsewhere + "/computed; (echo x > $f)",
			} {
				args, err := json.Marshal(map[string]string{"command": command})
				if err != nil {
					t.Fatal(err)
				}
				facts := sh.Facts(args)
				r, err := sh.Run(t.Context(), tool.Call{ID: "c", Args: args, Facts: &facts})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(filepath.Join(elsewhere, name)); (err == nil) != (name == "named") {
					t.Errorf("%s: %s, %v", command, r.Output, err)
				}
			}
		})
	}
}

func BenchmarkCommandInATier(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		sh := shell.New(shell.Options{Dir: b.TempDir(), Bare: machine().Bare()})
		for b.Loop() {
			if _, err := run(b.Context(), sh, "true"); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, tier := range boxed {
		b.Run(string(tier), func(b *testing.B) {
			dir := b.TempDir()
			bx, err := machine().Open(tier, sandbox.Policy{Workspace: dir})
			if err != nil {
				b.Skip(err)
			}
			defer bx.Close()
			sh := shell.New(shell.Options{Dir: dir, Sandbox: bx})
			for b.Loop() {
				if _, err := run(b.Context(), sh, "true"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
