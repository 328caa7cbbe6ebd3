package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/journal"
)

// slowly streams a sentence that takes longer than any test.
const slowly = `
identity: {name: slowly}
model_policy: {primary: {model: scripted/script.yaml}}
`

// acpClient is an editor at the other end of a process.
type acpClient struct {
	project
	process *startedProcess
	in      io.WriteCloser
	out     *bufio.Scanner
}

func (p project) acp() acpClient {
	p.t.Helper()
	s, in, out := p.piped("acp", "--agent", "agent.yaml")
	c := acpClient{p, s, in, out}
	c.ask(1, "initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	return c
}

// acpFrame is a message of either side.
type acpFrame struct {
	ID     int
	Method string
	Params struct {
		Update struct {
			SessionUpdate string
			Content       json.RawMessage
		}
	}
	Result struct{ SessionID, StopReason string }
	Error  *struct{ Message string }
}

func (c acpClient) send(id int, method, params string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params); err != nil {
		c.t.Fatalf("%v: %s", err, c.process.err)
	}
}

func (c acpClient) next() (f acpFrame) {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the process has ended: %v: %s", c.out.Err(), c.process.err)
	}
	if err := json.Unmarshal(c.out.Bytes(), &f); err != nil {
		c.t.Fatalf("no frame on stdout: %s", c.out.Text())
	}
	return f
}

// ask sends a request, and returns its answer and the text of the updates before it.
func (c acpClient) ask(id int, method, params string) (f acpFrame, text string) {
	c.t.Helper()
	c.send(id, method, params)
	for {
		f = c.next()
		if f.Method == "" && f.ID == id {
			if f.Error != nil {
				c.t.Fatalf("%s fails: %s", method, f.Error.Message)
			}
			return f, text
		}
		var chunk struct{ Text string }
		_ = json.Unmarshal(f.Params.Update.Content, &chunk) // that of a call is a list
		text += chunk.Text
	}
}

func (c acpClient) begin() string {
	c.t.Helper()
	f, _ := c.ask(2, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, c.dir))
	return f.Result.SessionID
}

func promptOf(session, text string) string {
	return fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, text)
}

// The first process is killed during an answer, and the second one loads the session. It
// parks the run when its editor closes stdin.
func TestASessionGoesOnInAnotherProcess(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": slowly, "script.yaml": "- {text: One two three., delay: 1h}\n- text: Done.\n"})
	session := ""
	for i, end := range []func(c acpClient){
		func(c acpClient) { _ = c.process.Process.Signal(syscall.SIGKILL) },
		func(c acpClient) { _ = c.in.Close() },
	} {
		c := p.acp()
		if i == 0 {
			session = c.begin()
		} else {
			_, text := c.ask(2, "session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, session, p.dir))
			if !strings.Contains(text, "Message 0.") {
				t.Errorf("the loaded session has the text %q", text)
			}
		}
		c.send(3, "session/prompt", promptOf(session, fmt.Sprintf("Message %d.", i)))
		p.eventually("the message is in the journal", func() bool {
			return strings.Contains(p.pawl("runs", "log", "last").out, fmt.Sprintf("Message %d.", i))
		})
		end(c)
		_ = c.process.Wait()
	}
	row := p.row(session)
	if row.State != journal.Parked {
		t.Errorf("the run is %s", row.State)
	}
}

// The reference client sends two messages, allows what is asked, and kills the process. In
// another one the session has the same text.
func TestTheReferenceClientOfACPLoadsWhatItSaw(t *testing.T) {
	if os.Getenv("PAWL_LONG") == "" {
		t.Skip("part of the long suite: PAWL_LONG=1")
	}
	packages := mcptest.Packages(t, "@agentclientprotocol/sdk@2.4.0")
	p := newProject(t, map[string]string{
		"agent.yaml":  slowly + "tools: {allow: [fs.write], approvals: {fs.write: always}}\n",
		"script.yaml": "- {text: I write it., tool_calls: [{name: fs.write, arguments: {path: a.txt, content: one}}]}\n- text: Written.\n",
	})
	script, err := filepath.Abs("testdata/acp/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	client := func(session ...string) string {
		t.Helper()
		pawl := p.command()
		sdk := filepath.Join(packages, "node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js")
		node := exec.CommandContext(t.Context(), filepath.Join(packages, "node_modules/.bin/node"), append([]string{script, sdk, pawl.Path, p.dir}, session...)...)
		node.Dir, node.Env = p.dir, pawl.Env
		var stderr strings.Builder
		node.Stderr = &stderr
		out, err := node.Output()
		if err != nil {
			t.Fatalf("%v: %s %s", err, out, stderr.String())
		}
		return strings.TrimSpace(string(out))
	}
	session, sent, _ := strings.Cut(client(), "\n")
	turn := "agent_message_chunk I write it.\ntool_call fs.write a.txt edit pending\ntool_call_update completed\nagent_message_chunk Written."
	if diff := cmp.Diff("user_message_chunk Write it.\n"+turn+"\nuser_message_chunk Write it again.\n"+turn, sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(sent, client(session)); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
}

// Editors know a session from the answer that creates it, and drop what comes before.
func TestTheCommandsOfASessionComeAfterItsAnswer(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": slowly, "script.yaml": "- text: Done.\n"})
	c := p.acp()
	for i := range 3 {
		c.send(10+i, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, p.dir))
		if f := c.next(); f.ID != 10+i || f.Result.SessionID == "" {
			t.Errorf("the first frame is %+v", f)
		}
		if f := c.next(); f.Params.Update.SessionUpdate != "available_commands_update" {
			t.Errorf("the second frame is %+v", f)
		}
	}
	_ = c.in.Close()
	_ = c.process.Wait()
}

// An editor, or a script, may close stdin behind its last request.
func TestRequestsBeforeTheEndOfTheInputAreAnswered(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": slowly, "script.yaml": "- {text: slow, delay: 1h}\n"})
	for i := range 3 {
		c := p.acp()
		session := c.begin()
		c.send(3, "session/list", "{}")
		if i == 2 {
			c.send(4, "session/prompt", promptOf(session, "Work."))
		}
		_ = c.in.Close()
		answered := map[int]bool{}
		for c.out.Scan() {
			var f acpFrame
			if err := json.Unmarshal(c.out.Bytes(), &f); err != nil {
				t.Fatalf("no frame on stdout: %s", c.out.Text())
			}
			answered[f.ID] = answered[f.ID] || f.Method == ""
		}
		if !answered[3] || answered[4] != (i == 2) {
			t.Errorf("the answered requests are %v", answered)
		}
		_ = c.process.Wait()
	}
}
