package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// asksAgent asks before every command.
const asksAgent = `
identity: {name: asks}
model_policy: {primary: {model: scripted/script.yaml}}
tools: {allow: [shell.exec], approvals: {shell.exec: always}}
`

// served is a server that goes on.
type served struct {
	project
	process *startedProcess
	url     string
	// token is the one of this start, empty where there is a file of tokens or none.
	token string
}

// serve starts a server and waits until it listens.
func (p project) serve(env ...string) served {
	p.t.Helper()
	return p.serveWith(nil, env...)
}

// serveWith is serve with further arguments.
func (p project) serveWith(args []string, env ...string) served {
	p.t.Helper()
	return p.serveBy("serve", append([]string{"--addr", "127.0.0.1:0"}, args...), env...)
}

// serveBy is serveWith for a command that serves.
func (p project) serveBy(command string, args []string, env ...string) served {
	p.t.Helper()
	s := &startedProcess{Cmd: p.command(append([]string{command}, args...)...), t: p.t, out: new(transcript), err: new(transcript)}
	pipe, err := s.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	s.Stderr, s.Env = s.err, append(s.Env, env...)
	if err := s.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.Process.Kill() }) // for a test that did not come to stop it
	url, err := bufio.NewReader(pipe).ReadString('\n')
	if err != nil {
		p.t.Fatalf("the server does not say where it listens: %v: %s", err, s.err)
	}
	url, token, _ := strings.Cut(strings.TrimSpace(url), "/#")
	return served{p, s, url, token}
}

// request is a request with the token of this start.
func (s served) request(method, path, body string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	return r
}

// stop ends the server as an init system does.
func (s served) stop() {
	s.t.Helper()
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	if f := s.process.wait(); f.code != 0 {
		s.t.Errorf("the server ends with exit code %d: %s", f.code, f.err)
	}
}

// asks makes a request, wants a status of it, and decodes what it gives.
func asks[T any](s served, status int, method, path, body string) T {
	s.t.Helper()
	answer, err := http.DefaultClient.Do(s.request(method, path, body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if answer.StatusCode != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", method, path, answer.StatusCode, status, text)
	}
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		s.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return v
}

type items[T any] struct{ Items []T }

func (s served) post(status int, path, body string) map[string]any {
	s.t.Helper()
	return asks[map[string]any](s, status, http.MethodPost, path, body)
}

// begun starts a run of the agent and waits until it asks.
func (s served) begun() (id string, calls []string) {
	s.t.Helper()
	r := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "asks", "input": "go"}`)
	s.reaches(r.ID, journal.Parked)
	return r.ID, s.pending(r.ID)
}

func (s served) pending(id string) []string {
	s.t.Helper()
	var calls []string
	for _, p := range asks[items[event.ToolPendingApproval]](s, http.StatusOK, http.MethodGet, "/v1/runs/"+id+"/approvals", "").Items {
		calls = append(calls, p.CallID)
	}
	return calls
}

func (s served) reaches(id string, state journal.State) {
	s.t.Helper()
	s.eventually("run "+id+" is "+string(state), func() bool {
		return asks[journal.Run](s, http.StatusOK, http.MethodGet, "/v1/runs/"+id, "").State == state
	})
}

func (s served) journalled(id string) []event.Event {
	s.t.Helper()
	return asks[items[event.Event]](s, http.StatusOK, http.MethodGet, "/v1/runs/"+id+"/events?limit=500", "").Items
}

func decisionOn(call, reason string) string {
	return fmt.Sprintf(`{"callId": %q, "reason": %q}`, call, reason)
}

// rows: ALDO-59
func TestAnApprovalOverHTTPRunsTheCallAndTheRunGoesOn(t *testing.T) {
	s := newProject(t, map[string]string{
		"agent.yaml":  asksAgent,
		"script.yaml": shellTurn("touch made") + "- text: the end\n",
	}).serve()
	id, calls := s.begun()
	if len(calls) != 1 || s.exists("made")() {
		t.Fatalf("the calls %v wait, and the file is there: %t", calls, s.exists("made")())
	}
	s.post(http.StatusOK, "/v1/runs/"+id+"/approve", decisionOn(calls[0], "looks right"))
	s.reaches(id, journal.Ended)
	if !s.exists("made")() {
		t.Error("the tool did not run")
	}
	events := s.journalled(id)
	if d := of[event.ToolApprovalResolved](events); len(d) != 1 || d[0].Kind != event.ApprovalApproved || d[0].Approver != "http:"+whoAmI() || d[0].Reason != "looks right" {
		t.Errorf("resolved %+v", d)
	}
	if o := s.outcome(events); !o.OK || o.FinalOutput != "the end" || o.Cycles != 2 {
		t.Errorf("outcome %+v", o)
	}
	again := s.post(http.StatusConflict, "/v1/runs/"+id+"/approve", decisionOn(calls[0], "again"))
	if again["type"] != "urn:pawl:problem:already-decided" {
		t.Errorf("a second decision gets %v", again)
	}
	s.stop()
}

// rows: ALDO-60, ALDO-61
func TestARejectionOverHTTPIsTheCallsResultAndTheRunGoesOn(t *testing.T) {
	s := newProject(t, map[string]string{
		"agent.yaml":  asksAgent,
		"script.yaml": shellTurn("touch made") + "- text: understood\n  expect: {last: [not on a Friday]}\n",
	}).serve()
	id, calls := s.begun()
	s.post(http.StatusBadRequest, "/v1/runs/"+id+"/reject", fmt.Sprintf(`{"callId": %q}`, calls[0]))
	s.post(http.StatusOK, "/v1/runs/"+id+"/reject", decisionOn(calls[0], "not on a Friday"))
	s.reaches(id, journal.Ended)
	events := s.journalled(id)
	if o := s.outcome(events); s.exists("made")() || o.FinalOutput != "understood" {
		t.Errorf("the tool ran: %t, outcome %+v", s.exists("made")(), o)
	}
	results := of[event.ToolResult](events)
	if len(results) != 1 {
		t.Fatalf("%d results", len(results))
	}
	const want = `{"rejected":true,"reason":"not on a Friday"}`
	if r := results[0]; r.Output != want || !r.IsError || r.ErrorType != event.ErrorRejected {
		t.Errorf("the call's result is %+v", r)
	}
	s.stop()
}

// rows: ALDO-62
func TestTwoGatedCallsNeedTwoDecisionsOverHTTP(t *testing.T) {
	s := newProject(t, map[string]string{
		"agent.yaml": asksAgent,
		"script.yaml": "- tool_calls:\n  - {name: shell.exec, arguments: {command: touch one}}\n  - {name: shell.exec, arguments: {command: touch two}}\n" +
			"- text: the end\n",
	}).serve()
	id, calls := s.begun()
	if len(calls) != 2 {
		t.Fatalf("the calls %v wait, want two", calls)
	}
	s.post(http.StatusNotFound, "/v1/runs/"+id+"/approve", decisionOn(id+"-9-9", "no such call"))
	s.post(http.StatusOK, "/v1/runs/"+id+"/approve", decisionOn(calls[1], "the second"))
	s.eventually("only the first call waits, parked", func() bool {
		row := asks[journal.Run](s, http.StatusOK, http.MethodGet, "/v1/runs/"+id, "")
		return row.State == journal.Parked && slices.Equal(s.pending(id), calls[:1])
	})
	if s.exists("one")() {
		t.Error("a call ran that nobody approved")
	}
	s.post(http.StatusOK, "/v1/runs/"+id+"/approve", decisionOn(calls[0], "the first"))
	s.reaches(id, journal.Ended)
	if !s.exists("one")() || !s.exists("two")() {
		t.Error("an approved call did not run")
	}
	s.stop()
}

// rows: ALDO-59
func TestARunThatAnotherProcessParkedGoesOnByADecisionOverHTTP(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  asksAgent,
		"script.yaml": shellTurn("touch one") + shellTurn("touch two") + "- text: the end\n",
	})
	p.exits(4, "run", "agent.yaml", "go")
	id := p.newest()
	first := p.serve()
	first.post(http.StatusOK, "/v1/runs/"+id+"/approve", decisionOn(first.pending(id)[0], ""))
	p.eventually("the second call waits", func() bool {
		calls := first.pending(id)
		return p.exists("one")() && len(calls) == 1 && strings.HasSuffix(calls[0], "-2-1")
	})
	first.stop()
	next := p.serve()
	next.post(http.StatusOK, "/v1/runs/"+id+"/approve", decisionOn(next.pending(id)[0], ""))
	next.reaches(id, journal.Ended)
	if !p.exists("two")() {
		t.Error("the tool did not run")
	}
	next.stop()
}

func TestAServerWhoseJournalIsTakenAwayIsNotReady(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": asksAgent, "script.yaml": "- text: the end\n"})
	s := p.serve()
	asks[any](s, http.StatusOK, http.MethodGet, "/readyz", "")
	if err := os.Rename(filepath.Join(p.dir, ".pawl"), filepath.Join(p.dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	problem := asks[struct{ Detail, Next string }](s, http.StatusServiceUnavailable, http.MethodGet, "/readyz", "")
	if !strings.Contains(problem.Detail, "deleted or replaced") || !strings.Contains(problem.Next, "start the server again") {
		t.Errorf("%+v", problem)
	}
	s.stop()
}

func TestAStreamGoesOnBehindTheLastEventThatWasSeen(t *testing.T) {
	s := newProject(t, map[string]string{"agent.yaml": asksAgent, "script.yaml": "- text: the end\n"}).serve()
	r := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "asks", "input": "go"}`)
	read := func(last string) (status int, ids, types []string) {
		request := s.request(http.MethodGet, "/v1/runs/"+r.ID+"/events", "")
		request.Header.Set("Accept", "text/event-stream")
		if last != "" {
			request.Header.Set("Last-Event-ID", last)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				ids = append(ids, id)
			}
			if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				types = append(types, kind)
			}
		}
		return answer.StatusCode, ids, types
	}
	_, ids, types := read("")
	if n := len(types); n < 3 || types[0] != string(event.TypeRunStarted) || types[n-1] != string(event.TypeRunCompleted) {
		t.Fatalf("the stream has %v", types)
	}
	if _, again, _ := read(ids[1]); !slices.Equal(again, ids[2:]) {
		t.Errorf("behind %s come %v, want %v", ids[1], again, ids[2:])
	}
	if status, _, _ := read(ids[len(ids)-1]); status != http.StatusNoContent {
		t.Errorf("behind the end of a run comes status %d, want 204", status)
	}
	s.stop()
}

func TestOnlyThisMachineIsServed(t *testing.T) {
	p := newProject(t, nil)
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "nonsense"} {
		if f := p.exits(2, "serve", "--addr", addr); !strings.Contains(f.err, "--addr") {
			t.Errorf("%s: %s", addr, f.err)
		}
	}
}

func TestAServerWhosePortIsTakenSaysWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if f := newProject(t, nil).exits(1, "serve", "--addr", l.Addr().String()); !strings.HasSuffix(f.err, "address already in use; name another address with --addr\n") {
		t.Errorf("it says %q", f.err)
	}
}
