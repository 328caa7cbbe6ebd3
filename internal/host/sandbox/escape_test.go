//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawlrun/pawl/internal/host/sandbox"
)

// tiers are those that hold something.
var tiers = slices.DeleteFunc(sandbox.Tiers(), func(t sandbox.Tier) bool { return t == sandbox.None })

// withMounts are those that show commands a file system of their own.
var withMounts = []sandbox.Tier{sandbox.Bubblewrap, sandbox.Namespaces}

// neither says of an attempt that no tier holds it.
var neither = []sandbox.Tier{sandbox.None}

// escape is an attempt to reach what a command shall not reach. Its command
// exits with 0 when it got there, as all do without a sandbox.
type escape struct {
	name, command string
	// holds are the tiers that hold it; all where that says nothing. The
	// others do not, and docs/design/sandbox.md says so.
	holds []sandbox.Tier
}

var escapes = append([]escape{
	{name: "write outside the workspace", command: `echo x > "$OUT/new"`},
	{name: "write outside by ..", command: `echo x > "sub/../../outside/new"`},
	{name: "write outside by a link", command: `ln -sf "$OUT" link && echo x > link/new`},
	{name: "write outside by /proc", command: `echo x > "/proc/self/root/$OUT/new"`},
	{name: "change a file outside", command: `echo x >> "$OUT/file"`},
	{name: "truncate a file outside", command: `: > "$OUT/file"`},
	{name: "delete a file outside", command: `rm "$OUT/file"`},
	{name: "move a file out", command: `mv free "$OUT/moved"`},
	{name: "link a file out and change it", command: `ln "$OUT/file" got && echo x > got`},
	{name: "make a directory outside", command: `mkdir "$OUT/dir"`},
	{name: "change the mode of a file outside", command: `chmod 777 "$OUT/file"`, holds: withMounts},

	{name: "write a protected file", command: `echo x > .git/config`},
	{name: "write a protected file by ..", command: `echo x > sub/../.git/config`},
	{name: "write a protected file by a link", command: `ln -s ../.git/config sub/l && echo x > sub/l`},
	{name: "write a protected file by a hard link", command: `ln .git/config sub/h && echo x > sub/h`},
	{name: "write a protected file by another name that it has", command: `echo x > other/config`},
	{name: "write what a pattern protects by another name", command: `echo x >> other/pem`},
	{name: "write a protected file by another name, moved", command: `mv other/config free && echo x > free`},
	{name: "write a protected file by another name in a moved directory", command: `mv other moved && echo x > moved/config`},
	{name: "make a protected file", command: `echo x > .git/hook`},
	{name: "rename over a protected file", command: `echo x > sub/n && mv sub/n .git/config`},
	{name: "move a protected directory away", command: `mv .git sub/g && mkdir .git`},
	{name: "delete a protected file", command: `rm .git/config`},
	{name: "write what a pattern protects", command: `echo x > sub/key.pem`},
	{name: "delete what a pattern protects", command: `rm sub/key.pem`},
	{name: "put another directory in the place of one with a protected file", command: `mv sub sub2 && mkdir sub && echo x > sub/key.pem`},
	{name: "move a directory with a protected file for the next command", command: `mv sub sub2`},
	{name: "move a directory above one with a protected file", command: `mv deep moved`},
	{name: "move a directory above what is protected and not there", command: `mv soon soon2`},
	{name: "make what is protected and not there", command: `mkdir -p later && echo x > later/file`},

	{name: "read a key", command: `cat "$HOUSE/.ssh/id"`},
	{name: "read a key by a link", command: `ln -s "$HOUSE/.ssh/id" sub/k && cat sub/k`},
	{name: "read the home directory", command: `cat "$HOUSE/diary"`},
	{name: "read the journal", command: `cat "$OUT/journal.db"`},
	{name: "read a journal in the workspace", command: `cat .pawl/journal.db`},
	{name: "read a journal by another name that it has", command: `cat other/journal`},
	{name: "read by another process's root", command: `cat "/proc/$VICTIM/root$HOUSE/.ssh/id"`},
	{name: "read another process's environment", command: `grep -q SECRET "/proc/$VICTIM/environ"`},
	{name: "read another process's memory", command: `"$SELF" attack peek $VICTIM`},
	{name: "open its parent's memory", command: `"$SELF" attack open-for-ptr $PPID`},
	{name: "open memory that other processes share", command: `"$SELF" attack segment $SEGMENT`},
	{name: "trace another process", command: `"$SELF" attack ptrace $VICTIM`},
	{name: "kill another process", command: `kill -USR1 $VICTIM`},
	{name: "limit another process", command: `"$SELF" attack limit $VICTIM`},
	{name: "use an inherited file", command: `"$SELF" attack files`},

	{name: "connect to this machine", command: `"$SELF" attack tcp $TCP`},
	{name: "send a datagram", command: `"$SELF" attack udp $UDP`},
	{name: "connect to an abstract socket", command: `"$SELF" attack unix $ABSTRACT`},
	{name: "connect to a socket in the home directory", command: `"$SELF" attack unix "$HOUSE/socket"`},
	{name: "connect to a socket in plain sight", command: `"$SELF" attack unix "$OUT/socket"`, holds: []sandbox.Tier{sandbox.Landlock}},
	{name: "open a socket to the host of a virtual machine", command: fmt.Sprintf(`"$SELF" attack family %d`, unix.AF_VSOCK)},

	{name: "become root of a namespace", command: `unshare --user true`},
	{name: "type into a terminal", command: `"$SELF" attack tiocsti`},
	{name: "ask for keys", command: `"$SELF" attack keyctl`},
	{name: "set up io_uring", command: `"$SELF" attack io_uring`},
	{name: "load a program into the kernel", command: `"$SELF" attack bpf`},
	{name: "open a file by its handle", command: `"$SELF" attack handle`},

	{name: "make a program run as its owner", command: `cd open && chmod u+s free`},
	{name: "install a program that runs as its owner", command: `cd open && install -m 4755 free new`},
	{name: "copy a program that runs as its owner", command: `cd open && cp -p "$OUT/setuid" new && test -u new`},
	{name: "set a program's owner to run as by fchmod", command: fmt.Sprintf(`cd open && "$SELF" attack call %d opened mode && test -u free`, unix.SYS_FCHMOD)},
	{name: "set a program's owner to run as by fchmodat", command: fmt.Sprintf(`cd open && "$SELF" attack call %d here free mode && test -u free`, unix.SYS_FCHMODAT)},
	{name: "set a program's owner to run as by fchmodat2", command: fmt.Sprintf(`cd open && "$SELF" attack call %d here free mode 0 && test -u free || chmod u+s free`, unix.SYS_FCHMODAT2)}, // chmod, before Linux 6.6
	{name: "make a program that runs as its owner by mknodat", command: fmt.Sprintf(`cd open && "$SELF" attack call %d here new mode 0 && test -u new`, unix.SYS_MKNODAT)},
	{name: "make a program that runs as its owner by openat", command: fmt.Sprintf(`cd open && "$SELF" attack call %d here new %d mode && test -u new`, unix.SYS_OPENAT, unix.O_CREAT)},
	{name: "make a program that runs as its owner without a name", command: fmt.Sprintf(`cd open && "$SELF" attack call %d here dir %d mode`, unix.SYS_OPENAT, unix.O_TMPFILE|unix.O_WRONLY)},
	{name: "make a program that runs as its owner by openat2", command: `cd open && "$SELF" attack openat2 && test -u new`, holds: neither},
	{name: "make a program run as its group", command: `cd open && chmod g+s free && test -g free`, holds: neither},

	{name: "start too many processes", command: `for i in $(seq 150); do sleep 60 & all="$all $!"; done; sleep 5; kill $all`},
	{name: "use too much memory", command: `"$SELF" attack memory 400`},
}, escapesHere...)

// field is what there is to reach.
type field struct {
	workspace string
	env       []string
	policy    sandbox.Policy
}

// protection is a policy's view of the workspace of a field.
type protection struct{}

func (protection) Protects(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first == ".git" || first == ".pawl" || first == "later" || path == "soon/file" || strings.HasSuffix(path, ".pem")
}
func (protection) Below(string) bool { return true }
func (protection) Named() []string   { return []string{".git/", ".pawl/", "later/", "soon/file"} }

// openGround is a directory that a sandbox shows as it is. What lies below /tmp
// it does not: a command there writes to a directory of its own, which is held
// and looks like an escape.
func openGround(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(here, "/tmp/") || strings.HasPrefix(here, "/var/tmp/") {
		return "/srv"
	}
	return here
}

// newField makes a field outside all temporary directories, because those are private
// anyway.
func newField(t *testing.T) field {
	t.Helper()
	root, err := os.MkdirTemp(openGround(t), ".field-*")
	if err != nil {
		gate.skip()
		t.Skip("the checkout lies among temporary files, and nothing may be made in /srv")
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	dir := func(name string) string {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	f := field{workspace: dir("work")}
	outside, house := dir("outside"), dir("house")
	for _, name := range []string{"work/sub", "work/deep/down", "work/soon", "work/other", "work/open", "work/.git", "work/.pawl", "house/.ssh", "outside/spare"} {
		dir(name)
	}
	for _, name := range []string{"work/free", "work/open/free", "work/.git/config", "work/sub/key.pem", "work/deep/down/key.pem", "work/.pawl/journal.db", "outside/file", "outside/journal.db", "house/.ssh/id", "house/diary"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("here\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, of := range map[string]string{"config": "work/.git/config", "pem": "work/sub/key.pem", "journal": "outside/journal.db"} {
		if err := os.Link(filepath.Join(root, of), filepath.Join(f.workspace, "other", name)); err != nil {
			t.Fatal(err)
		}
	}
	self := filepath.Join(f.workspace, "attacker")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(exe, self) != nil {
		if err := exec.Command("cp", exe, self).Run(); err != nil {
			t.Fatal(err)
		}
	}
	setuid := filepath.Join(outside, "setuid")
	if err := os.WriteFile(setuid, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(setuid, os.ModeSetuid|0o755); err != nil {
		t.Fatal(err)
	}
	inherited(t, filepath.Join(outside, "file"))
	abstract := fmt.Sprintf("@pawl-%d-%s", os.Getpid(), filepath.Base(root))
	f.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + house, "HOUSE=" + house, "OUT=" + outside, "SELF=" + self,
		fmt.Sprintf("VICTIM=%d", victim(t)), "TCP=" + listen(t, "tcp", "127.0.0.1:0"), "UDP=" + echo(t), "ABSTRACT=" + listen(t, "unix", abstract),
		fmt.Sprintf("SEGMENT=%d", sharedMemory(t)),
	}
	listen(t, "unix", filepath.Join(house, "socket"))
	listen(t, "unix", filepath.Join(outside, "socket"))
	f.policy = sandbox.Policy{
		Workspace: f.workspace, Protected: protection{}, Environment: f.env,
		Hidden: []string{filepath.Join(f.workspace, ".pawl"), filepath.Join(outside, "journal.db")},
		Limits: sandbox.Limits{MemoryBytes: 300 << 20, Processes: 100},
	}
	return f
}

// inherited opens a file that every process which is started from now on has
// open, too.
func inherited(t *testing.T, path string) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
}

// sharedMemory is a segment that goes with the test.
func sharedMemory(t *testing.T) int {
	t.Helper()
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, os.Getpagesize(), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	return id
}

// victim is a process with a secret, that ends with the test.
func victim(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `trap : USR1; echo up; read line`)
	cmd.Env = []string{"SECRET=1", "PATH=" + os.Getenv("PATH")}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func listen(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return l.Addr().String()
}

// echo answers datagrams.
func echo(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 64)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(b[:n], from)
		}
	}()
	return c.LocalAddr().String()
}

// bare runs a command without any sandbox and gives its exit code.
func (f field) bare(t *testing.T, command string) int {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = f.workspace, f.env, &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if err != nil {
		t.Logf("%s", out)
	}
	return cmd.ProcessState.ExitCode()
}

// ran is what a command in a box gave.
type ran struct {
	sandbox.End
	output string
}

// run runs a command in a box to its end.
func run(t testing.TB, b *sandbox.Box, c sandbox.Command) ran {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c.Output = w
	p, err := b.Start(c)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var read sync.WaitGroup
	read.Go(func() { _, _ = io.Copy(&out, r) })
	<-p.Ended()
	end, err := p.Wait()
	if err != nil {
		t.Error(err)
	}
	read.Wait()
	return ran{end, out.String()}
}

// held reports whether a command did not reach what it was after: it failed, or what
// it changed is again as it was.
func (r ran) held() bool {
	left := slices.ContainsFunc(r.Changed, func(c sandbox.Change) bool { return !c.Undone })
	return !left && (r.Code != 0 || r.Signal != 0 || len(r.Changed) > 0)
}

func (f field) command(line string) sandbox.Command {
	return sandbox.Command{Args: []string{"/bin/sh", "-c", line}, Dir: f.workspace, Env: f.env}
}

func open(t *testing.T, tier sandbox.Tier, p sandbox.Policy) *sandbox.Box {
	t.Helper()
	m := machine()
	for _, found := range m.Findings() {
		if found.Tier == tier && !found.Works {
			gate.skip()
			t.Skipf("the tier %s does not work here: %s", tier, found.Why)
		}
	}
	b, err := m.Open(tier, p)
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

// TestWhatATierHolds tries each escape without a sandbox, where it must work,
// and in each tier, where it must not, but for what a tier is known not to
// hold.
func TestWhatATierHolds(t *testing.T) {
	for _, e := range escapes {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			t.Run("none", func(t *testing.T) {
				if code := newField(t).bare(t, e.command); code != 0 {
					t.Errorf("without a sandbox it ends with %d, so this test could not fail", code)
				}
			})
			for _, tier := range tiers {
				t.Run(string(tier), func(t *testing.T) {
					f := newField(t)
					got := run(t, open(t, tier, f.policy), f.command(e.command))
					held := len(e.holds) == 0 || slices.Contains(e.holds, tier)
					if escaped := !got.held(); escaped == held {
						t.Errorf("it ended with %+v, and the tier holds it: %v", got, held)
					}
					gate.pass(t)
				})
			}
		})
	}
}

// TestModesThatGiveNoRightsAreGiven tries in each tier what looks like making a
// program that runs as its owner, and is not.
func TestModesThatGiveNoRightsAreGiven(t *testing.T) {
	opens := func(path string, flags int) string {
		return fmt.Sprintf(`"$SELF" attack call %d here %s %d mode`, unix.SYS_OPENAT, path, flags)
	}
	for name, command := range map[string]string{
		"a program":                         `install -m 755 free new && cp -p new new2 && chmod -R u=rwX,go=rX .`,
		"a directory for everybody":         `mkdir new && chmod 1777 new && install -d -m 755 new2`,
		"a directory of a group":            `mkdir new && chmod 2775 new && cp -a new new2 && tar -cf t.tar new && rm -r new && tar -xpf t.tar && test -g new`,
		"a file that is opened, not made":   opens("free", unix.O_RDWR),
		"a directory that is opened":        opens("dir", unix.O_DIRECTORY),
		"a directory with a program's mode": fmt.Sprintf(`"$SELF" attack call %d here new mode && test ! -u new`, unix.SYS_MKDIRAT),
		"a repository that a group shares":  `mkdir new && cd new && git init -q --shared`,
	} {
		for _, tier := range tiers {
			t.Run(name+" in "+string(tier), func(t *testing.T) {
				f := newField(t)
				if got := run(t, open(t, tier, f.policy), f.command("cd open && "+command)); got.Code != 0 || got.Signal != 0 {
					t.Errorf("it ended with %+v", got)
				}
			})
		}
	}
}
