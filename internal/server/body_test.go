package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const answering = "identity: {name: answers}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: []}\n"

func TestABodyIsReadStrictly(t *testing.T) {
	s := listening(t, map[string]string{
		"agent.yaml": answering, "script.yaml": "- text: the end\n",
		"tasked.yaml": "identity: {name: tasked}\nmodel_policy: {primary: {model: scripted/script.yaml}}\nprompt: {task: Go.}\n",
	})
	for name, c := range map[string]struct {
		body    string
		status  int
		pointer string
	}{
		"an agent":                  {`{"agent": "answers", "input": "go"}`, 201, ""},
		"no input":                  {`{"agent": "answers"}`, 400, "/input"},
		"an empty input":            {`{"agent": "answers", "input": ""}`, 400, "/input"},
		"a blank input":             {`{"agent": "answers", "input": " \n"}`, 400, "/input"},
		"a task in the file":        {`{"agent": "tasked"}`, 201, ""},
		"a blank one beside it":     {`{"agent": "tasked", "input": " "}`, 400, "/input"},
		"a task in a file sent":     {`{"spec": {"identity": {"name": "x"}, "model_policy": {"primary": "scripted/script.yaml"}, "prompt": {"task": "Go."}}}`, 201, ""},
		"no task in a file sent":    {`{"spec": {"identity": {"name": "x"}, "model_policy": {"primary": "scripted/script.yaml"}}}`, 400, "/input"},
		"nothing":                   {``, 400, "/agent"},
		"no JSON":                   {`agent=answers`, 400, ""},
		"no object":                 {`["answers"]`, 400, ""},
		"cut short":                 {`{"agent": "answers"`, 400, ""},
		"more behind it":            {`{"agent": "answers"} {}`, 400, ""},
		"no UTF-8":                  {"{\"agent\": \"\xff\"}", 400, ""},
		"an unknown key":            {`{"agent": "answers", "workspace": "/"}`, 400, "/workspace"},
		"a key in another spelling": {`{"Agent": "answers"}`, 400, "/Agent"},
		"a key twice":               {`{"agent": "answers", "agent": "answers"}`, 400, "/agent"},
		"a wrong type":              {`{"agent": 7}`, 400, "/agent"},
		"null":                      {`{"agent": null}`, 400, "/agent"},
		"neither agent nor spec":    {`{"input": "go"}`, 400, "/agent"},
		"both":                      {`{"agent": "answers", "spec": {}}`, 400, "/spec"},
		"a model without provider":  {`{"agent": "answers", "model": "gpt"}`, 400, "/model"},
		"no budget":                 {`{"agent": "answers", "budget": 0}`, 400, "/budget"},
		"a variable of null":        {`{"agent": "answers", "vars": {"a": null}}`, 400, "/vars"},
		"a variable twice":          {`{"agent": "answers", "vars": {"a": "x", "a": "y"}}`, 400, "/vars"},
		"variables in a list":       {`{"agent": "answers", "vars": ["a"]}`, 400, "/vars"},
		"an unknown agent":          {`{"agent": "nobody"}`, 422, "/agent"},
		"a path as a name":          {`{"agent": "../agent"}`, 422, "/agent"},
		"a file as a name":          {`{"agent": "agent.yaml"}`, 422, "/agent"},
		"too much":                  {`{"input": "` + strings.Repeat("x", 5<<20) + `"}`, 413, ""},
	} {
		status, p := s.ask(http.MethodPost, "/v1/runs", c.body, nil)
		if status != c.status || p.Pointer != c.pointer {
			t.Errorf("%s: status %d at %q, want %d at %q: %s", name, status, p.Pointer, c.status, c.pointer, p.Detail)
		}
	}
	for path, want := range map[string]int{"/v1/runs": http.StatusBadRequest, "/v1/runs/nobody/pause": http.StatusNotFound, "/v1/runs/nobody/approve": http.StatusNotFound} {
		for _, body := range []string{" ", "{}"} {
			if status, p := s.ask(http.MethodPost, path, body, nil); status != want {
				t.Errorf("%s with the body %q: status %d, want %d: %s", path, body, status, want, p.Detail)
			}
		}
	}
	form := func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }
	if status, _ := s.ask(http.MethodPost, "/v1/runs", `{"agent": "answers"}`, form); status != http.StatusUnsupportedMediaType {
		t.Errorf("a body that is not said to be JSON: status %d", status)
	}
}

func TestWhatThereIsNotIsAProblem(t *testing.T) {
	s := listening(t, nil)
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/nothing", 404},
		{http.MethodGet, "/v1/runs/none", 404},
		{http.MethodGet, "/v1/runs/none/events", 404},
		{http.MethodPost, "/v1/runs/none/cancel", 404},
		{http.MethodGet, "/v1/runs/none/tree", 404},
		{http.MethodDelete, "/v1/runs", 405},
		{http.MethodGet, "/v1/runs/none/approve", 405},
		{http.MethodGet, "/v1/runs?limit=0", 400},
		{http.MethodGet, "/v1/runs?limit=many", 400},
		{http.MethodGet, "/v1/runs?offset=3", 400},
	} {
		if got, _ := s.ask(c.method, c.path, "", nil); got != c.want {
			t.Errorf("%s %s: status %d, want %d", c.method, c.path, got, c.want)
		}
	}
}

// What a body brings may not make the server read, or run, files of its machine.
func TestASpecOfABodyNamesNoFileOfThisMachine(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	if err := os.WriteFile(outside, []byte("- text: a secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, dir := newServer(t, map[string]string{"agent.yaml": answering, "script.yaml": "- text: the end\n"})
	if err := os.Symlink(outside, filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(conforming(t, s))
	defer web.Close()
	to := site{web, t}
	spec := func(model, more string) string {
		return `{"spec": {"identity": {"name": "sent"}, "model_policy": {"primary": {"model": "` + model + `"}}` + more + `}, "input": "go"}`
	}
	for name, c := range map[string]struct {
		body   string
		status int
		paths  []string
	}{
		"an object":             {spec("scripted/script.yaml", ""), 201, nil},
		"a text":                {`{"spec": "identity: {name: sent}\nmodel_policy: {primary: {model: scripted/script.yaml}}\n", "input": "go"}`, 201, nil},
		"a prompt's file":       {spec("scripted/script.yaml", `, "prompt": {"system_file": "/etc/passwd"}`), 422, []string{"prompt.system_file"}},
		"a schema's file":       {spec("scripted/script.yaml", `, "resultSchema": "/etc/passwd"`), 422, []string{"resultSchema"}},
		"a hook":                {spec("scripted/script.yaml", `, "hooks": {"before_run": [{"command": ["/bin/true"]}]}`), 422, []string{"hooks"}},
		"a secret":              {spec("scripted/script.yaml", `, "tools": {"secrets": {"KEY": {"env": "HOME", "tools": ["web.fetch"]}}}`), 422, []string{"tools.secrets.KEY"}},
		"a script elsewhere":    {spec("scripted/"+outside, ""), 422, []string{"model_policy.primary.model"}},
		"a script above":        {spec("scripted/../script.yaml", ""), 422, []string{"model_policy.primary.model"}},
		"a link that leads out": {spec("scripted/link.yaml", ""), 422, []string{"model_policy.primary.model"}},
		"a script elsewhere for an agent of a workflow": {`{"spec": "name: sent\nagents: {dev: {description: d, model: scripted/` + outside + `}}\nsteps: [{id: a, agent: dev}]\n", "input": "go"}`, 422, []string{"agents.dev.model"}},
		"an unknown key": {spec("scripted/script.yaml", `, "promt": {}`), 422, []string{"promt"}},
	} {
		status, p := to.ask(http.MethodPost, "/v1/runs", c.body, nil)
		var paths []string
		for _, e := range p.Errors {
			paths = append(paths, e.Path)
			if e.Line == 0 {
				t.Errorf("%s: the problem has no place: %+v", name, e)
			}
		}
		if status != c.status || !cmp.Equal(paths, c.paths) {
			t.Errorf("%s: status %d for %v, want %d for %v: %s", name, status, paths, c.status, c.paths, p.Detail)
		}
	}
	for _, model := range []string{"scripted/" + outside, "scripted/link.yaml"} {
		if status, p := to.ask(http.MethodPost, "/v1/runs", `{"agent": "answers", "model": "`+model+`"}`, nil); status != 422 || p.Pointer != "/model" {
			t.Errorf("the model %s: status %d at %q", model, status, p.Pointer)
		}
	}
}

// FuzzQueries: whatever a list is asked for gets an answer that is no failure of the
// server.
func FuzzQueries(f *testing.F) {
	for _, seed := range []string{
		"limit=1&cursor=runs:x", "limit=0", "limit=99999999999999999999", "state=parked&state=ended", "children=yes", "cursor=audit:9223372036854775808", "cursor=%zz", "a;b", "cursor=runs:",
	} {
		for _, path := range []string{"/v1/runs", "/v1/audit", "/v1/agents", "/v1/questions"} {
			f.Add(path, seed)
		}
	}
	made, _ := newServer(f, nil)
	s := conforming(f, made)
	f.Fuzz(func(t *testing.T, path, query string) {
		switch path {
		case "/v1/runs", "/v1/audit", "/v1/agents":
		default:
			path = "/v1/questions"
		}
		r := requestFromHere(t.Context(), http.MethodGet, path, "")
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code < 200 {
			t.Errorf("%s?%s: status %d: %s", path, query, w.Code, w.Body)
		}
	})
}

// FuzzBodies: whatever is sent gets an answer that is no failure of the server.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"agent": "answers"}`, `{"spec": {"identity": {"name": "x"}}}`, `{"spec": "identity: {name: x}"}`, `{"callId": "x", "reason": "y", "args": {}}`,
		`{"a`, `[`, "\xff", `{"spec": {"a": [[[[`, `{"budget": 1e999}`, `{"vars": {"a": 1}}`, `{"text": "\ud800"}`,
	} {
		f.Add("/v1/runs", seed)
		f.Add("/v1/runs/none/approve", seed)
	}
	made, _ := newServer(f, nil)
	s := conforming(f, made)
	f.Fuzz(func(t *testing.T, path, body string) {
		if path != "/v1/runs" {
			path = "/v1/runs/none/approve"
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, requestFromHere(t.Context(), http.MethodPost, path, body))
		if w.Code >= 500 || w.Code < 200 {
			t.Errorf("%s %q: status %d: %s", path, body, w.Code, w.Body)
		}
	})
}

// A client that sends all of its body before it reads gets the answer, and not a reset
// connection.
func TestABodyThatIsTooLargeIsAnsweredAlsoWhereItIsSentFirst(t *testing.T) {
	to := listening(t, thinking)
	for _, keyed := range []string{"", "Idempotency-Key: k\r\n"} {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", to.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		answers := bufio.NewReader(c)
		for range 2 { // the connection stays of use
			body := strings.NewReader(strings.Repeat(" ", 24<<20))
			head := fmt.Sprintf("POST /v1/runs HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n", c.RemoteAddr(), keyed, body.Size())
			if _, err := io.Copy(c, io.MultiReader(strings.NewReader(head), body)); err != nil {
				t.Fatalf("the body cannot be sent: %v", err)
			}
			answer, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatalf("there is no answer: %v", err)
			}
			text, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), "too-large") {
				t.Errorf("%s: %s, %v", answer.Status, text, err)
			}
		}
	}
}

func TestASpecWithTooManyKeysIsRefusedByTheirNumber(t *testing.T) {
	to := listening(t, thinking)
	var keys strings.Builder
	for i := range 16_000 {
		fmt.Fprintf(&keys, `, "unknown_%d": "x"`, i)
	}
	status, p := to.ask(http.MethodPost, "/v1/runs", `{"spec": {"kind": "Agent"`+keys.String()+`}}`, nil)
	if status != http.StatusUnprocessableEntity || len(p.Errors) != 1 || !strings.Contains(p.Detail, "keys and items") {
		t.Errorf("%d with %d errors: %.200s", status, len(p.Errors), p.Detail)
	}
	few := strings.Join(strings.Split(keys.String(), ",")[:1000], ",")
	status, p = to.ask(http.MethodPost, "/v1/runs", `{"spec": {"kind": "Agent"`+few+`}}`, nil)
	if last := p.Errors[len(p.Errors)-1]; status != http.StatusUnprocessableEntity || len(p.Errors) != 101 || last.Message != "and 899 more problems" {
		t.Errorf("%d with %d errors, the last %q", status, len(p.Errors), last.Message)
	}
}
