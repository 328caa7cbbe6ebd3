package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/journal"
)

// prompt sends a message, chooses an option in each permission request, and returns the
// titles of those about trust.
func (c acpClient) prompt(session, text, option string) (asked []string) {
	c.t.Helper()
	c.send(50, "session/prompt", promptOf(session, text))
	for {
		if !c.out.Scan() {
			c.t.Fatalf("the process has ended: %s", c.process.err)
		}
		var f struct {
			ID     json.RawMessage
			Method string
			Params struct{ ToolCall struct{ Title string } }
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(c.out.Bytes(), &f); err != nil {
			c.t.Fatal(err)
		}
		switch {
		case f.Method == "session/request_permission":
			if title := f.Params.ToolCall.Title; strings.HasPrefix(title, "Trust") {
				asked = append(asked, title)
			}
			if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`+"\n", f.ID, option); err != nil {
				c.t.Fatal(err)
			}
		case f.Method == "" && string(f.ID) == "50":
			if f.Error != nil {
				c.t.Fatal(f.Error.Message)
			}
			return asked
		}
	}
}

// A question of an editor that does not answer is decided by another process, approved for
// one message and rejected for the next: the turn goes on.
func TestAQuestionOfAnEditorIsDecidedByRunsApprove(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": gatedAgent, "script.yaml": writeTurn("docs/a.md") + "- text: Done.\n"})
	c := p.acp()
	session := c.begin()
	for i, decide := range []string{"approve", "reject"} {
		c.send(10+i, "session/prompt", promptOf(session, "Write."))
		for stop := ""; stop == ""; {
			switch f := c.next(); {
			case f.Method == "session/request_permission":
				args := []string{"runs", decide, p.newest(), "1-1"}
				if decide == "reject" {
					args = append(args, "--reason", "not now")
				}
				p.exits(0, args...)
			case f.Method == "" && f.ID == 10+i:
				stop = f.Result.StopReason
			}
		}
		results := of[event.ToolResult](p.events(p.exits(0, "runs", "events", p.newest(), "--json").out))
		if len(results) != 1 || results[0].IsError != (decide == "reject") {
			t.Errorf("%s: the call has ended with %+v", decide, results)
		}
		if row := p.row(p.newest()); row.State != journal.Ended {
			t.Errorf("%s: the run is %s", decide, row.State)
		}
	}
	_ = c.in.Close()
	_ = c.process.Wait()
}

// The MCP servers of an editor are those of its session, once their user trusts them: also
// for a later message, in another process and session. A credential is in no journal.
func TestTheMCPServersOfAnEditorAreUsed(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  slowly + "tools: {allow: []}\n",
		"script.yaml": "- tool_calls: [{name: docs.environment, arguments: {}}]\n- text: Done.\n",
	})
	serverProgram(t, p.dir)
	const value = "a-credential-of-the-editor"
	servers := func(token string) string {
		return fmt.Sprintf(`[{"name":"docs","command":%q,"args":[],"env":[{"name":"MCPTEST_LEDGER","value":"ledger"},{"name":"DOCS_TOKEN","value":%q}]}]`, filepath.Join(p.dir, "mcpledger"), token)
	}
	start := func() acpClient {
		s, in, out := p.piped("acp", "--agent", "agent.yaml")
		c := acpClient{p, s, in, out}
		c.out.Buffer(nil, bufio.MaxScanTokenSize*16)
		c.ask(1, "initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
		return c
	}
	open := func(c acpClient, session, token string) string {
		method, id := "session/new", ""
		if session != "" { // without the history, whose results have other contents
			method, id = "session/resume", fmt.Sprintf(`"sessionId":%q,`, session)
		}
		f, _ := c.ask(2, method, fmt.Sprintf(`{%s"cwd":%q,"mcpServers":%s}`, id, p.dir, servers(token)))
		return f.Result.SessionID
	}
	called := func(prompts int) {
		t.Helper()
		results := of[event.ToolResult](p.events(p.exits(0, "runs", "events", p.newest(), "--json").out))
		if len(results) != 1 || results[0].IsError || !strings.Contains(results[0].Output, "DOCS_TOKEN=") || strings.Contains(results[0].Output, value) {
			t.Errorf("message %d: the server has answered %+v", prompts, results)
		}
	}
	c := start()
	session := open(c, "", value)
	for i, want := range []int{1, 0} {
		if asked := c.prompt(session, "Go.", "allow_always"); len(asked) != want {
			t.Errorf("message %d asks %q", i, asked)
		}
		called(i)
	}
	if asked := c.prompt(open(c, "", value), "Go.", "allow_always"); len(asked) != 0 {
		t.Errorf("another session asks %q", asked)
	}
	_ = c.in.Close()
	_ = c.process.Wait()
	c = start()
	open(c, session, value)
	if asked := c.prompt(session, "Again.", "allow_always"); len(asked) != 0 {
		t.Errorf("another process asks %q", asked)
	}
	called(4)
	_ = c.in.Close()
	_ = c.process.Wait()
	if all, _ := os.ReadFile(filepath.Join(p.dir, ".pawl", "journal.db")); strings.Contains(string(all), value) {
		t.Error("the credential is in the journal")
	}
}

// headerServer is an MCP server that wants a token in a header. The result of a call repeats
// the headers.
func headerServer(t *testing.T, token func() string) *httptest.Server {
	t.Helper()
	lists := strings.Replace(mcptest.Tools, `"name":"echo"`, `"name":"headers"`, 1)
	inner := &mcptest.Server{Ledger: filepath.Join(t.TempDir(), "ledger"), Lists: lists}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		if auth != "Bearer "+token() || r.Header.Get("X-MCP-Readonly") != "true" {
			t.Errorf("a request has the headers %v", r.Header)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var call struct {
			ID     json.RawMessage
			Params struct{ Name string }
		}
		if _ = json.Unmarshal(body, &call); call.Params.Name == "headers" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"true: %s, %s"}]}}`, call.ID, auth, token())
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(site.Close)
	return site
}

// Each session sends its own headers to the editor's HTTP servers: two sessions of one
// process, and one of a second process with a renewed token. Pawl asks the user once for
// each directory and server, and the journal contains no token.
func TestTheHTTPServersOfAnEditorAreUsed(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  slowly + "tools: {allow: []}\n",
		"script.yaml": "- tool_calls: [{name: docs.headers, arguments: {}}]\n- text: Done.\n",
	})
	tokens := [2]string{"the-token-of-one", "the-token-of-another"}
	var sites [2]*httptest.Server
	for i := range sites {
		sites[i] = headerServer(t, func() string { return tokens[i] })
	}
	open := func(c acpClient, site int, session string) string {
		method, id := "session/new", ""
		if session != "" {
			method, id = "session/load", fmt.Sprintf(`"sessionId":%q,`, session)
		}
		servers := fmt.Sprintf(`[{"type":"http","name":"docs","url":%q,"headers":[{"name":"Authorization","value":"Bearer %s"},{"name":"X-MCP-Readonly","value":"true"}]}]`, sites[site].URL, tokens[site])
		f, _ := c.ask(2, method, fmt.Sprintf(`{%s"cwd":%q,"mcpServers":%s}`, id, p.dir, servers))
		return f.Result.SessionID
	}
	say := func(c acpClient, session string, asks int) {
		t.Helper()
		if asked := c.prompt(session, "Go.", "allow_always"); len(asked) != asks {
			t.Errorf("the message asks %q", asked)
		}
		results := of[event.ToolResult](p.events(p.exits(0, "runs", "events", p.newest(), "--json").out))
		if len(results) != 1 || results[0].IsError || !strings.Contains(results[0].Output, "true: Bearer ${secret:") {
			t.Errorf("the server has answered %+v", results)
		}
	}
	c := p.acp()
	var all [2]string
	for i := range all {
		all[i] = open(c, i, "")
		say(c, all[i], 1)
	}
	for _, session := range all {
		say(c, session, 0)
	}
	say(c, open(c, 0, ""), 0)
	_ = c.in.Close()
	_ = c.process.Wait()
	old := tokens
	tokens[0] = "a-token-that-was-renewed"
	c = p.acp()
	for i, session := range all {
		open(c, i, session)
		say(c, session, 0)
	}
	_ = c.in.Close()
	_ = c.process.Wait()
	for _, name := range []string{"journal.db", "journal.db-wal"} {
		text, err := os.ReadFile(filepath.Join(p.dir, ".pawl", name))
		if err != nil && name == "journal.db" {
			t.Fatal(err)
		}
		for _, token := range append(old[:], tokens[0]) {
			if strings.Contains(string(text), token) {
				t.Errorf("%s has the token %s", name, token)
			}
		}
	}
}

// Servers that the user does not trust are left out, in the next session without a
// question. No request reaches one over HTTP.
func TestUntrustedMCPServersOfAnEditorAreLeftOut(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": slowly, "script.yaml": "- text: Done.\n"})
	serverProgram(t, p.dir)
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server has a request") }))
	defer site.Close()
	for _, server := range []string{
		fmt.Sprintf(`{"name":"docs","command":%q,"args":[],"env":[]}`, filepath.Join(p.dir, "mcpledger")),
		fmt.Sprintf(`{"type":"http","name":"docs","url":%q,"headers":[{"name":"Authorization","value":"Bearer a-token-of-the-editor"}]}`, site.URL),
	} {
		for i := range 2 {
			c := p.acp()
			f, _ := c.ask(2, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[%s]}`, p.dir, server))
			if asked := c.prompt(f.Result.SessionID, "Go.", "reject_once"); (len(asked) == 1) != (i == 0) {
				t.Errorf("session %d asks %q", i, asked)
			}
			_ = c.in.Close()
			_ = c.process.Wait()
			started, _ := p.started(p.newest())
			if !strings.Contains(strings.Join(started.Warnings, "\n"), "do not trust them: the MCP servers of the editor: docs") || len(started.Servers) > 0 {
				t.Errorf("session %d has the servers %+v and warns %q", i, started.Servers, started.Warnings)
			}
		}
	}
}
