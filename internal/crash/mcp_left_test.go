package crash

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/engine/holder"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/mcptest"
)

// A server that starts, and one that has started another process in a session of its own,
// end with Pawl when that is killed, in each tier.
func TestKilledPawlLeavesNoProcessOfAServer(t *testing.T) {
	for _, tier := range sandbox.Tiers() {
		for name, starting := range map[string]bool{"during a call": false, "during the start": true} {
			t.Run(string(tier)+" "+name, func(t *testing.T) {
				t.Parallel()
				killsWithServer(t, tier, starting)
			})
		}
	}
}

func killsWithServer(t *testing.T, tier sandbox.Tier, starting bool) {
	w := newWorld(t, "- tool_calls: [{name: docs.grandchild, arguments: {}}]\n- tool_calls: [{name: docs.silent, arguments: {}}]\n- text: done\n")
	server := w.server(t)
	demands := ""
	if tier != sandbox.None {
		demands = "permissions: {sandbox: " + string(tier) + "}"
	}
	w.write(t, "agent.yaml", `
identity: {name: crash}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: [docs.grandchild, docs.silent]
  approvals: {"docs.*": never}
  may_send: ["docs.*"]
  `+demands+`
  mcp: [{server: docs, command: ["`+server+`"], env: {`+asServer+`: "1"}}]
`)
	if starting {
		w.write(t, mcptest.HoldFile, "")
	}
	// The journal is kept out of the workspace, as the weakest tier wants it.
	run := w.command("--journal", filepath.Join(t.TempDir(), "journal.db"), "run", "agent.yaml", "go")
	run.Env = append(os.Environ(), "PAWL_SANDBOX="+string(tier))
	var said bytes.Buffer
	run.Stderr = &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	there := func() (servers, children int) {
		return serversOf(t, server), len(processesIn(t, w.dir, "sleep"))
	}
	for {
		servers, children := there()
		if servers > 0 && (starting || children > 0) && marked(t, server) {
			break
		}
		select {
		case <-ended:
			if strings.Contains(said.String(), "sandbox") && tier != sandbox.None {
				t.Skipf("this machine has no %s: %s", tier, said.String())
			}
			t.Fatalf("the run ends: %s", said.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	for {
		servers, children := there()
		if servers+children == 0 && !strings.Contains(doctor(t, w), server) {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%d servers and %d of their children are left", servers, children)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// marked reports whether 'pawl doctor' would find a process of a server that is left.
func marked(t *testing.T, server string) bool {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		env, _ := os.ReadFile(name)
		argv, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if strings.HasPrefix(string(argv), server+"\x00") && strings.Contains(string(env), holder.ServerVariable+"=docs@") {
			return true
		}
	}
	return false
}

// doctor returns the servers that 'pawl doctor' finds left.
func doctor(t *testing.T, w world) string {
	t.Helper()
	out, err := w.command("doctor", "--json").Output()
	var d struct {
		Findings []struct{ Name, Detail string }
	}
	if wrong := json.Unmarshal(out, &d); wrong != nil {
		t.Fatalf("%v, %v: %s", err, wrong, out)
	}
	for _, f := range d.Findings {
		if f.Name == "servers" {
			return f.Detail
		}
	}
	t.Fatalf("doctor has no finding about servers: %s", out)
	return ""
}

// processesIn lists the processes of a program that work in a directory.
func processesIn(t *testing.T, dir, program string) (pids []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, _ := os.ReadFile(name)
		at, _ := os.Readlink(filepath.Join(filepath.Dir(name), "cwd"))
		if strings.HasPrefix(string(text), program+"\x00") && at == dir {
			pids = append(pids, filepath.Base(filepath.Dir(name)))
		}
	}
	return pids
}
