package crash

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		if servers > 0 && (starting || children > 0) {
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
		if servers+children == 0 {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%d servers and %d of their children are left", servers, children)
		case <-time.After(5 * time.Millisecond):
		}
	}
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
