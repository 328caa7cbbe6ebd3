package cli

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/event"
)

const (
	vaultWord = "xyzzy-plugh-20931"
	vault     = "VAULT_WORD=" + vaultWord
)

// vaulted is a run whose first call waits until the file "go" is there, whose
// second needs an approval, and that has a secret.
func vaulted(t *testing.T) project {
	return newProject(t, map[string]string{
		"agent.yaml": `identity: {name: vaulted}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: [shell.exec, fs.write]
  approvals: {fs.write: always}
  secrets: {VAULT: {env: VAULT_WORD, tools: [shell.exec]}}
`,
		"script.yaml": shellTurn("touch started; until [ -e go ]; do sleep 0.01; done") +
			"- tool_calls: [{name: fs.write, arguments: {path: a.txt, content: x}}]\n- text: the end\n",
	})
}

// onDisk are the files of the journal that hold a text: the database, its log
// and index of the log, with everything that is free in them.
func (p project) onDisk(text string) []string {
	p.t.Helper()
	var found []string
	looked := 0
	err := filepath.WalkDir(filepath.Join(p.dir, ".pawl"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		looked++
		if bytes.Contains(content, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil || looked == 0 {
		p.t.Fatalf("%d files looked at: %v", looked, err)
	}
	return found
}

// A shell that does not know a secret's value can be where it is pasted. What it
// sends to a process that does know it rests on no disk, also while that process
// is held up, after it was killed, and once its heir has gone on.
func TestASecretThatIsTypedToALiveRunRestsOnNoDisk(t *testing.T) {
	p := vaulted(t)
	s := p.startWith([]string{vault}, "run", "agent.yaml", "work")
	p.eventually("the call started", p.exists("started"))
	id := p.newest()
	nowhere := func(when string) {
		t.Helper()
		if found := p.onDisk(vaultWord); len(found) > 0 {
			t.Fatalf("%s the value is in %s", when, found)
		}
	}

	p.exits(0, "runs", "input", id, "it is "+vaultWord+", remember")
	nowhere("after it was taken up")
	if said := p.exits(0, "runs", "events", id, "--json").out; !strings.Contains(said, "it is ${secret:VAULT}, remember") {
		t.Errorf("the run heard %s", said)
	}

	if err := s.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if f := p.exits(0, "runs", "input", id, "again: "+vaultWord); !strings.Contains(f.out, "has not read it yet") {
		t.Errorf("a process that is held up has taken it up: %s", f.out)
	}
	nowhere("while its driver is held up")
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.wait()
	nowhere("after its driver was killed")

	// No process drives it now, so none could redact the value.
	if f := p.exits(2, "runs", "input", id, "again: "+vaultWord); !strings.Contains(f.err, "VAULT") || strings.Contains(f.err, vaultWord) {
		t.Errorf("it is said %q", f.err)
	}
	p.write("go", "")
	f := p.startWith([]string{vault}, "runs", "resume", id).wait()
	if f.code != exitParked || !strings.Contains(f.err, "lost (1 command); send it again") {
		t.Errorf("exit code %d: %s", f.code, f.err)
	}
	nowhere("after the heir went on")

	// It has parked: decided from a shell without the value.
	for _, args := range [][]string{
		{"approve", id, "2-1", "--reason", "it is " + vaultWord},
		{"approve", id, "2-1", "--args", `{"path":"a.txt","content":"` + vaultWord + `"}`},
		{"reject", id, "2-1", "--reason", vaultWord},
		{"input", id, vaultWord},
	} {
		if f := p.exits(2, append([]string{"runs"}, args...)...); !strings.Contains(f.err, "fewer than 8 bytes") || strings.Contains(f.err, vaultWord) {
			t.Errorf("%s: it is said %q", args[0], f.err)
		}
	}
	nowhere("after all that was refused")
	p.exits(0, "runs", "reject", id, "2-1", "--reason", "no")
	d := of[event.ToolApprovalResolved](p.events(p.exits(0, "runs", "events", id, "--json").out))
	if len(d) != 1 || d[0].Kind != event.ApprovalRejected || d[0].Reason != "no" {
		t.Errorf("decisions %+v", d)
	}

	// What a fork and a run that continues are given.
	p.write("said.txt", "it gave "+vaultWord)
	for _, args := range [][]string{
		{"runs", "fork", id, "--seq", "3", "--no-run", "--prompt", "it is " + vaultWord},
		{"runs", "fork", id, "--seq", "16", "--no-run", "--result", "1-1=said.txt"},
	} {
		p.exits(2, args...)
		if f := p.startWith([]string{vault}, args...).wait(); f.code != 0 {
			t.Errorf("%v: exit code %d: %s", args, f.code, f.err)
		}
	}
	// A run can be cancelled with any reason.
	if f := p.exits(0, "runs", "cancel", p.newest(), "--reason", vaultWord); !strings.Contains(f.out, "the reason was left out") || strings.Contains(f.out, vaultWord) {
		t.Errorf("it is said %q", f.out)
	}
	if f := p.startWith([]string{vault}, "runs", "resume", id).wait(); f.code != 0 {
		t.Errorf("exit code %d: %s", f.code, f.err)
	}
	if f := p.startWith([]string{vault}, "run", "--continue", id, "again with "+vaultWord, "--approve", "deny").wait(); f.code != 0 {
		t.Errorf("exit code %d: %s", f.code, f.err)
	}
	nowhere("after forks and a run that continues")
}

// A decision about a running run arrives with its reason, from any sender.
func TestSealedDecisionReachesTheRun(t *testing.T) {
	p := vaulted(t)
	y, s := p.atTerminal([]string{vault}, "run", "agent.yaml", "work")
	p.write("go", "")
	p.eventually("it asks", func() bool { return strings.Contains(y.seen(), prompt) })
	id := p.newest()
	p.exits(0, "runs", "approve", id, "2-1", "--reason", "with "+vaultWord, "--args", `{"path":"b.txt","content":"y"}`)
	if f := s.wait(); f.code != 0 || !p.exists("b.txt")() || p.exists("a.txt")() {
		t.Errorf("exit code %d: %q", f.code, y.seen())
	}
	d := of[event.ToolApprovalResolved](p.events(p.exits(0, "runs", "events", id, "--json").out))
	if len(d) != 2 || d[0].Kind != event.ApprovalEdited || d[0].Reason != "with ${secret:VAULT}" || d[1].Kind != event.ApprovalApproved {
		t.Errorf("decisions %+v", d)
	}
	if found := p.onDisk(vaultWord); len(found) > 0 {
		t.Errorf("the value is in %s", found)
	}
}

// A credential of one of the two processes that no file declares: who sends it
// takes out what it knows, and of what only the run's driver knows nothing stays
// in the files once that has taken it up.
func TestUndeclaredCredentialIsErasedOnceTaken(t *testing.T) {
	const gateway, token = "6af0-plugh-20931-xyzzy", "tok-8812-plover-4711"
	p := newProject(t, map[string]string{
		"agent.yaml": `identity: {name: plain}
model_policy: {primary: {model: scripted/script.yaml}}
tools: {allow: [shell.exec]}
`,
		"script.yaml":   shellTurn("touch started; until [ -e go ]; do sleep 0.01; done") + "- text: the end\n",
		"gateways.yaml": "providers: {gw: {base_url: \"http://127.0.0.1:9/v1\", api_key_env: GW_WORD}}\n",
	})
	s := p.startWith([]string{"DEPLOY_TOKEN=" + token}, "run", "agent.yaml", "work")
	p.eventually("the call started", p.exists("started"))
	id := p.newest()

	if f := p.startWith([]string{"GW_WORD=" + gateway, "PAWL_CONFIG=gateways.yaml"}, "runs", "input", id, "the gateway's is "+gateway).wait(); f.code != 0 {
		t.Errorf("exit code %d: %s", f.code, f.err)
	}
	if found := p.onDisk(gateway); len(found) > 0 {
		t.Errorf("what its sender knew is in %s", found)
	}
	p.exits(0, "runs", "input", id, "the token is "+token)
	p.eventually("what the driver knew is nowhere", func() bool { return len(p.onDisk(token)) == 0 })

	said := p.exits(0, "runs", "events", id, "--json").out
	for _, want := range []string{"the gateway's is ${secret:GW_WORD}", "the token is ${secret:DEPLOY_TOKEN}"} {
		if !strings.Contains(said, want) {
			t.Errorf("the run did not hear %q", want)
		}
	}
	p.write("go", "")
	if f := s.wait(); f.code != 0 {
		t.Errorf("exit code %d: %s", f.code, f.err)
	}
}

// Which variables hold credentials, only the config file says.
func TestUnreadableConfigBlocksMessagesToRuns(t *testing.T) {
	const gateway = "6af0-plugh-20931-xyzzy"
	p := newProject(t, map[string]string{
		"agent.yaml": `identity: {name: plain}
model_policy: {primary: {model: scripted/script.yaml}}
tools: {allow: [fs.write], approvals: {fs.write: always}}
approvals: {mode: park}
`,
		"script.yaml":   "- tool_calls: [{name: fs.write, arguments: {path: a.txt, content: x}}]\n- text: the end\n",
		"gateways.yaml": "providers: {gw: {base_url: \"http://127.0.0.1:9/v1\", api_key_env: GW_WORD, timout: 3}}\n",
		"said.txt":      "it gave " + gateway,
	})
	p.exits(exitParked, "run", "agent.yaml", "work")
	id := p.newest()
	typed := func(args ...string) finished {
		t.Helper()
		return p.startWith([]string{"GW_WORD=" + gateway, "PAWL_CONFIG=gateways.yaml"}, append([]string{"runs"}, args...)...).wait()
	}

	for _, args := range [][]string{
		{"input", id, "it is " + gateway},
		{"input", id, "look", "--attach", "said.txt"},
		{"approve", id, "1-1", "--reason", "it is " + gateway},
		{"approve", id, "1-1", "--args", `{"path":"a.txt","content":"` + gateway + `"}`},
		{"reject", id, "1-1", "--reason", gateway},
		{"fork", id, "--seq", "1", "--no-run", "--prompt", "it is " + gateway},
	} {
		if f := typed(args...); f.code != exitUsage || !strings.Contains(f.err, "gateways.yaml:1:") || !strings.Contains(f.err, "timout") || strings.Contains(f.err, gateway) {
			t.Errorf("%v: exit code %d: %s", args, f.code, f.err)
		}
	}
	if f := typed("reject", id, "1-1", "--reason", "no"); f.code != 0 {
		t.Errorf("to decline a call says nothing that could hold one: exit code %d: %s", f.code, f.err)
	}
	if f := typed("cancel", id, "--reason", gateway); f.code != 0 || !strings.Contains(f.out, "the reason was left out") || !strings.Contains(f.out, "gateways.yaml:1:") {
		t.Errorf("a run is not cancelled without its reason: exit code %d: %s%s", f.code, f.out, f.err)
	}
	if found := p.onDisk(gateway); len(found) > 0 {
		t.Errorf("the credential is in %s", found)
	}
}
