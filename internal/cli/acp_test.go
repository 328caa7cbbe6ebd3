package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

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
	s := &startedProcess{Cmd: p.command("acp", "--agent", "agent.yaml"), t: p.t, out: new(transcript), err: new(transcript)}
	in, err := s.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	s.Stderr = s.err
	if err := s.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.Process.Kill() })
	c := acpClient{p, s, in, bufio.NewScanner(out)}
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
			Content       struct{ Text string }
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
		text += f.Params.Update.Content.Text
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

// The process is killed while an answer streams, and its successor has the messages; so
// has a process whose editor has closed stdin.
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
