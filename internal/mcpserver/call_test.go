package mcpserver_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/mcpserver"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// agents holds three files: reads only reads, writes asks before each of two writes,
// and thinks takes twenty seconds.
var agents = map[string]string{
	"reads.yaml":    "identity: {name: reads}\nprompt: {system: 'Speak ${language}.'}\ntools: {allow: [fs.list]}\nmodel_policy: {primary: {model: scripted/reads.script}}\n",
	"reads.script":  "- tool_calls: [{name: fs.list, arguments: {path: .}}]\n- text: the end\n",
	"writes.yaml":   "identity: {name: writes}\ntools: {allow: [fs.write], approvals: {fs.write: always}}\nmodel_policy: {primary: {model: scripted/writes.script}}\n",
	"writes.script": "- tool_calls: [{name: fs.write, arguments: {path: one.txt, content: x}}]\n- tool_calls: [{name: fs.write, arguments: {path: two.txt, content: x}}]\n- text: the end\n",
	"thinks.yaml":   "identity: {name: thinks}\ntools: {allow: [fs.list]}\nmodel_policy: {primary: {model: scripted/thinks.script}}\n",
	"thinks.script": "- tool_calls: [{name: fs.list, arguments: {path: .}}]\n  delay: 10s\n- text: the end\n  delay: 10s\n",
	"counts.yaml": "identity: {name: counts}\ntools: {allow: []}\nmodel_policy: {primary: {model: scripted/counts.script}}\n" +
		"resultSchema: {type: object, required: [n], properties: {n: {type: integer}}}\n",
	"counts.script": "- text: '{\"n\": 3}'\n",
	"fails.yaml":    "identity: {name: fails}\ntools: {allow: [fs.list]}\nmax_cycles: 1\nmodel_policy: {primary: {model: scripted/reads.script}}\n",
}

// protocols lists the tested versions of the protocol, with and without sessions.
var protocols = []string{"2025-11-25", "2026-07-28"}

// each runs play with a client of each version.
func each(t *testing.T, play func(t *testing.T, s site, version string)) {
	t.Helper()
	for _, version := range protocols {
		t.Run(version, func(t *testing.T) { play(t, newest(t, agents), version) })
	}
}

func (s site) exists(name string) bool {
	_, err := os.Stat(filepath.Join(s.dir, name))
	return err == nil
}

func (s site) standing(run string) journal.Run {
	s.t.Helper()
	row, err := s.store.Run(context.WithoutCancel(s.t.Context()), run)
	if err != nil {
		s.t.Fatal(err)
	}
	return row
}

func TestACallIsARunOfTheFile(t *testing.T) {
	each(t, func(t *testing.T, s site, version string) {
		session := s.connect(version, nil)
		known := map[string]bool{}
		for range 2 {
			run, r := s.callTool(session, "reads", "", map[string]any{"task": "go", "language": "German"})
			if r.IsError || text(r) != "the end" || known[run] || s.standing(run).State != journal.Ended {
				t.Errorf("run %s gives %+v %s", run, r, text(r))
			}
			known[run] = true
			if _, r := s.callTool(session, "counts", "", map[string]any{"task": "go"}); fmt.Sprint(r.StructuredContent) != "map[n:3]" || text(r) != `{"n": 3}` {
				t.Errorf("the result by a schema is %+v, %s", r.StructuredContent, text(r))
			}
		}
		for want, args := range map[string]map[string]any{
			"language": {"task": "go"}, `no argument "dialect"`: {"task": "go", "language": "x", "dialect": "y"}, "no object of texts": {"task": 3, "language": "x"},
		} {
			if _, r := s.callTool(session, "reads", "", args); !r.IsError || !strings.Contains(text(r), want) {
				t.Errorf("%v gives %t %s", args, r.IsError, text(r))
			}
		}
		run, r := s.callTool(session, "fails", "", map[string]any{"task": "go"})
		if !r.IsError || !strings.Contains(text(r), "Run "+run+" has stopped (maxCycles)") {
			t.Errorf("a run that a limit stopped gives %t %s", r.IsError, text(r))
		}
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
			t.Errorf("a tool that there is not gives %v", err)
		}
	})
}

func TestTheSameKeyIsTheSameRun(t *testing.T) {
	each(t, func(t *testing.T, s site, version string) {
		session := s.connect(version, nil)
		args := map[string]any{"task": "go", "language": "German"}
		first, _ := s.callTool(session, "reads", "k1", args)
		for range 2 {
			if again, r := s.callTool(session, "reads", "k1", args); again != first || text(r) != "the end" {
				t.Errorf("the same call is run %s with %s, and was %s", again, text(r), first)
			}
			if other, _ := s.callTool(s.connect(version, nil), "reads", "k1", args); other != first {
				t.Errorf("the same call of another connection is run %s, and was %s", other, first)
			}
		}
		if other, _ := s.callTool(session, "reads", "k2", args); other == first || other == "" {
			t.Errorf("another key is run %q", other)
		}
		if _, r := s.callTool(session, "reads", "k1", map[string]any{"task": "stop", "language": "German"}); !r.IsError || !strings.Contains(text(r), "another request") {
			t.Errorf("the key of another call gives %t %s", r.IsError, text(r))
		}
	})
}

func TestProgressComesBeforeTheResult(t *testing.T) {
	s := newest(t, agents)
	f := s.frames()
	f.begin("{}")
	for id := 1; id <= 2; id++ {
		f.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"reads","arguments":{"task":"go","language":"x"},"_meta":{"progressToken":"p%d"}}}`, id, id))
		var last float64
		var said []string
		for m := f.next(); m.ID == nil; m = f.next() {
			p := decode[struct {
				ProgressToken, Message string
				Progress               float64
			}](t, m.Params)
			if m.Method != "notifications/progress" || p.ProgressToken != fmt.Sprintf("p%d", id) || p.Progress <= last {
				t.Errorf("after %g comes %s %s", last, m.Method, m.Params)
			}
			last, said = p.Progress, append(said, p.Message)
		}
		want := "asks scripted/reads.script, calls fs.list, fs.list has ended, asks scripted/reads.script"
		if got := strings.Join(said, ", "); got != want {
			t.Errorf("the client reads %s", got)
		}
	}
	f.send(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"reads","arguments":{"task":"go","language":"x"}}}`)
	if m := f.next(); m.ID == nil {
		t.Errorf("a client that does not ask for progress gets %+v", m)
	}
}

// user answers questions one after another.
type user struct {
	answers []string
	asked   []string
}

func (u *user) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		answer := u.answers[len(u.asked)]
		u.asked = append(u.asked, r.Params.Message)
		if answer == "decline" || answer == "cancel" {
			return &mcp.ElicitResult{Action: answer}, nil
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": answer, "reason": "because"}}, nil
	}}
}

func TestApprovalsAreElicited(t *testing.T) {
	for _, tt := range []struct {
		answers  []string
		one, two bool
	}{
		{[]string{"approve", "approve"}, true, true},
		{[]string{"approve", "reject"}, true, false},
		{[]string{"decline", "approve"}, false, true},
	} {
		each(t, func(t *testing.T, s site, version string) {
			u := &user{answers: tt.answers}
			run, r := s.callTool(s.connect(version, u.options()), "writes", "", map[string]any{"task": "go"})
			if r.IsError || text(r) != "the end" || s.exists("one.txt") != tt.one || s.exists("two.txt") != tt.two {
				t.Errorf("%v: run %s gives %t %s, and wrote %t, %t", tt.answers, run, r.IsError, text(r), s.exists("one.txt"), s.exists("two.txt"))
			}
			if len(u.asked) != 2 || !strings.Contains(u.asked[0], `fs.write {"content":"x","path":"one.txt"}`) || !strings.Contains(u.asked[1], "two.txt") {
				t.Errorf("%v: the user was asked %q", tt.answers, u.asked)
			}
		})
	}
}

func TestAQuestionThatIsDismissedStaysOpen(t *testing.T) {
	each(t, func(t *testing.T, s site, version string) {
		u := &user{answers: []string{"cancel", "approve", "cancel"}}
		session := s.connect(version, u.options())
		run, r := s.callTool(session, "writes", "k", map[string]any{"task": "go"})
		if !r.IsError || !strings.Contains(text(r), "pawl runs approve "+run) || len(u.asked) != 1 || s.standing(run).State != journal.Parked {
			t.Errorf("run %s gives %t %s after %q", run, r.IsError, text(r), u.asked)
		}
		again, r := s.callTool(session, "writes", "k", map[string]any{"task": "go"})
		if again != run || !s.exists("one.txt") || s.exists("two.txt") || !strings.Contains(text(r), "two.txt") {
			t.Errorf("the same call gives run %s %s after %q", again, text(r), u.asked)
		}
	})
}

// The state of a result continues a call of the same tool only, and a state that was
// changed none. A call that is repeated with an answer that was taken gets the result
// again.
func TestAChangedRequestStateIsRejected(t *testing.T) {
	s := newest(t, agents)
	o := new(user).options()
	o.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	session := s.connect("2026-07-28", o)
	_, r := s.callTool(session, "writes", "", map[string]any{"task": "go"})
	if r.RequestState == "" || len(r.InputRequests) != 1 {
		t.Fatalf("the call gives %+v", r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := func(name, state string) (*mcp.CallToolResult, error) {
		p := &mcp.CallToolParams{Name: name, Arguments: map[string]any{"task": "go"}, RequestState: state, InputResponses: mcp.InputResponseMap{}}
		for question := range r.InputRequests {
			p.InputResponses[question] = &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}
		}
		return session.CallTool(ctx, p)
	}
	for _, c := range [][2]string{{"writes", r.RequestState + "x"}, {"thinks", r.RequestState}} {
		if _, err := again(c[0], c[1]); err == nil || !strings.Contains(err.Error(), "no run of "+c[0]) || s.exists("one.txt") {
			t.Errorf("%s with the state %s: %v", c[0], c[1], err)
		}
	}
	for range 2 {
		next, err := again("writes", r.RequestState)
		if err != nil || !s.exists("one.txt") || len(next.InputRequests) != 1 || strings.Contains(fmt.Sprint(next.InputRequests), "one.txt") {
			t.Errorf("the state as it was gives %+v, %v", next, err)
		}
	}
}

func TestWithoutElicitationTheResultSaysHowToDecide(t *testing.T) {
	refused := func(_ *server.Options, o *mcpserver.Options) {
		o.MayDecide = func(context.Context) error { return fmt.Errorf("a run started this") }
	}
	for _, version := range protocols {
		for name, s := range map[string]site{"no elicitation": newest(t, agents), "a run": serve(t, memory.New(nil), agents, refused)} {
			u, o := &user{}, &mcp.ClientOptions{}
			if name == "a run" {
				o = u.options()
			}
			for range 2 {
				run, r := s.callTool(s.connect(version, o), "writes", "", map[string]any{"task": "go"})
				if !r.IsError || !strings.Contains(text(r), "Approve: pawl runs approve "+run+" "+run+"-1-1 --resume\nReject: pawl runs reject "+run) || len(u.asked) > 0 {
					t.Errorf("%s %s: run %s gives %t %s", version, name, run, r.IsError, text(r))
				}
			}
		}
	}
}

// call returns the frame of a call of thinks.
func call(id int, key string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"thinks","arguments":{"task":"go"},"_meta":{"progressToken":%d,"%s":"%s"}}}`, id, id, mcpserver.KeyMeta, key)
}

func runOf(t *testing.T, m frame) (run, said string, isError bool) {
	t.Helper()
	r := decode[struct {
		Meta    map[string]any `json:"_meta"`
		Content []struct{ Text string }
		IsError bool
	}](t, m.Result)
	run, _ = r.Meta[mcpserver.RunMeta].(string)
	return run, r.Content[0].Text, r.IsError
}

func TestACancelledCallIsAnsweredAndParksItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newest(t, agents)
		f := s.frames()
		f.begin("{}")
		for id := 1; id <= 3; id += 2 {
			key := fmt.Sprint("k", id)
			f.send(call(id, key))
			f.until("notifications/progress")
			f.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
			run, said, isError := runOf(t, f.reply(id))
			if !isError || !strings.Contains(said, "parks") {
				t.Errorf("the call is answered with %t %s", isError, said)
			}
			for s.standing(run).State == journal.Running {
				time.Sleep(time.Second) // virtual time: the model has not answered yet
			}
			if row := s.standing(run); row.State != journal.Paused {
				t.Fatalf("the run is %s (%s)", row.State, row.Detail)
			}
			f.send(call(id+1, key))
			again, said, isError := runOf(t, f.reply(id+1))
			if again != run || isError || said != "the end" {
				t.Errorf("the same call gives run %s %t %s, and was %s", again, isError, said, run)
			}
		}
	})
}

func TestACancelledCallCancelsItsRunWhereThatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, memory.New(nil), agents, func(_ *server.Options, o *mcpserver.Options) { o.OnCancel = mcpserver.Cancel })
		f := s.frames()
		f.begin("{}")
		for id := 1; id <= 2; id++ {
			f.send(call(id, fmt.Sprint("k", id)))
			f.until("notifications/progress")
			f.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
			run, said, isError := runOf(t, f.reply(id))
			synctest.Wait()
			if row := s.standing(run); !isError || !strings.Contains(said, "cancelled, and so is run") || row.State != journal.Ended || row.Detail != "cancelled" {
				t.Errorf("the call is answered with %s, and the run is %s (%s)", said, row.State, row.Detail)
			}
		}
	})
}

func TestARunThatItsClientLeftGoesOnWithTheNextServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		run := ""
		for range 2 {
			s := serve(t, store, agents)
			w, r := s.pipes()
			f := framesOn(t, w, r)
			f.begin("{}")
			f.send(call(1, "k"))
			f.until("notifications/progress")
			rows, err := store.Runs(t.Context(), journal.Filter{})
			if err != nil || len(rows) != 1 || run != "" && rows[0].ID != run {
				t.Fatalf("the runs are %v, %v", rows, err)
			}
			run = rows[0].ID
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			for f.scanner.Scan() { // until the server has closed its end, and its runs have parked
			}
			if row := s.standing(run); row.State != journal.Parked || row.Detail != "interrupted" {
				t.Fatalf("the run is %s (%s)", row.State, row.Detail)
			} else if by, err := s.runs.PausedBy(t.Context(), row); by != "" || err != nil {
				t.Errorf("the end of the client is a cancellation by %q, %v", by, err)
			}
		}
		s := serve(t, store, agents)
		f := s.frames()
		f.begin("{}")
		f.send(call(1, "k"))
		if again, said, isError := runOf(t, f.reply(1)); again != run || isError || said != "the end" {
			t.Errorf("the same call gives run %s %t %s", again, isError, said)
		}
	})
}

func TestARunThatAPersonPausedStaysPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newest(t, agents)
		f := s.frames()
		f.begin("{}")
		for id := 1; id <= 3; id += 2 {
			key := fmt.Sprint("k", id)
			f.send(call(id, key))
			f.until("notifications/progress")
			rows, err := s.store.Runs(t.Context(), journal.Filter{Limit: 1})
			if err != nil || len(rows) != 1 {
				t.Fatal(rows, err)
			}
			person := server.Caller{Principal: event.Principal{Name: "ann", Role: "admin", Proof: event.ProofUser}, Surface: "http"}
			if _, err := s.runs.Ask(t.Context(), person, server.Request{Method: http.MethodPost, Path: "/v1/runs/" + rows[0].ID + "/pause"}); err != nil {
				t.Fatal(err)
			}
			for again := range 2 {
				run, said, isError := runOf(t, f.reply(id+again))
				if run != rows[0].ID || !isError || !strings.Contains(said, "pawl runs resume "+run) || s.standing(run).State != journal.Paused {
					t.Errorf("the call of run %s gives %s %t %s", rows[0].ID, run, isError, said)
				}
				if again == 0 {
					f.send(call(id+1, key))
				}
			}
		}
	})
}
