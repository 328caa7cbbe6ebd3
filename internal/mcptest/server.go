// Package mcptest is an MCP server for tests. It writes each call into a ledger
// before it does anything else, and fails in the ways in which servers fail.
package mcptest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The variables of a server that is a program.
const (
	// LedgerVariable names the file that has a line for each call.
	LedgerVariable = "MCPTEST_LEDGER"
	// ToolsVariable names the file with the pages of tools, as JSON; each page is the
	// result of a tools/list. Without it the server lists [Tools]. Since a call of
	// changed its pages are those of the file with .changed after its name, if any.
	ToolsVariable = "MCPTEST_TOOLS"
	// StartVariable is what a server does instead of starting: exit, hang, list without
	// end (cursor), list the tools of [Many] (many) or have resources and prompts too
	// (features).
	StartVariable = "MCPTEST_START"
	// HoldFile keeps a server from starting, which notes held, and AnswerFile lets it
	// answer a call of wait, which reports progress until then and notes answered. Both are in its working directory.
	HoldFile   = "hold-start"
	AnswerFile = "let-answer"
)

// Tools is the page of tools that a server lists by default. What a tool does is in
// its name: ask asks a person for a name, with the text of the call as the message, and
// asktwice for another one after that; askpage asks to open a page, and needpage fails
// until a person has; sample asks a model for an answer to its text, sampletwice for
// another one after that, and sampleask a person for a name after that; complain prints its variables as errors; roots asks for the roots; task is done as a task, see [Server.task].
var Tools = page("task", "ask", "asktwice", "askpage", "needpage", "roots", "echo", "exit", "chatty", "silent", "progress", "big", "structured", "media", "error", "grandchild", "environment", "write", "refuse", "changed", "complain", "sample", "sampletwice", "sampleask")

func page(names ...string) string {
	var tools []string
	for _, name := range names {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"Does %s.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`, name, name))
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]}`
}

// Server is one session of a server.
type Server struct {
	// Ledger is the file of calls, and ToolsFile has the pages of tools.
	Ledger, ToolsFile string
	// Endless repeats a cursor.
	Endless bool
	// Lists is the page of tools where there is no ToolsFile; empty is [Tools].
	Lists string
	// Features adds resources and prompts.
	Features bool

	mu  sync.Mutex
	out io.Writer
	// asking are the calls that wait for an answer of the client, by the ids of the
	// requests.
	asking map[string]message
	asked  int
}

// message is a request, a notification or an answer.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		Cursor    string          `json:"cursor"`
		TaskID    string          `json:"taskId"`
		Responses json.RawMessage `json:"inputResponses"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      map[string]any  `json:"_meta"`
	} `json:"params"`
	// Result and Error are those of an answer of the client's.
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// Main is a server over stdin and stdout, by the variables of its environment.
func Main() {
	s := &Server{Ledger: os.Getenv(LedgerVariable), ToolsFile: os.Getenv(ToolsVariable), out: os.Stdout}
	switch os.Getenv(StartVariable) {
	case "exit":
		for i := range 30 {
			fmt.Fprintln(os.Stderr, "cannot start, reason", i)
		}
		os.Exit(1)
	case "hang":
		time.Sleep(time.Hour)
	case "cursor":
		s.Endless = true
	case "many":
		s.Lists = Many()
	case "features":
		s.Features = true
	}
	if exists(HoldFile) {
		s.Note("held", message{})
		for exists(HoldFile) {
			time.Sleep(waiting)
		}
	}
	fmt.Fprintln(os.Stderr, "the server is up")
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) == nil {
			s.serve(m)
		}
	}
}

// text returns the text in a call's arguments.
func (m message) text() string {
	var args struct{ Text string }
	_ = json.Unmarshal(m.Params.Arguments, &args)
	return args.Text
}

// ask sends a request of the server's while a call is under way.
func (s *Server) ask(call message, name, method, params string) {
	if s.asking == nil {
		s.asking = map[string]message{}
	}
	s.asked++
	id := fmt.Sprintf("%s-%d", name, s.asked)
	s.asking[`"`+id+`"`] = call
	s.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, method, params))
}

// answered goes on with a call that has an answer of the client.
func (s *Server) answered(m message) {
	call, waits := s.asking[string(m.ID)]
	if !waits {
		return
	}
	delete(s.asking, string(m.ID))
	declined := strings.Contains(string(m.Error), `"code":-1,`)
	if m.Error != nil {
		m.Result = m.Error
	}
	s.Note("answer "+string(m.Result), call)
	if call.Params.Name == "asktwice" && strings.HasPrefix(string(m.ID), `"q1-`) && m.Error == nil {
		s.ask(call, "q2", "elicitation/create", elicitation("And the family name?"))
		return
	}
	if call.Params.Name == "sampleask" && strings.HasPrefix(string(m.ID), `"q1-`) && (m.Error == nil || declined) {
		s.ask(call, "q2", "elicitation/create", elicitation("Your name?"))
		return
	}
	if call.Params.Name == "sampletwice" && strings.HasPrefix(string(m.ID), `"q1-`) && m.Error == nil {
		s.ask(call, "q2", "sampling/createMessage", sampling("And then?"))
		return
	}
	quoted, _ := json.Marshal(string(m.Result))
	s.print(answer(call, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, quoted)))
}

func elicitation(message string) string {
	return fmt.Sprintf(`{"mode":"form","message":%q,"requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","title":"Name"}}}}`, message)
}

func sampling(text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"messages":[{"role":"user","content":{"type":"text","text":%s}}],"systemPrompt":"Be brief.","maxTokens":100,"stopSequences":["STOP"]}`, quoted)
}

// waiting is how often a server looks for a file.
const waiting = 2 * time.Millisecond

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// serve answers a message on stdout.
func (s *Server) serve(m message) {
	if m.Method == "" {
		s.answered(m)
		return
	}
	if m.Method == "tools/call" {
		s.Note("call", m)
		s.fault(m)
		return
	}
	if m.Method == "resources/read" || m.Method == "prompts/get" {
		s.Note("get "+m.Params.URI, m)
		if m.Params.URI == "file:///exit" {
			os.Exit(3)
		}
	}
	if m.Method == "notifications/cancelled" {
		s.Note("cancelled", m)
	}
	if m.ID != nil {
		s.print(s.Answer(m))
	}
}

func (s *Server) print(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, line)
}

// Note writes a line into the ledger.
func (s *Server) Note(what string, m message) {
	f, err := os.OpenFile(s.Ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s %v %s\n", what, m.Params.Name, m.Params.Meta["io.github.pawlrun/idempotencyKey"], m.Params.Arguments)
}

// fault answers a call as the name of its tool says.
func (s *Server) fault(m message) {
	switch m.Params.Name {
	case "exit":
		os.Exit(3)
	case "silent":
		return
	case "wait":
		for i := 0; !exists(AnswerFile); i++ {
			if i%100 == 0 {
				s.print(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":%d,"total":1e6,"message":"a part"}}`, m.Params.Meta["progressToken"], i))
			}
			time.Sleep(waiting)
		}
		s.print(s.Answer(m))
		s.Note("answered", m)
		return
	case "ask", "asktwice":
		s.ask(m, "q1", "elicitation/create", elicitation(m.text()))
		return
	case "sample", "sampletwice", "sampleask":
		s.ask(m, "q1", "sampling/createMessage", sampling(m.text()))
		return
	case "askpage":
		s.ask(m, "q1", "elicitation/create", `{"mode":"url","message":"Pay first.","url":"https://pay.example.com/1","elicitationId":"e1"}`)
		return
	case "roots":
		s.ask(m, "q1", "roots/list", `{}`)
		return
	case "complain":
		fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), "\n"))
	case "chatty":
		s.print("Listening for requests …")
	case "progress":
		go func() {
			for i := range 300 {
				s.print(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":%d,"total":300,"message":"part %d"}}`, m.Params.Meta["progressToken"], i, i))
				time.Sleep(20 * time.Millisecond)
			}
			s.print(s.Answer(m))
		}()
		return
	case "changed":
		_ = os.Rename(s.ToolsFile+".changed", s.ToolsFile)
		s.print(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
	s.print(s.Answer(m))
}

// Answer is the answer to a request.
func (s *Server) Answer(m message) string {
	switch m.Method {
	case "initialize":
		has := `{"tools":{"listChanged":true}}`
		if s.Features {
			has = withFeatures
		}
		return answer(m, `{"protocolVersion":"2025-11-25","capabilities":`+has+`,"serverInfo":{"name":"ledger","version":"1.2"}}`)
	case "tools/list":
		return answer(m, s.list(m.Params.Cursor))
	case "tools/call":
		return answer(m, s.call(m))
	case "tasks/get", "tasks/update":
		return answer(m, s.task(m))
	case "ping":
		return answer(m, `{}`)
	}
	if result, known := s.feature(m); known {
		return answer(m, result)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
}

func answer(m message, result string) string {
	if code, ok := strings.CutPrefix(result, "!-"); ok {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"message":"not now","code":-%s}}`, m.ID, code)
	}
	if strings.HasPrefix(result, "!") {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":%q}}`, m.ID, result[1:])
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// list is a page: the file has them in a list, and each cursor is the number of the
// next.
func (s *Server) list(cursor string) string {
	if s.Endless {
		return `{"tools":[],"nextCursor":"again"}`
	}
	text, err := os.ReadFile(s.ToolsFile)
	if err != nil {
		return cmp.Or(s.Lists, Tools)
	}
	var pages []json.RawMessage
	if err := json.Unmarshal(text, &pages); err != nil {
		return "!" + err.Error()
	}
	n := 0
	_, _ = fmt.Sscan(cursor, &n)
	if n >= len(pages) {
		return `{"tools":[]}`
	}
	return string(pages[n])
}

func (s *Server) call(m message) string {
	text := func(text string) string {
		quoted, _ := json.Marshal(text)
		return fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, quoted)
	}
	switch m.Params.Name {
	case "big":
		return text(strings.Repeat("x", 17<<20))
	case "structured":
		switch string(m.Params.Arguments) {
		case `{"text":"error"}`:
			return `{"content":[{"type":"text","text":"no sensor"}],"structuredContent":{"temperature":21},"isError":true}`
		case `{"text":"held"}`:
			return `{"content":[{"type":"text","text":"{ \"temperature\": 21 }"}],"structuredContent":{"temperature":21}}`
		}
		return `{"content":[{"type":"text","text":"see below"}],"structuredContent":{"temperature":21}}`
	case "media":
		return `{"content":[{"type":"text","text":"a dot"},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="},` +
			`{"type":"resource_link","name":"page","uri":"https://example.com/p"},{"type":"resource","resource":{"uri":"file:///a/b.pdf","mimeType":"application/pdf","blob":"JVBERg=="}}]}`
	case "error":
		return `{"content":[{"type":"text","text":"it is broken"}],"isError":true}`
	case "refuse":
		return "!such a call is not taken"
	case "task":
		poll := 20
		if m.text() == "long" {
			poll = 3_600_000
		}
		return fmt.Sprintf(`{"resultType":"task","taskId":"t-%s","status":"working","ttlMs":null,"pollIntervalMs":%d}`, m.text(), poll)
	case "needpage":
		noted, _ := os.ReadFile(s.Ledger)
		if strings.Count(string(noted), "call needpage") > 1 && !strings.Contains(string(m.Params.Arguments), "never") {
			return text("paid")
		}
		return `!-32042,"data":{"elicitations":[{"mode":"url","message":"Pay first.","url":"https://pay.example.com/1","elicitationId":"e1"}]}`
	case "environment":
		return text(strings.Join(os.Environ(), "\n"))
	case "grandchild":
		c := exec.Command("sleep", "1000")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return "!" + err.Error()
		}
		return text(fmt.Sprint(c.Process.Pid))
	case "write":
		if err := os.WriteFile(m.text(), []byte("written"), 0o600); err != nil {
			return text(err.Error())
		}
		return text("written")
	}
	return text(string(m.Params.Arguments))
}
