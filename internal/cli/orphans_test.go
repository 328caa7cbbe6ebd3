package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// sly is a command that gets away from its supervisor, where it can, and then
// approves the run's second call, again and again, until it is killed.
const sly = `cat > sly.sh <<'EOF'
echo $$ > pid
while :; do
  pawl runs approve "$(cat run)" 2-1 --resume
  sleep 0.02
done > said 2>&1
EOF
until [ -s run ]; do sleep 0.01; done
setsid sh sly.sh &
until [ -s said ]; do sleep 0.01; done
kill -9 $PPID
sleep 60`

// What holds without a sandbox: a process that killed its supervisor falls to
// the driver, which refuses what it decides and ends it with its call.
func TestACommandThatKillsItsSupervisorDecidesAboutNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no orphans are adopted here")
	}
	p := newProject(t, map[string]string{
		"agent.yaml": `identity: {name: gated}
model_policy: {primary: {model: scripted/script.yaml}}
tools: {allow: [shell.exec, fs.write], approvals: {shell.exec: never, fs.write: always}}
`,
		"script.yaml": shellTurn(sly) + "- tool_calls: [{name: fs.write, arguments: {path: secret.txt, content: x}}]\n- text: the end\n",
	})
	s := p.startWith([]string{"PAWL_SANDBOX=none"}, "run", "agent.yaml", "go")
	p.eventually("the run is there", func() bool { return p.pawl("runs", "--limit", "1").out != "" })
	id := p.newest()
	p.write("run", id)
	f := s.wait()
	if f.code != exitParked {
		t.Fatalf("exit code %d: %s", f.code, f.err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(p.read("pid")))
	if err != nil {
		t.Fatal(err)
	}
	if dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd"); err == nil && dir == p.dir {
		t.Errorf("process %d of the command is still there", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if said := p.read("said"); !strings.Contains(said, "a run cannot decide about calls") && !strings.Contains(said, "waits for no decision") {
		t.Errorf("it heard %q", said)
	}
	if d := of[event.ToolApprovalResolved](p.events(p.exits(0, "runs", "events", id, "--json").out)); len(d) > 0 {
		t.Errorf("it decided: %+v", d)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "secret.txt")); err == nil {
		t.Error("the call ran")
	}
}

// The environment of commands is scrubbed of credentials, and Pawl's own, which
// has them, is no way around that.
func TestACommandWithoutASandboxDoesNotSeeTheEnvironmentOfPawl(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are hidden on Linux only")
	}
	p := newProject(t, map[string]string{
		"agent.yaml": shellAgent,
		"script.yaml": shellTurn(`p=$PPID; while [ "$p" -gt 1 ]; do echo "looks at $p"; tr '\0' '\n' <"/proc/$p/environ" | grep MODEL_API_KEY; `+
			`p=$(cut -d' ' -f4 "/proc/$p/stat"); [ "$(cat /proc/$p/comm)" = pawl ] || break; done`) + "- text: the end\n",
	})
	cmd := p.command("run", "agent.yaml", "go", "--json", "--journal", filepath.Join(p.dir, "data", "j.db"))
	cmd.Env = append(cmd.Env, "PAWL_SANDBOX=none", "MODEL_API_KEY=fedcba9876543210fedc")
	if os.Getuid() == 0 {
		cmd.Path = p.publicBinary(cmd.Path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if err := os.Mkdir(filepath.Join(p.dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(p.dir, "data"), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		// Where it cannot make a temporary directory, its commands have no supervisor.
		cmd.Env = append(cmd.Env, "TMPDIR="+filepath.Join(p.dir, "data"))
		p.readable()
	}
	f := p.begin(cmd).wait()
	results := of[event.ToolResult](p.events(f.out))
	if f.code != 0 || len(results) != 1 || strings.Count(results[0].Output, "looks at") < 2 {
		t.Fatalf("exit code %d: %s\n%+v", f.code, f.err, results)
	}
	if strings.Contains(results[0].Output, "MODEL_API_KEY") {
		t.Errorf("it saw %s", results[0].Output)
	}
}

// readable lets everybody read the files of the project.
func (p project) readable() {
	p.t.Helper()
	for _, name := range []string{"agent.yaml", "script.yaml"} {
		if err := os.Chmod(filepath.Join(p.dir, name), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}
