package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
)

// withServer is a project with an MCP server that asks a person for a name.
func withServer(t *testing.T) project {
	t.Helper()
	p := newProject(t, map[string]string{
		"agent.yaml": `
identity: {name: reader}
model_policy: {primary: {model: scripted/script.yaml}}
tools:
  allow: [docs.ask]
  approvals: {"docs.*": never}
  may_send: ["docs.*"]
  mcp: [{server: docs, command: [./mcpledger], env: {MCPTEST_LEDGER: ledger}}]
`,
		"script.yaml": "- tool_calls: [{name: docs.ask, arguments: {text: \"Your name?\"}}]\n- text: the end\n",
	})
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("this system does not show a program its own file")
	}
	syscall.ForkLock.RLock() // a child that inherits the open file would keep it from being run
	err = os.WriteFile(filepath.Join(p.dir, "mcpledger"), self, 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The person at the terminal fills in the form, field by field, until it fits.
func TestFormIsFilledInAtTheTerminal(t *testing.T) {
	p := withServer(t)
	y, s := p.atTerminal([]string{"PAWL_SANDBOX=none"}, "run", "agent.yaml", "go")
	p.eventually("it asks", func() bool { return strings.Contains(y.plain(), "I fill it in") })
	if !strings.Contains(y.plain(), "asks: Your name?") {
		t.Errorf("it shows %q", y.plain())
	}
	y.types("perhaps\n")
	p.eventually("it says how to answer", func() bool { return strings.Count(y.plain(), "I fill it in") == 2 })
	y.types("y\n")
	p.eventually("it asks for the field", func() bool { return strings.Count(y.plain(), "\n  name: ") == 2 })
	y.types("\n")
	p.eventually("it asks again", func() bool { return strings.Contains(y.plain(), "name: is missing") })
	y.types("Ann\n")
	if f := s.wait(); f.code != 0 || !strings.Contains(p.read("ledger"), `answer {"action":"accept","content":{"name":"Ann"}}`) || strings.Count(p.read("ledger"), "call ask") != 1 {
		t.Errorf("exit code %d: %q", f.code, y.plain())
	}
}

func TestFormIsDeclinedAtTheTerminal(t *testing.T) {
	p := withServer(t)
	y, s := p.atTerminal([]string{"PAWL_SANDBOX=none"}, "run", "agent.yaml", "go")
	p.eventually("it asks", func() bool { return strings.Contains(y.plain(), "I fill it in") })
	y.types("n not today\n")
	if f := s.wait(); f.code != 0 || !strings.Contains(p.read("ledger"), `answer {"action":"decline"}`) {
		t.Errorf("exit code %d: %q", f.code, y.plain())
	}
}

// Over HTTP a form has its schema, a wrong answer has the field beside it, and the run
// goes on with a right one. AG-UI has the schema as that of the response.
func TestFormIsAnsweredOverHTTP(t *testing.T) {
	p := withServer(t)
	s := p.serve("PAWL_SANDBOX=none")
	r := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "reader", "input": "go"}`)
	type question struct {
		ID, Kind, Reason string
		What             struct {
			Schema struct {
				Properties map[string]struct{ Title string }
			}
		}
	}
	var open struct{ Items []question }
	p.eventually("it asks", func() bool {
		open = asks[struct{ Items []question }](s, http.StatusOK, http.MethodGet, "/v1/questions", "")
		return len(open.Items) == 1
	})
	q := open.Items[0]
	if q.Kind != "form" || q.Reason != "Your name?" || q.What.Schema.Properties["name"].Title != "Name" {
		t.Errorf("the question is %+v", q)
	}
	for body, pointer := range map[string]string{
		`{"callId":"` + q.ID + `"}`:                       "/input",
		`{"callId":"` + q.ID + `","input":{"name":1}}`:    "/input",
		`{"callId":"` + q.ID + `","args":{"name":"Ann"}}`: "/args",
	} {
		problem := asks[server.Problem](s, http.StatusUnprocessableEntity, http.MethodPost, "/v1/runs/"+r.ID+"/approve", body)
		if problem.Pointer != pointer || pointer == "/input" && (len(problem.Fields) != 1 || problem.Fields[0].Field != "name") {
			t.Errorf("%s gives %+v", body, problem)
		}
	}
	asks[any](s, http.StatusOK, http.MethodPost, "/v1/runs/"+r.ID+"/approve", `{"callId":"`+q.ID+`","input":{"name":"Ann"}}`)
	p.eventually("it ends", func() bool {
		return asks[journal.Run](s, http.StatusOK, http.MethodGet, "/v1/runs/"+r.ID, "").State == journal.Ended
	})
	if !strings.Contains(p.read("ledger"), `answer {"action":"accept","content":{"name":"Ann"}}`) {
		t.Errorf("the ledger has %s", p.read("ledger"))
	}
	watch := s.request(http.MethodGet, "/v1/runs/"+r.ID+"/events?format=ag-ui", "")
	watch.Header.Set("Accept", "text/event-stream")
	stream, err := http.DefaultClient.Do(watch)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	text, err := io.ReadAll(stream.Body)
	if err != nil || !strings.Contains(string(text), `"responseSchema":{`) {
		t.Errorf("the stream is %s, %v", text, err)
	}
	s.stop()
}
