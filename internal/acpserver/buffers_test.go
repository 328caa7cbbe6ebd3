package acpserver_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/journal/memory"
)

// An agent sees what the user has typed and not saved, and changes that. What the policy
// denies, what is not in a buffer and what is no UTF-8 stays as it is.
func TestTheBuffersOfAnEditorAreUsed(t *testing.T) {
	const script = `
- {text: I look., tool_calls: [{name: fs.read, arguments: {path: open.txt}}, {name: fs.read, arguments: {path: closed.txt}}, {name: fs.read, arguments: {path: latin.txt}}]}
- {text: I look., tool_calls: [{name: fs.read, arguments: {path: secret.txt}}, {name: fs.read, arguments: {path: out.txt}}]}
- {text: I change., tool_calls: [{name: fs.edit, arguments: {path: open.txt, old_string: typed, new_string: changed}}]}
- {text: I change., tool_calls: [{name: fs.write, arguments: {path: closed.txt, content: "closed too\n"}}]}
- {text: I change., tool_calls: [{name: fs.write, arguments: {path: new.txt, content: "new\n"}}]}
- text: Done.
`
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside.txt")
	c := start(t, memory.New(nil), dir, script+script)
	agent := strings.NewReplacer("[fs.read, fs.write]", "[fs.read, fs.write, fs.edit]", "approvals: {fs.write: always}", "rules: [{deny: fs.read, path: secret.txt}]").Replace(agentFile)
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		at("agent.yaml"): agent, at("open.txt"): "saved\n", at("closed.txt"): "closed\n", at("latin.txt"): "caf\xe9\n", at("secret.txt"): "secret\n", outside: "outside\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, at("out.txt")); err != nil {
		t.Fatal(err)
	}
	can := acp.ClientCapabilities{Fs: acp.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}}
	if _, err := c.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber, ClientCapabilities: can}); err != nil {
		t.Fatal(err)
	}
	for _, buffered := range []string{"typed\n", "typed again\n"} {
		c.mu.Lock()
		c.buffers, c.files = map[string]string{at("open.txt"): buffered, at("secret.txt"): "typed\n", at("out.txt"): "typed\n", at("latin.txt"): "typed\n"}, nil
		c.mu.Unlock()
		_ = os.Remove(at("new.txt"))
		if stop := c.say(c.begin(), "Go."); stop != acp.StopReasonEndTurn {
			t.Fatalf("it stops with %s:\n%s", stop, c.transcript())
		}
		c.mu.Lock()
		files := slices.Clone(c.files)
		c.mu.Unlock()
		slices.Sort(files)
		want := []string{"read closed.txt", "read closed.txt", "read open.txt", "read open.txt", "write new.txt", "write open.txt"}
		if !slices.Equal(files, want) {
			t.Errorf("the editor was asked for %q, want %q\n%s", files, want, c.transcript())
		}
		for name, want := range map[string]string{
			at("open.txt"): strings.Replace(buffered, "typed", "changed", 1), at("closed.txt"): "closed too\n", at("new.txt"): "new\n", at("latin.txt"): "caf\xe9\n", outside: "outside\n",
		} {
			if text, err := os.ReadFile(name); err != nil || string(text) != want {
				t.Errorf("%s has %q, want %q: %v", filepath.Base(name), text, want, err)
			}
		}
	}
}
