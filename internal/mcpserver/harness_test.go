package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/internal/mcpserver"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// site serves a directory of files over MCP.
type site struct {
	*mcpserver.Server
	t     *testing.T
	dir   string
	store journal.Store
	runs  *server.Server
}

// serve serves files with a journal.
func serve(t *testing.T, store journal.Store, files map[string]string, change ...func(*server.Options, *mcpserver.Options)) site {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := engine.New(store, versions.Make, engine.Options{Served: true})
	o := server.Options{
		Store: store, Engine: e, Controller: control.New(store, e), Agents: dir,
		Launch: launch.Options{Flags: launch.Flags{Workspace: dir}}, User: "ann", NoAuth: true,
	}
	m := mcpserver.Options{
		User: event.Principal{Name: "ann", Role: "admin", Proof: event.ProofUser}, OnCancel: mcpserver.Park, Version: "test", Command: "pawl",
		WriteLog: func(_ context.Context, run string, w io.Writer) error {
			_, err := fmt.Fprintln(w, "the log of", run)
			return err
		},
	}
	for _, c := range change {
		c(&o, &m)
	}
	runs, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	m.Server = runs
	s, err := mcpserver.New(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runs.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return site{s, t, dir, store, runs}
}

// pipes returns the two ends of a server on streams.
func (s site) pipes() (toServer *io.PipeWriter, fromServer *io.PipeReader) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := s.Serve(context.Background(), in, out)
		_ = out.Close()
		done <- err
	}()
	s.t.Cleanup(func() {
		_ = toServer.Close()
		go func() { _, _ = io.Copy(io.Discard, fromServer) }()
		if err := <-done; err != nil {
			s.t.Errorf("the server ends with %v", err)
		}
	})
	return toServer, fromServer
}

// connect connects the SDK's client. version is the protocol version, empty for the
// newest.
func (s site) connect(version string, o *mcp.ClientOptions) *mcp.ClientSession {
	s.t.Helper()
	w, r := s.pipes()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	session, err := c.Connect(s.t.Context(), &mcp.IOTransport{Reader: r, Writer: w}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	return session
}

// callTool calls a tool with a key, "" for none.
func (s site) callTool(session *mcp.ClientSession, name, key string, args map[string]any) (run string, r *mcp.CallToolResult) {
	s.t.Helper()
	p := &mcp.CallToolParams{Name: name, Arguments: args}
	if key != "" {
		p.Meta = mcp.Meta{mcpserver.KeyMeta: key}
	}
	r, err := session.CallTool(s.t.Context(), p)
	if err != nil {
		s.t.Fatal(err)
	}
	run, _ = r.Meta[mcpserver.RunMeta].(string)
	return run, r
}

// text returns the text of a result.
func text(r *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if t, is := c.(*mcp.TextContent); is {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// frames exchanges frames of JSON.
type frames struct {
	t       *testing.T
	w       io.Writer
	scanner *bufio.Scanner
}

func (s site) frames() frames {
	w, r := s.pipes()
	return framesOn(s.t, w, r)
}

func framesOn(t *testing.T, w io.Writer, r io.Reader) frames {
	f := frames{t, w, bufio.NewScanner(r)}
	f.scanner.Buffer(nil, 16<<20)
	return f
}

// begin initialises the protocol version with sessions.
func (f frames) begin(capabilities string) {
	f.t.Helper()
	f.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"t","version":"1"}}}`)
	f.reply(0)
	f.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (f frames) send(frame string) {
	f.t.Helper()
	if _, err := io.WriteString(f.w, frame+"\n"); err != nil {
		f.t.Fatal(err)
	}
}

// frame is a message from the server.
type frame struct {
	ID     *int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

func (f frames) next() (m frame) {
	f.t.Helper()
	if !f.scanner.Scan() {
		f.t.Fatalf("the server has closed the stream: %v", f.scanner.Err())
	}
	if err := json.Unmarshal(f.scanner.Bytes(), &m); err != nil {
		f.t.Fatalf("no frame: %s", f.scanner.Text())
	}
	return m
}

// until reads frames until one has the given method.
func (f frames) until(method string) frame {
	f.t.Helper()
	for {
		if m := f.next(); m.Method == method {
			return m
		}
	}
}

// reply reads frames until the response to a request.
func (f frames) reply(id int) frame {
	f.t.Helper()
	for {
		if m := f.next(); m.Method == "" && m.ID != nil && *m.ID == id {
			return m
		}
	}
}

func newest(t *testing.T, files map[string]string) site {
	t.Helper()
	return serve(t, memory.New(nil), files)
}

func decode[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}
