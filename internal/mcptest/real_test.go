package mcptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/mcp"
	"github.com/pawlrun/pawl/tool/shell"
)

// patience bounds the start of a server on a machine that has much else to do.
const patience = 2 * time.Minute

// realServers are the packages of servers that many people use.
var realServers = []string{
	"@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31", "@modelcontextprotocol/server-memory@2026.8.31",
	"@playwright/mcp@0.0.83", "chrome-devtools-mcp@1.11.0",
}

// program is the command of a package that is installed.
func program(dir, name string, args ...string) []string {
	return append([]string{mcptest.Node(dir), filepath.Join(dir, "node_modules", ".bin", name)}, args...)
}

// connected is a server with a way to call its tools.
type connected struct {
	*mcp.Server
	t *testing.T
}

func connect(t *testing.T, o mcp.Options) connected {
	t.Helper()
	o.Server, o.StartTimeout = "real", patience
	o.Shell = shell.Options{Dir: t.TempDir(), Env: shell.Environment(os.Environ())}
	s, err := mcp.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return connected{s, t}
}

// call makes a call that gives a result, and perhaps one that is an error.
func (c connected) call(name, args string) tool.Result {
	c.t.Helper()
	r, err := c.try(name, args)
	if err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	return r
}

func (c connected) try(name, args string) (tool.Result, error) {
	c.t.Helper()
	tools := c.Tools()
	i := slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Name == "real."+name })
	if i < 0 {
		c.t.Fatalf("there is no tool %s", name)
	}
	return tools[i].Run(c.t.Context(), tool.Call{ID: "c1", Key: "k1", Attempt: 1, Args: json.RawMessage(args), Run: away{}})
}

func TestRealServersCanBeUsed(t *testing.T) {
	dir := mcptest.Packages(t, realServers...)
	for name, test := range map[string]func(t *testing.T){
		"everything": func(t *testing.T) {
			everything(connect(t, mcp.Options{Command: program(dir, "mcp-server-everything"), Sampling: answered}))
		},
		"everything over HTTP": func(t *testing.T) { everything(connect(t, mcp.Options{URL: overHTTP(t, dir), Sampling: answered})) },
		"filesystem":           func(t *testing.T) { filesystem(t, dir) },
		"memory":               func(t *testing.T) { memory(t, dir) },
		"playwright":           func(t *testing.T) { lists(t, program(dir, "playwright-mcp"), "browser_navigate", 25) },
		"chrome-devtools":      func(t *testing.T) { lists(t, program(dir, "chrome-devtools-mcp"), "navigate_page", 32) },
	} {
		t.Run(name, test)
	}
}

// away is a run in which a model answers, and no person is there.
type away struct{ agreeable }

func (away) Ask(_ context.Context, f event.Form) (event.FormAnswer, error) {
	return event.FormAnswer{}, &tool.InputRequired{Form: f}
}

// answered lets a model answer the server.
var answered = &mcp.Sampling{Agent: "real.sampling", Model: "test/small", USD: 1}

// everything calls tools of the server that has one of each sort, twice.
func everything(c connected) {
	c.t.Helper()
	for i := range 2 {
		message := fmt.Sprint("hello ", i)
		if r := c.call("echo", fmt.Sprintf(`{"message":%q}`, message)); !strings.Contains(r.Output, message) {
			c.t.Errorf("echo gives %+v", r)
		}
		if r := c.call("get-sum", fmt.Sprintf(`{"a":%d,"b":40}`, i)); !strings.Contains(r.Output, fmt.Sprint(40+i)) {
			c.t.Errorf("get-sum gives %+v", r)
		}
		if r := c.call("get-tiny-image", `{}`); len(r.Media) != 1 || r.Media[0].MediaType != "image/png" || len(r.Media[0].Data) == 0 {
			c.t.Errorf("get-tiny-image gives %+v", r)
		}
		if r := c.call("get-structured-content", `{"location":"Chicago"}`); r.IsError || !strings.Contains(string(r.Structured), "temperature") || strings.Count(r.Output, "temperature") != 1 {
			c.t.Errorf("get-structured-content gives %+v", r)
		}
		if r := c.call("trigger-sampling-request", `{"prompt":"Why?","maxTokens":10}`); !strings.Contains(r.Output, "an answer") || !strings.Contains(r.Output, "test/small") {
			c.t.Errorf("trigger-sampling-request gives %+v", r)
		}
		if r := c.call("get-resource-reference", `{"resourceType":"Blob","resourceId":1}`); len(r.Media) != 1 {
			c.t.Errorf("get-resource-reference gives %+v", r)
		}
		if r := c.call("resources", `{}`); !strings.Contains(r.Output, `"uri":"demo://`) || !strings.Contains(r.Output, `"uriTemplate":"demo://`) {
			c.t.Errorf("resources gives %+v", r)
		}
		if r := c.call("resources", fmt.Sprintf(`{"uri":"demo://resource/dynamic/text/%d"}`, i+1)); !strings.Contains(r.Output, fmt.Sprint("Resource ", i+1)) {
			c.t.Errorf("a resource is %+v", r)
		}
		if r := c.call("prompts", `{"name":"args-prompt","arguments":{"city":"Bonn"}}`); !strings.Contains(r.Output, "Bonn") {
			c.t.Errorf("a prompt is %+v", r)
		}
		if r := c.call("get-sum", `{"a":"one","b":2}`); !r.IsError {
			c.t.Errorf("a wrong argument gives %+v", r)
		}
		if r, err := c.try("trigger-elicitation-request", `{}`); !errors.As(err, new(*tool.InputRequired)) {
			c.t.Errorf("trigger-elicitation-request gives %+v, %v", r, err)
		}
	}
}

// overHTTP starts the server over HTTP, and gives its address.
func overHTTP(t *testing.T, dir string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().(*net.TCPAddr)
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	argv := program(dir, "mcp-server-everything", "streamableHttp")
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprint("PORT=", address.Port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for {
		open, err := net.Dial("tcp", address.String())
		if err == nil {
			_ = open.Close()
			return fmt.Sprintf("http://%s/mcp", address)
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the server does not listen")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// filesystem works in its root, which is the client's, and nowhere else. A client without
// roots leaves it to its arguments.
func filesystem(t *testing.T, dir string) {
	argument, root := t.TempDir(), t.TempDir()
	for name, c := range map[string]struct {
		roots          []string
		inside, beside string
	}{"with roots": {[]string{root}, root, argument}, "without roots": {nil, argument, root}} {
		s := connect(t, mcp.Options{Command: program(dir, "mcp-server-filesystem", argument), Roots: c.roots})
		// The server asks for the roots once it has been told that the client is ready.
		for !strings.Contains(s.call("list_allowed_directories", `{}`).Output, c.inside) {
			select {
			case <-t.Context().Done():
				t.Fatalf("%s: the server does not work in %s", name, c.inside)
			case <-time.After(10 * time.Millisecond):
			}
		}
		for i := range 2 {
			file := filepath.Join(c.inside, fmt.Sprintf("%d.txt", i))
			if r := s.call("write_file", fmt.Sprintf(`{"path":%q,"content":"text %d"}`, file, i)); r.IsError {
				t.Errorf("%s: write_file gives %+v", name, r)
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != fmt.Sprint("text ", i) {
				t.Errorf("%s: the file has %q, %v", name, text, err)
			}
			if r := s.call("read_text_file", fmt.Sprintf(`{"path":%q}`, file)); !strings.Contains(r.Output, fmt.Sprint("text ", i)) {
				t.Errorf("%s: read_text_file gives %+v", name, r)
			}
		}
		if r := s.call("write_file", fmt.Sprintf(`{"path":%q,"content":"x"}`, filepath.Join(c.beside, "beside.txt"))); !r.IsError {
			t.Errorf("%s: to write beside gives %+v", name, r)
		}
	}
}

// memory finds in a second process what the first one kept.
func memory(t *testing.T, dir string) {
	o := mcp.Options{Command: program(dir, "mcp-server-memory"), Env: []string{"MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "memory.jsonl")}}
	for i := range 2 {
		s := connect(t, o)
		if r := s.call("create_entities", fmt.Sprintf(`{"entities":[{"name":"Ann %d","entityType":"person","observations":["likes tea"]}]}`, i)); r.IsError {
			t.Errorf("create_entities gives %+v", r)
		}
		if r := s.call("read_graph", `{}`); strings.Count(r.Output, "likes tea") != i+1 {
			t.Errorf("process %d: read_graph gives %+v", i, r)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// lists holds a server that needs a browser to the tools that it lists.
func lists(t *testing.T, command []string, one string, most int) {
	s := connect(t, mcp.Options{Command: command})
	tools := s.Tools()
	if n := len(tools); n != most || !slices.ContainsFunc(tools, func(t tool.Tool) bool { return t.Name == "real."+one }) {
		t.Errorf("it offers %d tools, want %d with %s", n, most, one)
	}
}
