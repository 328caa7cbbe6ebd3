//lint:file-ignore SA1019 servers ask for the answers of a model, and a later protocol only advises against it

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/mcp"
	"github.com/pawlrun/pawl/tool/shell"
)

var (
	shim    sandbox.Shim
	machine = sync.OnceValue(func() *sandbox.Machine { return sandbox.Detect(context.Background(), shim) })
)

// asServer makes this program a server of the given kind.
const asServer = "PAWL_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	shim = sandbox.Main()
	switch os.Getenv(asServer) {
	case "ledger":
		mcptest.Main()
		return
	case "sdk":
		s := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "9"}, nil)
		sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "Adds."}, func(_ context.Context, _ *sdk.CallToolRequest, in struct{ A, B int }) (*sdk.CallToolResult, struct{ Sum int }, error) {
			return nil, struct{ Sum int }{in.A + in.B}, nil
		})
		s.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			f, err := os.OpenFile(os.Getenv(mcptest.LedgerVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = f.WriteString("call ask -\n")
			}
			name, named := r.Params.InputResponses["a"].(*sdk.ElicitResult)
			age, aged := r.Params.InputResponses["b"].(*sdk.ElicitResult)
			if named && aged {
				text := fmt.Sprintf("%s: name %s %v, age %s %v", r.Params.RequestState, name.Action, name.Content, age.Action, age.Content)
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, err
			}
			schema := func(field, kind string) *jsonschema.Schema {
				return &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{field: {Type: kind}}}
			}
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{
				"a": &sdk.ElicitParams{Mode: "form", Message: "Your name?", RequestedSchema: schema("name", "string")},
				"b": &sdk.ElicitParams{Mode: "form", Message: "Your age?", RequestedSchema: schema("age", "integer")},
			}, RequestState: "state-1"}, err
		})
		s.AddTool(&sdk.Tool{Name: "think", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			said, answered := r.Params.InputResponses["m"].(*sdk.CreateMessageWithToolsResult)
			if answered {
				text := fmt.Sprintf("%s: %s of %s, %s", r.Params.RequestState, said.Content[0].(*sdk.TextContent).Text, said.Model, said.StopReason)
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
			}
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"m": &sdk.CreateMessageWithToolsParams{
				MaxTokens: 50, Messages: []*sdk.SamplingMessageV2{{Role: "user", Content: []sdk.Content{&sdk.TextContent{Text: "What now?"}}}},
			}}, RequestState: "state-1"}, nil
		})
		s.AddResource(&sdk.Resource{URI: "ask:///name", Name: "name"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			if name, named := r.Params.InputResponses["a"].(*sdk.ElicitResult); named {
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "ask:///name", Text: fmt.Sprint(r.Params.RequestState, name.Content)}}}, nil
			}
			return &sdk.ReadResourceResult{InputRequests: sdk.InputRequestMap{"a": &sdk.ElicitParams{Mode: "form", Message: "Your name?"}}, RequestState: "state-1"}, nil
		})
		_ = s.Run(context.Background(), &sdk.StdioTransport{})
		return
	}
	cache, err := os.MkdirTemp("", "cache-*")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", cache)
	code := m.Run()
	os.RemoveAll(cache)
	os.Exit(code)
}

// world is a workspace with a server's program, ledger and tools.
type world struct {
	dir      string
	warnings []string
	mu       sync.Mutex
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir()}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("this system does not show a program its own file")
	}
	syscall.ForkLock.RLock() // a child that inherits the open file would keep it from being run
	err = os.WriteFile(filepath.Join(w.dir, "server"), self, 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) options(kind string, more ...string) mcp.Options {
	return mcp.Options{
		Server: "docs", Command: []string{filepath.Join(w.dir, "server")}, Shell: shell.Options{Dir: w.dir, Bare: machine().Bare()},
		Env: append([]string{asServer + "=" + kind, mcptest.LedgerVariable + "=" + w.ledgerFile(), mcptest.ToolsVariable + "=" + w.toolsFile(), "GOCOVERDIR=" + w.dir}, more...),
		Warn: func(text string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.warnings = append(w.warnings, text)
		},
	}
}

func (w *world) warned() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.warnings, "\n")
}

func (w *world) ledgerFile() string { return filepath.Join(w.dir, "ledger") }
func (w *world) toolsFile() string  { return filepath.Join(w.dir, "tools.json") }

// ledger are the lines of the ledger that begin with a word.
func (w *world) ledger(t *testing.T, word string) []string {
	t.Helper()
	text, err := os.ReadFile(w.ledgerFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, word+" ") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func (w *world) list(t *testing.T, pages ...string) {
	t.Helper()
	var text bytes.Buffer // a message is a line
	if err := json.Compact(&text, []byte("["+strings.Join(pages, ",")+"]")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.toolsFile(), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, o mcp.Options) *mcp.Server {
	t.Helper()
	s, err := mcp.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func find(t *testing.T, s *mcp.Server, name string) tool.Tool {
	t.Helper()
	for _, each := range s.Tools() {
		if each.Name == name {
			return each
		}
	}
	t.Fatalf("there is no tool %s", name)
	return tool.Tool{}
}

func call(ctx context.Context, t *testing.T, s *mcp.Server, name, args string) (tool.Result, error) {
	t.Helper()
	return find(t, s, name).Run(ctx, tool.Call{ID: "c1", Key: "key-1", Attempt: 1, Args: json.RawMessage(args)})
}

// kindOf is the type of an error for the model, and whether another attempt may cure it.
func kindOf(err error) (event.ErrorType, bool) {
	var typed *tool.Error
	errors.As(err, &typed)
	if typed == nil {
		return "", false
	}
	return typed.Type, errors.As(err, new(*tool.TransientError))
}

func TestBothRevisionsOverStdioAndHTTP(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ kind, protocol, name, tool, args, want string }{
		{"ledger", "2025-11-25", "ledger", "docs.echo", `{"text":"hi"}`, `{"text":"hi"}`},
		{"sdk", "2026-07-28", "sdk", "docs.add", `{"A":2,"B":3}`, `{"Sum":5}`},
	} {
		s := connect(t, w.options(c.kind))
		if pin := s.Pin(); pin.Protocol != c.protocol || pin.Name != c.name || pin.Server != "docs" || len(pin.Argv) != 1 {
			t.Errorf("%s is pinned as %+v", c.kind, pin)
		}
		for range 2 { // the second call of a session is one as well
			if r, err := call(t.Context(), t, s, c.tool, c.args); err != nil || r.Output != c.want || r.IsError {
				t.Errorf("%s gives %+v, %v", c.kind, r, err)
			}
		}
	}
	web := httptest.NewServer(&mcptest.Server{Ledger: w.ledgerFile() + ".web"})
	defer web.Close()
	s := connect(t, mcp.Options{Server: "web", URL: web.URL})
	if r, err := call(t.Context(), t, s, "web.echo", `{"text":"hi"}`); err != nil || r.Output != `{"text":"hi"}` {
		t.Errorf("over HTTP it gives %+v, %v", r, err)
	}
	if lines := w.ledger(t, "call"); len(lines) != 2 || lines[0] != `call echo key-1 {"text":"hi"}` {
		t.Errorf("the calls are %q", lines)
	}
}

func TestToolIsAssumedToBeDangerous(t *testing.T) {
	w := newWorld(t)
	w.list(t, `{"tools":[
		{"name":"plain","inputSchema":{"type":"object"}},
		{"name":"reader","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":true}},
		{"name":"breaker","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}]}`)
	o := w.options("ledger")
	for _, each := range connect(t, o).Tools() {
		if each.Effect != event.EffectAtMostOnce || each.Risk != event.RiskUnknown || each.ReadOnly || *each.Labels != (event.Labels{Untrusted: true, Private: true, Outgoing: true}) {
			t.Errorf("%s is believed to be %+v", each.Name, each)
		}
	}
	o.TrustHints = true
	s := connect(t, o)
	if r := find(t, s, "docs.reader"); !r.ReadOnly || r.Effect != event.EffectIdempotent || r.Risk != event.RiskRead {
		t.Errorf("a trusted reader is %+v", r)
	}
	if b := find(t, s, "docs.breaker"); b.ReadOnly || b.Risk != event.RiskDelete || b.Effect != event.EffectAtMostOnce {
		t.Errorf("a trusted breaker is %+v", b)
	}
	if !strings.Contains(string(s.Pin().Tools[2].Definition), `"readOnlyHint":true`) {
		t.Errorf("the hint is not pinned: %s", s.Pin().Tools[2].Definition)
	}
}

func TestListIsReadToItsEndWithinBounds(t *testing.T) {
	w := newWorld(t)
	w.list(t, `{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"1"}`, `{"tools":[{"name":"b","inputSchema":{"type":"object"}}]}`)
	if s := connect(t, w.options("ledger")); len(s.Tools()) != 2 {
		t.Errorf("of two pages there are the tools %v", s.Pin().Tools)
	}
	many := func(n int, description string) string {
		var tools []string
		for i := range n {
			tools = append(tools, fmt.Sprintf(`{"name":"t%d","description":%q,"inputSchema":{"type":"object"}}`, i, description))
		}
		return `{"tools":[` + strings.Join(tools, ",") + `]}`
	}
	pages := make([]string, 101)
	for i := range pages {
		pages[i] = fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, i+1)
	}
	for name, c := range map[string]struct {
		pages []string
		more  string
		want  string
	}{
		"a cursor that is repeated": {more: mcptest.StartVariable + "=cursor", want: "cursor"},
		"pages":                     {pages: pages, want: "100 pages"},
		"tools":                     {pages: []string{many(1001, "")}, want: "1000 tools"},
		"bytes":                     {pages: []string{many(300, strings.Repeat("x", 4000))}, want: "1 MiB"},
		"a name twice":              {pages: []string{`{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object"}}]}`}, want: "twice"},
	} {
		w.list(t, c.pages...)
		_, err := mcp.Connect(t.Context(), w.options("ledger", c.more))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "docs") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestToolThatCannotBeOfferedIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.list(t, `{"tools":[{"name":"good","inputSchema":{"type":"object"}},{"name":"array","inputSchema":{"type":"array"}},
		{"name":"broken","inputSchema":{"type":"object","properties":{"a":{"type":"nothing"}}}},{"name":"out","inputSchema":{"type":"object"},"outputSchema":{"type":7}}]}`)
	s := connect(t, w.options("ledger"))
	if tools := s.Tools(); len(tools) != 1 || tools[0].Name != "docs.good" {
		t.Errorf("it offers %v", tools)
	}
	for _, name := range []string{"docs.array", "docs.broken", "docs.out"} {
		if !strings.Contains(w.warned(), name) {
			t.Errorf("no warning names %s: %s", name, w.warned())
		}
	}
}

func TestTextsOfAServerAreCleaned(t *testing.T) {
	w := newWorld(t)
	w.list(t, `{"tools":[{"name":"a","description":"one\u200btwo\u0007\u202ethree `+strings.Repeat("x", 3000)+`","inputSchema":{"type":"object","properties":{"p":{"type":"string","description":"in\u200bside"}}}}]}`)
	a := find(t, connect(t, w.options("ledger")), "docs.a")
	if !strings.HasPrefix(a.Description, "onetwothree x") || len([]rune(a.Description)) != 2048 || !strings.Contains(string(a.Schema), `"inside"`) {
		t.Errorf("the model reads %.40q (%d) and %s", a.Description, len([]rune(a.Description)), a.Schema)
	}
}

// One attempt is one call on the wire, whatever becomes of its answer.
func TestOneAttemptIsOneCall(t *testing.T) {
	for _, hints := range []string{"", `{"idempotentHint":false}`, `{"idempotentHint":true}`, `{"readOnlyHint":true}`, `{"readOnlyHint":true,"idempotentHint":true}`, `{"destructiveHint":true}`} {
		t.Run(hints, func(t *testing.T) {
			t.Parallel()
			listed := func(names ...string) string {
				var tools []string
				for _, name := range names {
					one := fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}`, name)
					if hints != "" {
						one += `,"annotations":` + hints
					}
					tools = append(tools, one+"}")
				}
				return `{"tools":[` + strings.Join(tools, ",") + `]}`
			}
			w := newWorld(t)
			w.list(t, listed("exit", "echo"))
			lost(t, w, connect(t, w.options("ledger")), "exit", event.ErrorInDoubt)
			for name, kind := range map[string]event.ErrorType{"reset": event.ErrorInDoubt, "cut": event.ErrorInDoubt, "gateway": event.ErrorInDoubt, "moved": event.ErrorInDoubt, "gone": event.ErrorTool, "bad": event.ErrorInDoubt} {
				w := newWorld(t)
				w.list(t, listed(name, "echo"))
				web := httptest.NewServer(&mcptest.Server{Ledger: w.ledgerFile(), ToolsFile: w.toolsFile()})
				defer web.Close()
				lost(t, w, connect(t, mcp.Options{Server: "docs", URL: web.URL, Headers: map[string]string{"Idempotency-Key": "of the owner's"}}), name, kind)
			}
		})
	}
}

// lost makes a call whose answer is lost, and then one that works.
func lost(t *testing.T, w *world, s *mcp.Server, name string, want event.ErrorType) {
	t.Helper()
	if r, err := call(t.Context(), t, s, "docs.echo", `{}`); err != nil {
		t.Fatalf("%s: before, it gives %+v, %v", name, r, err)
	}
	_, err := call(t.Context(), t, s, "docs."+name, `{}`)
	if kind, again := kindOf(err); kind != want || !again {
		t.Errorf("%s: the call fails as %q (again: %v), %v", name, kind, again, err)
	}
	if lines := w.ledger(t, "call "+name); len(lines) != 1 || !strings.Contains(lines[0], "key-1") {
		t.Errorf("%s: the server had the calls %q", name, lines)
	}
	if r, err := call(t.Context(), t, s, "docs.echo", `{}`); err != nil || r.Output != "{}" {
		t.Errorf("%s: the next call gives %+v, %v", name, r, err)
	}
	if lines := w.ledger(t, "call echo"); len(lines) != 2 {
		t.Errorf("%s: the other calls are %q", name, lines)
	}
}

// A call that asks for input is not made again by the library.
func TestCallThatAsksIsMadeOnce(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("sdk"))
	for i := range 2 {
		_, err := call(t.Context(), t, s, "docs.ask", `{}`)
		if !errors.As(err, new(*tool.InputRequired)) {
			t.Errorf("it fails as %v", err)
		}
		if n := len(w.ledger(t, "call ask")); n != i+1 {
			t.Errorf("%d calls are %d on the wire", i+1, n)
		}
	}
}

func TestProgramIsStartedAgainThreeTimes(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger"))
	for range 4 {
		if _, err := call(t.Context(), t, s, "docs.exit", `{}`); err == nil {
			t.Fatal("a call without an answer has a result")
		}
	}
	_, err := call(t.Context(), t, s, "docs.echo", `{}`)
	if kind, _ := kindOf(err); kind != event.ErrorUnavailable || !strings.Contains(err.Error(), "ended 4 times") {
		t.Errorf("after four ends a call fails as %v", err)
	}
	if n := len(w.ledger(t, "call exit")); n != 4 {
		t.Errorf("4 calls are %d on the wire", n)
	}
}

func TestLineThatIsNoMessageIsAWarning(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger"))
	for range 2 {
		if r, err := call(t.Context(), t, s, "docs.chatty", `{}`); err != nil || r.Output != "{}" {
			t.Errorf("it gives %+v, %v", r, err)
		}
	}
	if n := strings.Count(w.warned(), "Listening for requests"); n != 2 {
		t.Errorf("the warnings are %s", w.warned())
	}
}

func TestMessageThatIsTooLongEndsItsCall(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger"))
	for range 2 {
		_, err := call(t.Context(), t, s, "docs.big", `{}`)
		if err == nil || !strings.Contains(err.Error(), "16 MiB") {
			t.Errorf("it fails as %v", err)
		}
		if r, err := call(t.Context(), t, s, "docs.echo", `{}`); err != nil || r.Output != "{}" {
			t.Errorf("the next call gives %+v, %v", r, err)
		}
	}
	if len(w.ledger(t, "call big")) != 2 || strings.Contains(w.warned(), "no message") {
		t.Errorf("the server ended, or %s", w.warned())
	}
}

func TestCancelledCallReturnsAndTheServerLives(t *testing.T) {
	w := newWorld(t)
	s := connect(t, w.options("ledger"))
	for i := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := call(ctx, t, s, "docs.silent", `{}`)
			done <- err
		}()
		eventually(t, func() bool { return len(w.ledger(t, "call silent")) == i+1 })
		if r, err := call(t.Context(), t, s, "docs.echo", `{}`); err != nil || r.Output != "{}" {
			t.Errorf("beside it, a call gives %+v, %v", r, err)
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("a cancelled call has a result")
		}
		eventually(t, func() bool { return len(w.ledger(t, "cancelled")) == i+1 })
	}
	if r, err := call(t.Context(), t, s, "docs.echo", `{}`); err != nil || r.Output != "{}" {
		t.Errorf("afterwards, a call gives %+v, %v", r, err)
	}
}

func TestSilenceEndsACallAndProgressDoesNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options("ledger")
	o.Timeout = 4 * time.Second // progress comes for longer than that
	s := connect(t, o)
	if r, err := call(t.Context(), t, s, "docs.progress", `{}`); err != nil || r.Output != "{}" {
		t.Errorf("with progress it gives %+v, %v", r, err)
	}
	_, err := call(t.Context(), t, s, "docs.silent", `{}`)
	if kind, again := kindOf(err); kind != event.ErrorTimeout || again {
		t.Errorf("a silent call fails as %v", err)
	}
	eventually(t, func() bool { return len(w.ledger(t, "cancelled")) == 1 })
}

func eventually(t *testing.T, f func() bool) {
	t.Helper()
	for !f() {
		select {
		case <-t.Context().Done():
			t.Fatal("it does not come to that")
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func TestResultsAreForTheModel(t *testing.T) {
	w := newWorld(t)
	w.list(t, mcptest.Tools)
	s := connect(t, w.options("ledger"))
	for args, want := range map[string]string{
		`{}`: "see below\n{\"temperature\":21}", `{"text":"error"}`: "no sensor\n{\"temperature\":21}", `{"text":"held"}`: `{ "temperature": 21 }`,
	} {
		r, err := call(t.Context(), t, s, "docs.structured", args)
		if err != nil || r.Output != want || r.IsError != strings.Contains(args, "error") || string(r.Structured) != `{"temperature":21}` {
			t.Errorf("%s: structured content is %+v, %v", args, r, err)
		}
	}
	if r, err := call(t.Context(), t, s, "docs.error", `{}`); err != nil || !r.IsError || r.Output != "it is broken" {
		t.Errorf("an error is %+v, %v", r, err)
	}
	if _, err := call(t.Context(), t, s, "docs.refuse", `{}`); err == nil || !strings.Contains(err.Error(), "such a call is not taken") || errors.As(err, new(*tool.TransientError)) {
		t.Errorf("a refusal is %v", err)
	}
	r, err := call(t.Context(), t, s, "docs.media", `{}`)
	if err != nil || r.Output != "a dot\n[page](https://example.com/p)" || len(r.Media) != 2 || r.Media[0].MediaType != "image/png" || len(r.Media[0].Data) != 8 || r.Media[1].Name != "b.pdf" || string(r.Media[1].Data) != "%PDF" {
		t.Errorf("media are %+v, %v", r, err)
	}
	w.list(t, `{"tools":[{"name":"structured","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"temperature":{"type":"string"}}}}]}`)
	r, err = call(t.Context(), t, connect(t, w.options("ledger")), "docs.structured", `{}`)
	if err != nil || !r.IsError || !strings.Contains(r.Output, "see below") || !strings.Contains(r.Output, "outputSchema") {
		t.Errorf("a result that breaks its schema is %+v, %v", r, err)
	}
}

func TestStartThatFailsSaysWhy(t *testing.T) {
	w := newWorld(t)
	_, err := mcp.Connect(t.Context(), w.options("ledger", mcptest.StartVariable+"=exit"))
	// A program built for coverage adds a line of its own, so that 10 may be cut.
	if err == nil || !strings.Contains(err.Error(), "reason 29") || !strings.Contains(err.Error(), "reason 11\n") || strings.Contains(err.Error(), "reason 9\n") {
		t.Errorf("a program that ends is %v", err)
	}
	o := w.options("ledger", mcptest.StartVariable+"=hang")
	o.StartTimeout = 200 * time.Millisecond
	if _, err = mcp.Connect(t.Context(), o); err == nil || !strings.Contains(err.Error(), "not ready after 200ms") {
		t.Errorf("a program that hangs is %v", err)
	}
	o.Command = []string{"no-such-program"}
	if _, err = mcp.Connect(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a program that is not there is %v", err)
	}
}

func TestChangedToolIsRefusedAndOthersAreNot(t *testing.T) {
	w := newWorld(t)
	before := `{"tools":[{"name":"changed","description":"old","inputSchema":{"type":"object"}},{"name":"gone","inputSchema":{"type":"object"}},{"name":"echo","inputSchema":{"type":"object"}}]}`
	after := `{"tools":[{"name":"changed","description":"new","inputSchema":{"type":"object"}},{"name":"fresh","inputSchema":{"type":"object"}},{"name":"echo","inputSchema":{"type":"object"}}]}`
	refused := func(s *mcp.Server, name, want string) {
		t.Helper()
		_, err := call(t.Context(), t, s, name, `{}`)
		if kind, again := kindOf(err); kind != event.ErrorUnavailable || again || !strings.Contains(err.Error(), want) {
			t.Errorf("%s fails as %v", name, err)
		}
	}
	w.list(t, before)
	s := connect(t, w.options("ledger"))
	w.list(t, after)
	if r, err := call(t.Context(), t, s, "docs.changed", `{}`); err != nil || r.IsError {
		t.Fatalf("before it is announced, it gives %+v, %v", r, err)
	}
	// The announcement came before the answer.
	refused(s, "docs.changed", `description was "old" and is now "new"`)
	refused(s, "docs.gone", "not list it")
	if r, err := call(t.Context(), t, s, "docs.echo", `{}`); err != nil || r.Output != "{}" || len(s.Tools()) != 3 {
		t.Errorf("the unchanged tool gives %+v, %v", r, err)
	}
	again := mcp.Resume(w.options("ledger"), s.Pin())
	defer again.Close()
	refused(again, "docs.changed", `"new"`)
	if err := find(t, again, "docs.gone").Check(nil); err == nil {
		t.Error("a person would be asked about a tool that is gone")
	}
	changed := find(t, again, "docs.changed")
	facts := changed.Facts(nil)
	if err := changed.Check(nil); err != nil || facts.Redefined == nil || !strings.Contains(facts.Redefined.Change, `"new"`) {
		t.Errorf("a person is asked about a changed tool by %+v, %v", facts.Redefined, err)
	}
	if r, err := changed.Run(t.Context(), tool.Call{ID: "c", Args: json.RawMessage(`{}`), Facts: &facts}); err != nil || r.Output != "{}" {
		t.Errorf("by its new definition the tool gives %+v, %v", r, err)
	}
	facts.Redefined.Digest = "another"
	if _, err := changed.Run(t.Context(), tool.Call{ID: "c", Args: json.RawMessage(`{}`), Facts: &facts}); err == nil {
		t.Error("a call is made by a definition that the tool does not have")
	}
	if r, err := call(t.Context(), t, again, "docs.echo", `{}`); err != nil || r.Output != "{}" {
		t.Errorf("after a resume the unchanged tool gives %+v, %v", r, err)
	}
	if n := len(w.ledger(t, "call changed")) + len(w.ledger(t, "call gone")); n != 2 {
		t.Errorf("%d calls of changed tools were sent", n)
	}
}

func TestServerRunsInTheTierAndLeavesNothing(t *testing.T) {
	for _, tier := range sandbox.Tiers() {
		t.Run(string(tier), func(t *testing.T) {
			w := newWorld(t)
			o := w.options("ledger")
			outside := filepath.Join(t.TempDir(), "outside")
			if tier != sandbox.None {
				box, err := machine().Open(tier, sandbox.Policy{Workspace: w.dir})
				if errors.Is(err, sandbox.ErrUnavailable) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				defer box.Close()
				o.Shell.Sandbox = box
			}
			for range 2 {
				s := connect(t, o)
				r, err := call(t.Context(), t, s, "docs.grandchild", `{}`)
				if err != nil {
					t.Fatal(err)
				}
				pid, _ := strconv.Atoi(r.Output)
				if r, err = call(t.Context(), t, s, "docs.write", fmt.Sprintf(`{"text":%q}`, outside)); err != nil || (r.Output == "written") != (tier == sandbox.None) {
					t.Errorf("to write outside gives %+v, %v", r, err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if tier == sandbox.None && syscall.Kill(pid, 0) == nil {
					t.Errorf("process %d lives on", pid)
				}
				if left := processesOf(t, filepath.Join(w.dir, "server")); len(left) > 0 {
					t.Errorf("after close there are %v", left)
				}
			}
		})
	}
}

// processesOf are the processes whose program is a file.
func processesOf(t *testing.T, file string) (pids []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, _ := os.ReadFile(name); strings.HasPrefix(string(text), file+"\x00") {
			pids = append(pids, name)
		}
	}
	return pids
}

func TestEnvironmentIsAnAllowList(t *testing.T) {
	t.Setenv("OTHER_API_KEY", "not for you")
	w := newWorld(t)
	r, err := call(t.Context(), t, connect(t, w.options("ledger", "DOCS_TOKEN=sesame")), "docs.environment", `{}`)
	if err != nil || strings.Contains(r.Output, "OTHER_API_KEY") || !strings.Contains(r.Output, "DOCS_TOKEN=sesame") || !strings.Contains(r.Output, "PATH=") {
		t.Errorf("it sees %s, %v", r.Output, err)
	}
}
