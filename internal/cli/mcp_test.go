package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/journal"
)

// loudAgent runs commands that print much, on both streams.
const loudAgent = `
identity: {name: loud}
tools: {allow: [shell.exec], approvals: {shell.exec: never}, permissions: {}}
model_policy: {primary: {model: scripted/script.yaml}}
hooks: {before_tool: [{command: "seq 1000 >&2"}]}
`

// mcpClient is the client of a process that speaks MCP.
type mcpClient struct {
	project
	process *startedProcess
	in      io.WriteCloser
	out     *bufio.Scanner
}

// piped starts a command that speaks a protocol on its streams, a frame on each line.
func (p project) piped(args ...string) (*startedProcess, io.WriteCloser, *bufio.Scanner) {
	p.t.Helper()
	s := &startedProcess{Cmd: p.command(args...), t: p.t, out: new(transcript), err: new(transcript)}
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
	frames := bufio.NewScanner(out)
	frames.Buffer(nil, 16<<20)
	return s, in, frames
}

func (p project) mcp(args ...string) mcpClient {
	p.t.Helper()
	s, in, out := p.piped(append([]string{"mcp"}, args...)...)
	c := mcpClient{p, s, in, out}
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	c.answer(0)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c mcpClient) send(frame string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, frame+"\n"); err != nil {
		c.t.Fatalf("%v: %s", err, c.process.err)
	}
}

// mcpFrame is what a process that speaks MCP prints.
type mcpFrame struct {
	JSONRPC string `json:"jsonrpc"`
	ID      *int
	Method  string
	Result  struct {
		Meta    map[string]any `json:"_meta"`
		Content []struct{ Text string }
		IsError bool
	}
}

// next reads a line, which must be a frame.
func (c mcpClient) next() (f mcpFrame, more bool) {
	c.t.Helper()
	if !c.out.Scan() {
		return f, false
	}
	if err := json.Unmarshal(c.out.Bytes(), &f); err != nil || f.JSONRPC != "2.0" {
		c.t.Fatalf("stdout carries a line that is no frame: %s", c.out.Text())
	}
	return f, true
}

// answer reads up to the answer to a request.
func (c mcpClient) answer(id int) mcpFrame {
	c.t.Helper()
	for {
		f, more := c.next()
		if !more {
			c.t.Fatalf("there is no answer to %d: %s", id, c.process.err)
		}
		if f.Method == "" && f.ID != nil && *f.ID == id {
			return f
		}
	}
}

func (c mcpClient) call(id int, tool, key string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"task":"go"},"_meta":{"progressToken":%d,"io.github.pawlrun/idempotencyKey":"%s"}}}`, id, tool, id, key))
}

// end closes stdin and reads what is left on stdout.
func (c mcpClient) end() {
	c.t.Helper()
	if err := c.in.Close(); err != nil {
		c.t.Fatal(err)
	}
	for more := true; more; {
		_, more = c.next()
	}
	if err := c.process.Cmd.Wait(); err != nil {
		c.t.Errorf("pawl mcp ends with %v: %s", err, c.process.err)
	}
}

func TestStdoutOfMCPCarriesNothingButFrames(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  loudAgent,
		"script.yaml": shellTurn("seq 100000; seq 100000 >&2; echo '{ jsonrpc'") + shellTurn("echo ran >> ran; printf 'no newline at the end'") + "- text: the end\n",
		"broken.yaml": "identity: {name: broken\n",
	})
	c := p.mcp()
	for id := 1; id <= 2; id++ {
		c.call(id, "loud", fmt.Sprint("k", id))
		if f := c.answer(id); f.Result.IsError || f.Result.Content[0].Text != "the end" {
			t.Errorf("the call gives %+v", f.Result)
		}
	}
	c.end()
	if text := p.read("ran"); text != "ran\nran\n" {
		t.Errorf("the commands have not run: %q", text)
	}
	if !strings.Contains(c.process.err.String(), "broken.yaml") {
		t.Errorf("stderr does not name the file that is not offered: %s", c.process.err)
	}
}

func TestACallOfMCPIsOneRunAcrossAKill(t *testing.T) {
	for round := range 2 {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			p := newProject(t, map[string]string{
				"agent.yaml":  loudAgent,
				"script.yaml": shellTurn("echo x >> effects; touch began; while ! test -e go; do sleep 0.05; done") + shellTurn("echo y >> effects") + "- text: the end\n",
			})
			c := p.mcp()
			c.call(1, "loud", "k")
			p.eventually("the command has begun", p.exists("began"))
			if err := c.process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = c.process.Wait()
			run := p.newest()
			p.write("go", "")
			c = p.mcp()
			c.call(1, "loud", "k")
			f := c.answer(1)
			if f.Result.Meta["io.github.pawlrun/run"] != run || f.Result.IsError || f.Result.Content[0].Text != "the end" {
				t.Errorf("the call of run %s gives %+v", run, f.Result)
			}
			c.call(2, "loud", "k")
			if again := c.answer(2); again.Result.Meta["io.github.pawlrun/run"] != run {
				t.Errorf("the same call gives %+v", again.Result)
			}
			c.end()
			if text := p.read("effects"); text != "x\ny\n" {
				t.Errorf("the effects are %q", text)
			}
		})
	}
}

func TestTheInspectorListsAndCallsTheTools(t *testing.T) {
	dir := mcptest.Packages(t, "@modelcontextprotocol/inspector@0.15.0")
	p := newProject(t, map[string]string{
		"agent.yaml":  "identity: {name: speaks}\nprompt: {system: 'Speak ${language}.'}\ntools: {allow: []}\nmodel_policy: {primary: {model: scripted/script.yaml}}\n",
		"script.yaml": "- text: the end\n",
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	inspect := func(args ...string) string {
		t.Helper()
		pawl := p.command("mcp")
		words := append([]string{filepath.Join(dir, "node_modules/@modelcontextprotocol/inspector/cli/build/cli.js"), "--cli", pawl.Path}, pawl.Args[1:]...)
		c := exec.CommandContext(ctx, mcptest.Node(dir), append(words, args...)...)
		c.Dir, c.Env = pawl.Dir, append(pawl.Environ(), "PATH="+filepath.Dir(mcptest.Node(dir))+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	if out := inspect("--method", "tools/list"); !strings.Contains(out, `"name": "speaks"`) || !strings.Contains(out, `"readOnlyHint": true`) {
		t.Errorf("the inspector lists %s", out)
	}
	for range 2 {
		if out := inspect("--method", "tools/call", "--tool-name", "speaks", "--tool-arg", "task=go", "--tool-arg", "language=German"); !strings.Contains(out, `"text": "the end"`) || !strings.Contains(out, "io.github.pawlrun/run") {
			t.Errorf("the inspector gets %s", out)
		}
	}
	if run := p.newest(); p.row(run).State != journal.Ended {
		t.Errorf("run %s is %s", run, p.row(run).State)
	}
}

// The SDK's client starts pawl mcp, twice, and each process lists and calls the tool.
func TestTheClientOfTheSDKUsesPawlMCP(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  "identity: {name: speaks}\ntools: {allow: []}\nmodel_policy: {primary: {model: scripted/script.yaml}}\n",
		"script.yaml": "- text: the end\n",
	})
	for range 2 {
		client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &sdk.CommandTransport{Command: p.command("mcp")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := session.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "speaks" {
			t.Errorf("it lists %+v, %v", list, err)
		}
		r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "speaks", Arguments: map[string]any{"task": "go"}})
		if err != nil || r.IsError || len(r.Content) != 1 || r.Content[0].(*sdk.TextContent).Text != "the end" {
			t.Errorf("the call gives %+v, %v", r, err)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	if run := p.newest(); p.row(run).State != journal.Ended {
		t.Errorf("run %s is %s", run, p.row(run).State)
	}
}

func TestServeSpeaksMCPWhereThatIsWanted(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  "identity: {name: speaks}\ntools: {allow: []}\nmodel_policy: {primary: {model: scripted/script.yaml}}\n",
		"script.yaml": "- text: the end\n",
	})
	initialize := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	status := func(s served) int {
		t.Helper()
		r := s.request(http.MethodPost, "/mcp", initialize)
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	for _, tt := range []struct {
		args    []string
		command string
		status  int
	}{{[]string{"--addr", "127.0.0.1:0"}, "serve", http.StatusNotFound}, {[]string{"--addr", "127.0.0.1:0", "--mcp"}, "serve", http.StatusOK}, {[]string{"--http", "127.0.0.1:0"}, "mcp", http.StatusOK}} {
		s := p.serveBy(tt.command, tt.args)
		if got := status(s); got != tt.status {
			t.Errorf("%s %v answers %d", tt.command, tt.args, got)
		}
		if s.token = "wrong"; tt.status == http.StatusOK && status(s) != http.StatusUnauthorized {
			t.Errorf("%s %v answers a client with a wrong token", tt.command, tt.args)
		}
		s.stop()
	}
	for want, args := range map[string][]string{
		`--on-cancel "end": give park or cancel`: {"mcp", "--on-cancel", "end"}, "--tokens is for HTTP": {"mcp", "--tokens", "t.yaml"},
	} {
		if f := p.exits(2, args...); !strings.Contains(f.err, want) {
			t.Errorf("%v: %s", args, f.err)
		}
	}
}
