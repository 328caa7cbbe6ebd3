package acpserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/journal/memory"
)

// The second line of each command waits until the editor was sent the first one. What the
// editor shows of it is the same when the session is loaded.
func TestTheOutputOfACommandIsSentWhileItRuns(t *testing.T) {
	const command = `printf '\033[31mone\033[0m\n'; cat go; echo two; exit 3`
	for _, terminals := range []bool{false, true} {
		store, dir := memory.New(nil), t.TempDir()
		turn := "- tool_calls: [{name: shell.exec, arguments: {command: " + `"` + strings.ReplaceAll(command, `\`, `\\`) + `"` + "}}]\n"
		script := turn + turn + "- text: Done.\n"
		launch := func() *editor {
			c := start(t, store, dir, script)
			agent := strings.NewReplacer("[fs.read, fs.write]", "[shell.exec]", "fs.write: always", "shell.exec: never").Replace(agentFile)
			if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(agent), 0o600); err != nil {
				t.Fatal(err)
			}
			can := acp.ClientCapabilities{Terminal: true, Meta: map[string]any{"terminal_output": terminals}}
			if _, err := c.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber, ClientCapabilities: can}); err != nil {
				t.Fatal(err)
			}
			c.ask = choose("allow_once")
			return c
		}
		first, whole := "output ```console\none\n```", ""
		if terminals {
			first, whole = "terminal one\n", "terminal one\ntwo\n"
		}
		goes := filepath.Join(dir, "go")
		if err := syscall.Mkfifo(goes, 0o600); err != nil {
			t.Fatal(err)
		}
		c := launch()
		id, said := c.begin(), make(chan acp.StopReason, 1)
		go func() { said <- c.say(id, "Go.") }()
		for range 2 {
			c.awaitNoted(first)
			if err := os.WriteFile(goes, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if terminals {
				c.awaitNoted(whole)
				c.awaitNoted("failed 3")
			}
		}
		if stop := <-said; stop != acp.StopReasonEndTurn {
			t.Errorf("the turn stops with %s", stop)
		}
		c.quit()
		if c = launch(); terminals {
			c.load(id)
			for range 2 {
				c.awaitNoted("terminal exit code: 3\none\ntwo\n")
				c.awaitNoted("failed 3")
			}
		}
		c.quit()
	}
}
