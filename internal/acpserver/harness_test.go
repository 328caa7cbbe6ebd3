package acpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/acpserver"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/guidance"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/journal"
)

// ann is the user of the editor.
func ann() event.Principal {
	return event.Principal{Name: "ann", Role: "admin", Proof: event.ProofUser}
}

// agentFile asks before it writes.
const agentFile = `
identity: {name: coder}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: [fs.read, fs.write]
  approvals: {fs.write: always}
`

// editor is the client of a server, as an editor is one.
type editor struct {
	*acp.ClientSideConnection
	t          *testing.T
	dir        string
	controller *control.Controller
	store      journal.Store
	// ask answers permission requests; nil cancels them.
	ask func(acp.RequestPermissionRequest) acp.PermissionOptionId

	mu      sync.Mutex
	updates []string
	// asked are the permission requests: their order among the updates is not kept.
	asked []string
	// others are the updates that are no part of the transcript.
	others []string
	// buffers are texts that are not saved, by path, and files what the server did with them.
	buffers map[string]string
	files   []string
	// terminals is what each terminal shows.
	terminals map[string]string
	// changed receives after an update.
	changed chan struct{}
	quit    func()
}

// start starts a server on a journal, for the files of a directory.
func start(t *testing.T, store journal.Store, dir, script string) *editor {
	t.Helper()
	for name, text := range map[string]string{"agent.yaml": agentFile, "script.yaml": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := engine.New(store, versions.Make, engine.Options{})
	c := &editor{t: t, dir: dir, controller: control.New(store, e), store: store, terminals: map[string]string{}, changed: make(chan struct{}, 1)}
	s := acpserver.New(acpserver.Options{
		Host: &sessions.Host{
			Store: store, Engine: e, Controller: c.controller, User: ann(), Launch: launch.Options{Flags: launch.Flags{Dir: dir}},
			File: func() (kinds.File, error) { return kinds.Read(filepath.Join(dir, "agent.yaml")) },
		},
		Trust: guidance.Trust{Dir: filepath.Join(dir, "state")}, Command: "pawl", Version: "test",
	})
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), in, out) }()
	c.ClientSideConnection = acp.NewClientSideConnection(c, toServer, fromServer)
	c.quit = sync.OnceFunc(func() {
		_ = toServer.Close()
		_ = fromServer.Close()
		if err := <-done; err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	t.Cleanup(c.quit)
	if _, err := c.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber}); err != nil {
		t.Fatal(err)
	}
	return c
}

// RequestPermission implements [acp.Client].
func (c *editor) RequestPermission(_ context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	c.mu.Lock()
	c.asked = append(c.asked, *r.ToolCall.Title)
	c.mu.Unlock()
	if c.ask == nil {
		return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
	}
	if option := c.ask(r); option != "" {
		return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(option)}, nil
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
}

// SessionUpdate implements [acp.Client].
func (c *editor) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	switch u := n.Update; {
	case u.UserMessageChunk != nil:
		c.saw("user: %s", u.UserMessageChunk.Content.Text.Text)
	case u.AgentMessageChunk != nil:
		c.saw("agent: %s", u.AgentMessageChunk.Content.Text.Text)
	case u.AgentThoughtChunk != nil:
		c.saw("thought: %s", u.AgentThoughtChunk.Content.Text.Text)
	case u.AvailableCommandsUpdate != nil:
		c.noted("commands " + string(n.SessionId) + " " + u.AvailableCommandsUpdate.AvailableCommands[0].Name)
	case u.Plan != nil:
		var steps []string
		for _, e := range u.Plan.Entries {
			steps = append(steps, e.Content+" "+string(e.Status))
		}
		c.noted("plan " + strings.Join(steps, ", "))
	case u.CurrentModeUpdate != nil:
		c.noted("mode " + string(u.CurrentModeUpdate.CurrentModeId))
	case u.UsageUpdate != nil:
		c.noted(fmt.Sprintf("usage %t of %d", u.UsageUpdate.Used > 0, u.UsageUpdate.Size))
	case u.ToolCallUpdate != nil && len(u.ToolCallUpdate.Meta) > 0 || u.ToolCall != nil && len(u.ToolCall.Meta) > 0:
		c.inTerminal(u)
	case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status != nil && *u.ToolCallUpdate.Status == acp.ToolCallStatusInProgress:
		c.noted("output " + u.ToolCallUpdate.Content[0].Content.Content.Text.Text)
	case u.ToolCall != nil:
		c.saw("%s %s %s", u.ToolCall.Status, u.ToolCall.Kind, u.ToolCall.Title)
	case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status != nil:
		c.saw("%s", *u.ToolCallUpdate.Status)
	}
	return nil
}

// inTerminal keeps the output of a terminal, as an editor shows it.
func (c *editor) inTerminal(u acp.SessionUpdate) {
	text, err := json.Marshal(u)
	if err != nil {
		c.t.Error(err)
	}
	var d struct {
		Meta struct {
			Info *struct {
				ID  string `json:"terminal_id"`
				Cwd string
			} `json:"terminal_info"`
			Output *struct {
				ID   string `json:"terminal_id"`
				Data string
			} `json:"terminal_output"`
			Exit *struct {
				Code *int `json:"exit_code"`
			} `json:"terminal_exit"`
		} `json:"_meta"`
		Content []struct{ TerminalID string }
		Status  string
	}
	if err := json.Unmarshal(text, &d); err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := d.Meta; m.Info != nil && (m.Info.ID != d.Content[0].TerminalID || m.Info.Cwd != c.dir) {
		c.t.Errorf("a terminal begins with %s", text)
	}
	if d.Meta.Output != nil {
		c.terminals[d.Meta.Output.ID] += d.Meta.Output.Data
		c.others = append(c.others, "terminal "+c.terminals[d.Meta.Output.ID])
	}
	if m := d.Meta.Exit; m != nil {
		code := "none"
		if m.Code != nil {
			code = strconv.Itoa(*m.Code)
		}
		c.others = append(c.others, d.Status+" "+code)
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

func (c *editor) saw(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	// Chunks of one message are one text.
	if n := len(c.updates); n > 0 && strings.HasPrefix(text, "agent: ") && strings.HasPrefix(c.updates[n-1], "agent: ") {
		c.updates[n-1] += strings.TrimPrefix(text, "agent: ")
	} else {
		c.updates = append(c.updates, text)
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// noted keeps an update that is no part of the transcript.
func (c *editor) noted(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others = append(c.others, text)
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// awaitNoted waits until such an update has come, and forgets it.
func (c *editor) awaitNoted(text string) {
	c.t.Helper()
	for {
		c.mu.Lock()
		at := slices.Index(c.others, text)
		if at >= 0 {
			c.others = slices.Delete(c.others, at, at+1)
		}
		c.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-c.changed:
		case <-c.t.Context().Done():
			c.t.Fatalf("the update %q has not come", text)
		}
	}
}

// transcript returns the updates since it was last called.
func (c *editor) transcript() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.Join(c.updates, "\n")
	c.updates = nil
	return text
}

// questions returns the permission requests since it was last called.
func (c *editor) questions() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.Join(c.asked, "\n")
	c.asked = nil
	return text
}

// await waits until an update has a text.
func (c *editor) await(text string) {
	c.t.Helper()
	for {
		c.mu.Lock()
		found := slices.ContainsFunc(c.updates, func(u string) bool { return strings.Contains(u, text) })
		c.mu.Unlock()
		if found {
			return
		}
		select {
		case <-c.changed:
		case <-c.t.Context().Done():
			c.t.Fatalf("no update has %q", text)
		}
	}
}

// until waits until the first run of a session meets a condition.
func (c *editor) until(id acp.SessionId, holds func(journal.Run) bool) {
	c.t.Helper()
	watch := c.store.Watch(c.t.Context())
	for {
		if row, err := c.store.Run(c.t.Context(), string(id)); err == nil && holds(row) {
			return
		}
		select {
		case <-watch:
		case <-c.t.Context().Done():
			c.t.Fatal("the run does not meet the condition")
		}
	}
}

func (c *editor) begin() acp.SessionId {
	c.t.Helper()
	s, err := c.NewSession(c.t.Context(), acp.NewSessionRequest{Cwd: c.dir, McpServers: []acp.McpServer{}})
	if err != nil {
		c.t.Fatal(err)
	}
	return s.SessionId
}

func (c *editor) say(id acp.SessionId, text string) acp.StopReason {
	c.t.Helper()
	r, err := c.Prompt(c.t.Context(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
	if err != nil {
		c.t.Fatal(err)
	}
	return r.StopReason
}

func (c *editor) load(id acp.SessionId) {
	c.t.Helper()
	if _, err := c.LoadSession(c.t.Context(), acp.LoadSessionRequest{SessionId: id, Cwd: c.dir, McpServers: []acp.McpServer{}}); err != nil {
		c.t.Fatal(err)
	}
}

// ReadTextFile implements [acp.Client].
func (c *editor) ReadTextFile(_ context.Context, q acp.ReadTextFileRequest) (r acp.ReadTextFileResponse, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := filepath.Base(q.Path)
	c.files = append(c.files, "read "+name)
	if text, is := c.buffers[q.Path]; is {
		return acp.ReadTextFileResponse{Content: text}, nil
	}
	return r, acp.NewInvalidParams("no buffer has " + name)
}

// WriteTextFile implements [acp.Client]. It saves the file, as editors do.
func (c *editor) WriteTextFile(_ context.Context, q acp.WriteTextFileRequest) (r acp.WriteTextFileResponse, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = append(c.files, "write "+filepath.Base(q.Path))
	c.buffers[q.Path] = q.Content
	return r, os.WriteFile(q.Path, []byte(q.Content), 0o600)
}

// The other methods of [acp.Client], which the server does not call.

func (*editor) CreateTerminal(context.Context, acp.CreateTerminalRequest) (r acp.CreateTerminalResponse, err error) {
	return r, acp.NewMethodNotFound("")
}

func (*editor) KillTerminal(context.Context, acp.KillTerminalRequest) (r acp.KillTerminalResponse, err error) {
	return r, acp.NewMethodNotFound("")
}

func (*editor) TerminalOutput(context.Context, acp.TerminalOutputRequest) (r acp.TerminalOutputResponse, err error) {
	return r, acp.NewMethodNotFound("")
}

func (*editor) ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (r acp.ReleaseTerminalResponse, err error) {
	return r, acp.NewMethodNotFound("")
}

func (*editor) WaitForTerminalExit(context.Context, acp.WaitForTerminalExitRequest) (r acp.WaitForTerminalExitResponse, err error) {
	return r, acp.NewMethodNotFound("")
}
